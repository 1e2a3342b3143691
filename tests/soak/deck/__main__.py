"""Sweep over decks in real terminals until so many seconds are over; exit with 1 if one showed something wrong.

`python -m tests.soak.deck --seed 7 --seconds 3600`; `--seed 7 --trial 13` replays one trial. A trial's actions are
drawn from seed and number, so they are the same each time; their timing depends on the machine.
"""

from __future__ import annotations

import argparse
import itertools
import os
import shutil
import sys
import tempfile
import time
import traceback
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

from subdeck.core.system import processes

from .. import arena
from .plan import Act, Plan, draw
from .trial import Outcome, Trial

ROOT = Path(__file__).resolve().parents[3]
SECONDS = 300.0


def main(arguments: list[str]) -> int:
    options = _read(arguments)
    began = time.monotonic()
    numbers = itertools.count(options.first) if options.trial is None else [options.trial] * options.times
    outcomes: list[Outcome] = []
    try:
        for number in numbers:
            if options.trial is None and time.monotonic() - began >= options.seconds:
                break
            plan = draw(options.seed, number, options.without)
            started = time.monotonic()
            with ProcessPoolExecutor(1, mp_context=get_context("fork")) as pool:
                outcome = pool.submit(play, plan, options.keep).result()
            outcomes.append(outcome)
            words = f"{outcome.operations} operations, {outcome.quiet_points} quiet points, {plan.decks} decks"
            took = f"{time.monotonic() - started:.0f} s"
            print(f"--seed {plan.seed} --trial {plan.number}: {words}, {took}", flush=True)
            if outcome.kind:
                print(f"  {outcome.kind}: {outcome.detail}", flush=True)
    except KeyboardInterrupt:
        print("broken off", file=sys.stderr)
    kinds = Counter(outcome.kind for outcome in outcomes if outcome.kind)
    operations = sum(outcome.operations for outcome in outcomes)
    points = sum(outcome.quiet_points for outcome in outcomes)
    summary = f"{len(outcomes)} trials, {operations} operations, {points} quiet points"
    print(f"seed {options.seed}: {summary} in {time.monotonic() - began:.0f} s")
    print(f"frozen: {kinds.pop('frozen', 0)}, different: {kinds.pop('different', 0)}")
    for kind, count in kinds.items():
        print(f"{kind}: {count}")
    return 1 if any(outcome.kind for outcome in outcomes) else 0


def play(plan: Plan, keep: Path) -> Outcome:
    """Play one trial in this process, and end all leftovers."""
    processes.become_subreaper()
    root = Path(tempfile.mkdtemp(prefix="soak-", dir="/tmp"))
    try:
        trial = Trial(plan, root)
        outcome = trial.play()
        if outcome.kind:
            (root / "plan").write_text(f"{plan}\n")
            kept = keep / f"deck-{plan.seed}-{plan.number}"
            shutil.rmtree(kept, ignore_errors=True)
            kept.parent.mkdir(parents=True, exist_ok=True)
            shutil.copytree(root, kept, symlinks=True, ignore=shutil.ignore_patterns("bin", "tmux-*"))
            return Outcome(*_counts(outcome), outcome.kind, f"{outcome.detail}\n  operations and views: {kept}")
        return outcome
    except Exception:  # a fault of the sweep itself must not look like one of the program, nor be overlooked
        return Outcome(0, 0, 0, "fault of the sweep", traceback.format_exc())
    finally:
        arena.clear()
        os.chdir("/")
        shutil.rmtree(root, ignore_errors=True)


def _counts(outcome: Outcome) -> tuple[int, int, int]:
    return outcome.operations, outcome.quiet_points, outcome.runs


def _read(arguments: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.soak.deck", description=__doc__.partition("\n")[0])
    parser.add_argument("--seed", type=int, default=1, help="what all trials are drawn from (%(default)s)")
    parser.add_argument("--first", type=int, default=0, help="the number of the first trial (%(default)s)")
    parser.add_argument("--trial", type=int, help="play only the trial of this number")
    parser.add_argument("--times", type=int, default=1, help="how often, with --trial (%(default)s)")
    parser.add_argument("--seconds", type=float, default=SECONDS, help="start no trial after so long (%(default)g)")
    parser.add_argument("--without", type=_acts, default=[], help=f"leave these out, with commas: {', '.join(Act)}")
    parser.add_argument("--keep", type=Path, default=ROOT / ".cache" / "soak", help="where failed trials are kept")
    return parser.parse_args(arguments)


def _acts(words: str) -> list[Act]:
    try:
        return [Act(word.strip()) for word in words.split(",")]
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from error


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
