"""The runs that went on with each other: those of one child session, which a person reads as one conversation."""

from __future__ import annotations

from collections.abc import Iterable

from .snapshot import RunSnapshot


def chain(run: RunSnapshot, runs: Iterable[RunSnapshot]) -> tuple[RunSnapshot, ...]:
    """Return the runs of the same conversation among `runs`, and the run itself, in the order of their launch.

    A run belongs to it by the id that it was launched with, went on with, or was told by its agent; an id means nothing
    to another agent. A foreign run says whatever it likes, and belongs to none.
    """
    ids = _ids(run)
    if not ids or run.foreign:
        return (run,)
    left = {
        other.run_id: other
        for other in runs
        if not other.foreign and other.meta.agent == run.meta.agent and other.run_id != run.run_id
    }
    found = {run.run_id: run}
    while linked := [other for other in left.values() if not ids.isdisjoint(_ids(other))]:
        for other in linked:
            found[other.run_id] = left.pop(other.run_id)
            ids |= _ids(other)
    return tuple(sorted(found.values(), key=lambda one: (one.run_id[:15], one.meta.created_at, one.run_id)))


def _ids(run: RunSnapshot) -> set[str]:
    meta = run.meta
    resumed = meta.agent_session.resume if meta.agent_session else None
    return {name for name in (run.told_session, meta.child_session_id, resumed) if name}
