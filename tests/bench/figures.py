"""The result of a benchmark, how much it measures for that, and how it is printed."""

from __future__ import annotations

import os
import statistics
import subprocess
import time
from collections.abc import Callable, Sequence
from typing import TypeVar

from msgspec import Struct

REPEATS = 7
T = TypeVar("T")
_is_smoke = False


def begin_smoke() -> None:
    """Make `usually` return the small numbers from now on, for modules imported later."""
    global REPEATS, _is_smoke
    REPEATS, _is_smoke = 1, True


def usually(usual: T, *, smoke: T) -> T:
    """Return how much to measure: as usual, or in smoke mode just enough to show that the benchmark works."""
    return smoke if _is_smoke else usual


class Figure(Struct, frozen=True):
    name: str
    measured: str
    floor: str
    """The same machine's figure for the least that could do it, in the same run."""
    target: str
    reached: bool
    is_skipped: bool = False

    @property
    def verdict(self) -> str:
        if self.is_skipped:
            return "skipped"
        return "ok" if self.reached else "MISSED"


def not_measured(name: str, why: str) -> Figure:
    """Return the result of a benchmark that cannot run here."""
    return Figure(name, f"not measured: {why}", "", "", True, is_skipped=True)


def median_ms(action: Callable[[], object], repeats: int | None = None) -> float:
    """Median wall time in milliseconds."""
    times: list[float] = []
    for _ in range(repeats or REPEATS):
        started = time.perf_counter()
        action()
        times.append((time.perf_counter() - started) * 1000)
    return statistics.median(times)


def in_turn_ms(actions: Sequence[Callable[[], object]], repeats: int | None = None) -> list[float]:
    """Median of each, taken in turn, so that a slow moment of the machine hits all alike."""
    times: list[list[float]] = [[] for _ in actions]
    for _ in range(repeats or REPEATS):
        for action, taken in zip(actions, times, strict=True):
            started = time.perf_counter()
            action()
            taken.append((time.perf_counter() - started) * 1000)
    return [statistics.median(taken) for taken in times]


def percentile(values: Sequence[float], share: float) -> float:
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(len(ordered) * share))]


def quietly(*argv: str, cwd: str = "/") -> None:
    """Run a command to its end; it must succeed."""
    subprocess.run(argv, cwd=cwd, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)


def resident_mb(pid: int, field: str = "VmRSS") -> float:
    """MiB, from `/proc/<pid>/status`."""
    with open(f"/proc/{pid}/status", encoding="utf-8") as file:
        line = next(line for line in file if line.startswith(field + ":"))
    return int(line.split()[1]) / 1024


def cpu_seconds(pid: int) -> float:
    """User and system time of one process with all its threads."""
    with open(f"/proc/{pid}/stat", "rb") as file:
        fields = file.read().rpartition(b") ")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def on_cpu_ms(pid: int) -> float:
    """Milliseconds that one process with all its threads has run so far; exact, while `cpu_seconds` counts ticks."""
    total = 0
    for thread in os.listdir(f"/proc/{pid}/task"):
        with open(f"/proc/{pid}/task/{thread}/schedstat", "rb") as file:
            total += int(file.read().split()[0])
    return total / 1e6


def forks_so_far() -> int:
    """Of the whole machine."""
    with open("/proc/stat", encoding="utf-8") as file:
        return int(next(line for line in file if line.startswith("processes")).split()[1])


def spawned_so_far(pid: int) -> int:
    """Return a number that grows with each child of a process: existing ones, and page faults of reaped ones."""
    with open(f"/proc/{pid}/stat", "rb") as file:
        faults = int(file.read().rpartition(b") ")[2].split()[8])
    children = 0
    for thread in os.listdir(f"/proc/{pid}/task"):
        with open(f"/proc/{pid}/task/{thread}/children", encoding="utf-8") as file:
            children += len(file.read().split())
    return faults + children


def print_table(figures: Sequence[Figure]) -> None:
    """Print figures beside their targets; in smoke mode without targets, which mean nothing for small numbers."""
    rows = [("what", "measured", "floor", "must reach", "")]
    rows += [(f.name, f.measured, f.floor, f.target, f.verdict) for f in figures]
    if _is_smoke:
        rows = [row[:3] for row in rows]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    print(f"load average of the machine: {' '.join(f'{load:.1f}' for load in os.getloadavg())}")
    for row in rows:
        print("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip(), flush=True)
