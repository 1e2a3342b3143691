"""The cost of inheriting a parent's session of 200 MB, in a fresh process."""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from ..core.agents.pi.session_file import SessionFile
from .figures import Figure, usually

SIZE_MB = usually(200, smoke=4)
SECONDS = 2.0
PEAK_MB = 150.0

_READ = """
import sys, time
from subdeck.core.launch._inherit import Inheritance, inherit_from
started = time.perf_counter()
inherit_from(sys.argv[1], Inheritance())
seconds = time.perf_counter() - started
peak = next(line for line in open("/proc/self/status") if line.startswith("VmHWM:")).split()[1]
print(seconds, int(peak) / 1024)
"""


def measure() -> list[Figure]:
    kinds = {"usual turns": _usual, "one turn of small entries": _one_turn, "outputs of 5 MB": _huge_outputs}
    return [figure for name, fill in kinds.items() for figure in _read(name, fill)]


def _usual(session: SessionFile, number: int) -> None:
    if number % 20 == 0:
        session.user("Please do the next thing.")
    session.assistant("I look.", thinking="hm " * 50, tool="read")
    session.output("é line of output\n" * 350)


def _one_turn(session: SessionFile, number: int) -> None:
    if number == 0:
        session.user("Please do it all.")
    session.assistant("I look.", tool="read")
    session.output("one line of output")


def _huge_outputs(session: SessionFile, number: int) -> None:
    session.user(f"And part {number}?")
    session.assistant(tool="read")
    session.output("é line of output\n" * 300_000)


def _read(name: str, fill: Callable[[SessionFile, int], None]) -> list[Figure]:
    with tempfile.TemporaryDirectory() as directory:
        path = _written(Path(directory), fill)
        started = time.perf_counter()
        with path.open("rb") as file:
            while file.read(1024 * 1024):
                pass
        floor = time.perf_counter() - started
        read = subprocess.run([sys.executable, "-c", _READ, str(path)], check=True, capture_output=True, text=True)
    seconds, peak = map(float, read.stdout.split())
    return [
        Figure(f"inherit from {SIZE_MB} MB, {name}", f"{seconds:.2f} s", f"{floor:.2f} s", "2 s", seconds < SECONDS),
        Figure(f"  resident at its most, {name}", f"{peak:.0f} MB", "", "150 MB", peak < PEAK_MB),
    ]


def _written(directory: Path, fill: Callable[[SessionFile, int], None]) -> Path:
    """Write rounds until the size is reached."""
    session, number = SessionFile(directory / "session.jsonl"), 0
    while session.path.stat().st_size < SIZE_MB * 1024 * 1024:
        fill(session, number)
        number += 1
    return session.path
