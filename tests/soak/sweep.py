"""Many trials, several at a time, each in a separate process."""

from __future__ import annotations

import os
import shutil
import tempfile
import traceback
from collections.abc import Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from multiprocessing import get_context
from pathlib import Path

from msgspec import Struct, structs
from subdeck.core.system import processes

from . import arena
from .cleaning import clean
from .plan import Plan, Scene, Usual, Victim, draw
from .records import RunRecords
from .trial import Trial
from .verdict import Broken, judge


class Report(Struct, frozen=True):
    """The result of a trial."""

    plan: Plan
    kills: tuple[str, ...] = ()
    """The victim of each."""
    faults: tuple[str, ...] = ()
    """Each as `wrapper: write EIO`."""
    disturbances: tuple[str, ...] = ()
    """Each as `wrapper: SIGSTOP`."""
    runs: int = 0
    broken: tuple[Broken, ...] = ()
    kept: str = ""
    """Directory of everything, if something was broken."""


def sweep(
    seed: int, numbers: Iterator[int], only: Sequence[Victim], usual: Usual, *, jobs: int, keep: Path
) -> Iterator[Report]:
    """Play the trials of these numbers, `jobs` at a time; yield each result when it is ready.

    To stop iterating stops the sweep, once the trials that have begun are over.
    """
    with ProcessPoolExecutor(jobs, mp_context=get_context("fork"), max_tasks_per_child=None) as pool:
        going: set[Future[Report]] = set()
        try:
            while True:
                while len(going) < jobs and (number := next(numbers, None)) is not None:
                    going.add(pool.submit(play, draw(seed, number, only, usual), keep))
                if not going:
                    return
                done, going = wait(going, return_when=FIRST_COMPLETED)
                for trial in done:
                    yield trial.result()
        finally:
            for trial in going:
                trial.cancel()


def play(plan: Plan, keep: Path) -> Report:
    """Play one trial in this process, and end all leftovers."""
    processes.become_subreaper()
    root = Path(tempfile.mkdtemp(prefix="soak-", dir="/tmp"))
    before = dict(os.environ)
    kept = ""
    try:
        report = _played(plan, root)
        if report.broken:
            (root / "plan").write_text(f"{plan}\n")
            kept = _keep(root, keep / f"{plan.seed}-{plan.number}")
        return structs.replace(report, kept=kept)
    except Exception:  # a fault of the sweep itself must not look like one of the program, nor be overlooked
        return Report(plan, broken=(Broken("fault of the sweep", traceback.format_exc()),), kept=str(root))
    finally:
        arena.clear()
        os.chdir("/")
        os.environ.clear()
        os.environ.update(before)
        shutil.rmtree(root, ignore_errors=True)


def _played(plan: Plan, root: Path) -> Report:
    trial = Trial(plan, root)
    outcome = trial.play()
    world = trial.arena
    numbers = {run_dir: world.number_of(run_dir) for run_dir in world.run_dirs()}
    runs = [RunRecords.read(run_dir, number, world.journal(number)) for run_dir, number in numbers.items()]
    broken = tuple(judge(plan, outcome, runs, Path(world.project.home), world.output))
    if plan.scene is Scene.WORKTREE and not broken:
        broken = tuple(clean(world, runs))
    return Report(
        plan,
        kills=tuple(hit.victim for hit in outcome.hits if not hit.error),
        faults=tuple(f"{hit.victim}: {hit.error}" for hit in outcome.hits if hit.error),
        disturbances=tuple(f"{one.victim}: {one.kind}" for one in outcome.disturbances),
        runs=len(runs),
        broken=broken,
    )


def _keep(root: Path, place: Path) -> str:
    shutil.rmtree(place, ignore_errors=True)
    place.parent.mkdir(parents=True, exist_ok=True)
    shutil.copytree(root, place, symlinks=True, ignore=shutil.ignore_patterns("bin", "tmux-*"))
    return str(place)
