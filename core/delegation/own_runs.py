"""The background runs of one parent session, apart from those of all others."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..run.model import RunMeta, RunSnapshot
from .parent import Parent

if TYPE_CHECKING:
    from ..engine import Engine


def background_runs(engine: Engine, parent: Parent) -> tuple[RunSnapshot, ...]:
    """Answer them as they stand now, newest first."""
    return tuple(run for run in engine.snapshots() if is_own(run.meta, parent.session, parent.runs))


def is_own(meta: RunMeta, session: str, named: tuple[str, ...]) -> bool:
    """Tell whether a background run belongs to a session: launched by it, or named by its own entries."""
    return meta.background and (meta.launched_by.session == session or meta.run_id in named)
