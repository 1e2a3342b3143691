"""After a trial with worktrees: the children's work is there, and after a clean-up nothing else is."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from subdeck.core.engine import Engine
from subdeck.core.work.records import tree_of, work_dirs

from tests.repositories import pinned

from .arena import Arena
from .records import RunRecords
from .verdict import Broken


def clean(world: Arena, runs: list[RunRecords]) -> Iterator[Broken]:
    """Yield lost work, and leftovers when all runs are deleted and purged a day later."""
    engine = Engine.open(str(world.directory))
    kept = {os.path.basename(directory): directory for directory in work_dirs(engine.project)}
    for run in runs:
        if run.journal.has("worked") and not os.path.exists(tree_of(kept.get(run.path.name, "")) + "/found.txt"):
            yield Broken("work lost", f"run {run.number}: {run.ending}")
    run_ids = [run.path.name for run in runs]
    unmerged = {one.run_id for one in engine.unmerged(run_ids)}
    engine.delete(run_ids)
    for run in runs:
        if run.journal.has("worked") and run.path.name not in unmerged:
            yield Broken("work taken for none", f"run {run.number}: {run.ending}")
    engine.purge(run_ids)
    for directory in work_dirs(engine.project):
        os.utime(directory, (0, 0))
    engine.purge()
    if left := list(work_dirs(engine.project)):
        yield Broken("kept in the state", f"{left}: {[os.listdir(directory) for directory in left]}")
    now = pinned(Path(world.directory))
    if now != world.pinned:
        more, less = set(now) - set(world.pinned), set(world.pinned) - set(now)
        yield Broken("left in the repository", f"more: {sorted(more)}; less: {sorted(less)}")
