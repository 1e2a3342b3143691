"""Acts as the wrappers of many runs: holds them, and writes events at a steady pace.

`python -m tests.bench.writer PROJECT RUNS PER_SECOND SECONDS WRITING KIND`: prints a line when all runs exist, starts
to write when it reads a line, then prints one line of JSON: run id -> monotonic seconds of each event from the second
on; at last it holds the runs until its stdin is closed. PER_SECOND are the events of one run (SECONDS 0: there are
none), WRITING is how many of the newest runs write, KIND is `text`, or `work` for all kinds of a child's events.
"""

from __future__ import annotations

import sys
import time

import msgspec
from subdeck.core.paths import Project

from .made_up import HeldRun, at_work


def main() -> None:
    root, runs, per_second, seconds = sys.argv[1], int(sys.argv[2]), float(sys.argv[3]), float(sys.argv[4])
    writing, works = int(sys.argv[5]), sys.argv[6] == "work"
    held = [HeldRun(Project(root), number) for number in range(runs)][runs - writing :]
    print("ready", flush=True)
    sys.stdin.readline()
    written: dict[str, list[float]] = {run.run_id: [] for run in held}
    pace = writing * per_second
    started = time.monotonic()
    for number in range(int(pace * seconds)):
        due = started + number / pace
        while (now := time.monotonic()) < due:
            time.sleep(max(0.0, due - now))
        run = held[number % writing]
        written[run.run_id].append(time.monotonic())
        if works:
            run.write(at_work(number // writing + number % writing * 100_000))
        else:
            run.say(f"event {number}: I'm looking at how the parser treats a line that ends in the middle")
    sys.stdout.buffer.write(msgspec.json.encode(written) + b"\n")
    sys.stdout.flush()
    sys.stdin.read()


if __name__ == "__main__":
    main()
