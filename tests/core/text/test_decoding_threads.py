"""Types that several threads decode for the first time at once."""

from __future__ import annotations

import subprocess
import sys

import pytest

pytestmark = pytest.mark.processes

PROGRAM = """
import sys, threading
from types import ModuleType

from subdeck.core.text.decoder import decode, fit

TYPES = '''
from __future__ import annotations
from msgspec import Struct

class Inner(Struct):
    a: int = 0
    b: list[dict[str, int | None]] = []
    c: tuple[float, ...] | None = None

class Outer(Struct):
    x: Inner | None = None
    y: dict[str, Inner] = {}
    z: list[Inner] = []
'''
sys.setswitchinterval(1e-6)
for number in range(100):
    module = sys.modules["types_of_test"] = ModuleType("types_of_test")
    exec(TYPES, module.__dict__)
    begin, ends = threading.Barrier(4), []

    def use(read):
        begin.wait()
        ends.append(read().z[0].b)

    reads = [
        lambda: decode('{"z": [{"a": 1, "b": [{"q": null}]}], "x": {"c": [1.5]}}', module.Outer),
        lambda: fit({"z": [{"b": [{"q": None}]}]}, module.Outer),
    ]
    threads = [threading.Thread(target=use, args=(read,)) for read in reads * 2]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert ends == [[{"q": None}]] * 4, ends
"""


def test_types_are_made_ready_by_one_thread_at_a_time() -> None:
    """Types are prepared by one thread at a time, because reading an unprepared one would crash the process."""
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, timeout=60)
    assert (0, "") == (done.returncode, done.stderr)
