"""Sweep until so many kills or seconds are over; exit with 1 if anything broke.

`make soak ARGS="--seed 7 --only wrapper,looker --kills 2000"`; `ARGS="--seed 7 --trial 113"` replays one trial. A
trial's actions are drawn from seed and number, so they are the same each time; their timing depends on the machine.
"""

from __future__ import annotations

import argparse
import itertools
import sys
import time
from collections.abc import Iterator
from pathlib import Path

from . import strace
from .plan import Victim, draw
from .sweep import Report, sweep
from .table import Tally
from .usual import measure

ROOT = Path(__file__).resolve().parents[2]
SECONDS = 600.0
"""Duration of a sweep without bounds."""


def main(arguments: list[str]) -> int:
    options = _read(arguments)
    usual = {}
    if strace.is_usable():
        print("counting system calls …", file=sys.stderr, flush=True)
        usual = measure()
    else:
        print("strace is not installed, or not allowed: only kills at random moments, no faults", file=sys.stderr)
    if options.trial is not None:
        print(draw(options.seed, options.trial, options.only, usual))
    reports: list[Report] = []
    began = time.monotonic()

    def numbers() -> Iterator[int]:
        for number in itertools.count() if options.trial is None else (options.trial,) * options.times:
            kills, seconds = sum(len(report.kills) for report in reports), time.monotonic() - began
            if (options.kills and kills >= options.kills) or (options.seconds and seconds >= options.seconds):
                return
            yield number

    def played(numbers: Iterator[int]) -> Iterator[Report]:
        for report in sweep(options.seed, numbers, options.only, usual, jobs=options.jobs, keep=options.keep):
            for broken in report.broken:
                print(f"{report.plan.number}: {broken.kind}: {broken.detail}", file=sys.stderr, flush=True)
            yield report

    broken_again: set[int] = set()
    try:
        for report in played(numbers()):
            reports.append(report)
        doubtful = [report.plan.number for report in reports if report.broken]
        broken_again.update(report.plan.number for report in played(iter(doubtful * options.again)) if report.broken)
    except KeyboardInterrupt:
        print("broken off", file=sys.stderr)
    tally = Tally()
    for report in reports:
        tally.add(report, is_chance=options.again > 0 and report.plan.number not in broken_again)
    print(f"seed {options.seed}")
    tally.print(time.monotonic() - began)
    return 1 if tally.broken else 0


def _read(arguments: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="make soak ARGS=…", description=__doc__.partition("\n")[0])
    parser.add_argument("--seed", type=int, default=1, help="what all trials are drawn from (%(default)s)")
    parser.add_argument("--trial", type=int, help="play only the trial of this number")
    parser.add_argument("--times", type=int, default=1, help="how often, with --trial (%(default)s)")
    again = "play a broken trial so often again; only one that breaks again makes the sweep fail (%(default)s: all do)"
    parser.add_argument("--again", type=int, default=0, help=again)
    parser.add_argument("--only", type=_victims, default=[], help=f"victims, with commas: {', '.join(Victim)}")
    parser.add_argument("--kills", type=int, help="end after so many kills")
    parser.add_argument("--seconds", type=float, help=f"end after so long ({SECONDS:g}, unless --kills is given)")
    parser.add_argument("--jobs", type=int, default=3, help="trials at a time; they mostly wait (%(default)s)")
    parser.add_argument("--keep", type=Path, default=ROOT / ".cache" / "soak", help="where broken trials are kept")
    options = parser.parse_args(arguments)
    if options.kills is None and options.seconds is None:
        options.seconds = SECONDS
    return options


def _victims(words: str) -> list[Victim]:
    try:
        return [Victim(word.strip()) for word in words.split(",")]
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from error


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
