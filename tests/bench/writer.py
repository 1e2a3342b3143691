"""Stands for the wrappers of many runs: holds them, and writes events at a steady pace.

`python -m tests.bench.writer PROJECT RUNS PER_SECOND SECONDS`: prints a line when all runs stand, starts to write when
its stdin is closed, then prints one JSON document: run id -> monotonic seconds of each event from the second on. With
SECONDS 0 it writes nothing and holds the runs until its stdin is closed.
"""

from __future__ import annotations

import sys
import time

import msgspec
from subdeck.core.paths import Project

from .made_up import HeldRun


def main() -> None:
    root, runs, per_second, seconds = sys.argv[1], int(sys.argv[2]), float(sys.argv[3]), float(sys.argv[4])
    held = [HeldRun(Project(root), number) for number in range(runs)]
    print("ready", flush=True)
    sys.stdin.read()
    written: dict[str, list[float]] = {run.run_id: [] for run in held}
    total = int(runs * per_second * seconds)
    started = time.monotonic()
    for number in range(total):
        due = started + number / (runs * per_second)
        while (now := time.monotonic()) < due:
            time.sleep(max(0.0, due - now))
        run = held[number % runs]
        written[run.run_id].append(time.monotonic())
        run.say(f"event {number}: I'm looking at how the parser treats a line that ends in the middle")
    sys.stdout.buffer.write(msgspec.json.encode(written))
    sys.stdout.flush()


if __name__ == "__main__":
    main()
