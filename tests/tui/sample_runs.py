"""Updates and groups for tests of the list of runs."""

from __future__ import annotations

from typing import Any

from subdeck.core.project.follower import Update
from subdeck.core.run.model import Group
from subdeck.core.run.snapshot import Counts, RunSnapshot

from .fake_engine import a_run, run_id


def an_update(*runs: RunSnapshot, removed: tuple[str, ...] = (), ended: tuple[RunSnapshot, ...] = ()) -> Update:
    return Update(
        runs=runs,
        removed=removed,
        ended=ended,
        counts=Counts(),
        background=Counts(),
        complete=True,
        presets_changed=False,
    )


def a_mate(number: int, status: str = "running", *, first: int = 1, size: int = 4, **fields: Any) -> RunSnapshot:
    """Return a run of the group whose first run is `first`."""
    return a_run(number, status, meta_group=Group(run_id(first), number - first, size, size), **fields)


def a_group(*statuses: str, first: int = 1, **fields: Any) -> tuple[RunSnapshot, ...]:
    """Return runs launched together, numbered from `first` on."""
    size = len(statuses)
    return tuple(a_mate(first + n, status, first=first, size=size, **fields) for n, status in enumerate(statuses))
