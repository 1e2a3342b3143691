"""The memory of a long-lived process."""

from __future__ import annotations

import gc
import subprocess
import sys

import pytest
from subdeck.core.hosts.dask import preload

LARGE_MESSAGES = """
import sys
from mmap import PAGESIZE
from subdeck.core.hosts.dask.preload import keep_little

def resident():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * PAGESIZE

keep_little()
before = resident()
large = b"x" * 8_000_000
del large
several = [b"x" * 1_000_000 for _ in range(10)]
del several
print(resident() - before)
"""


@pytest.mark.processes
def test_large_messages_leave_nothing() -> None:
    """The memory of large messages is returned, even after earlier ones as large."""
    done = subprocess.run([sys.executable, "-c", LARGE_MESSAGES], capture_output=True, text=True, check=True)
    assert int(done.stdout) < 1_000_000


def test_another_library(monkeypatch: pytest.MonkeyPatch) -> None:
    """A C library without these options causes no error."""
    monkeypatch.setattr("ctypes.CDLL", lambda _: object())
    preload.keep_little()
    gc.unfreeze()
