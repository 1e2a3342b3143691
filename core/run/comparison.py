"""Compare runs side by side, row by row; pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime

from msgspec import Struct

from ..text.plain import one_line, plain
from .changes import Changes
from .cost_sheet import money
from .describe import (
    NOTHING,
    activity,
    check_words,
    checking_words,
    elapsed,
    state,
    tokens_used,
)
from .model import RunReason, RunStatus
from .snapshot import RunSnapshot

MOST = 6
"""Runs compared at once."""
LEAST = 2
ROWS = ("status", "check", "cost", "time", "turns", "tokens", "model", "changes")
"""One line for each."""
BEST = {"cost": "cheapest", "time": "fastest"}
"""Words for the best of the completed runs in a row."""
ANSWER = 4000
"""Characters shown from the beginning of an answer."""
FILES = 50
"""Changed files that are listed."""


class Side(Struct, frozen=True, kw_only=True):
    """One of the compared runs, with data beyond its snapshot."""

    run: RunSnapshot
    changes: Changes | None = None
    answer: str = ""


def is_one_task(sides: Sequence[Side]) -> bool:
    """Return whether all runs had the same task."""
    return len({side.run.meta.task for side in sides}) < 2


def facts(side: Side, now: datetime) -> dict[str, str]:
    """Return a line for each of `ROWS`."""
    run = side.run
    return {
        "status": _status(run),
        "check": _check(run, now),
        "cost": money(run.usage.cost, run.usage.unpriced),
        "time": elapsed(run, now),
        "turns": str(run.usage.turns) if run.usage.turns else NOTHING,
        "tokens": tokens_used(run.usage),
        "model": one_line(run.meta.resolved_model or run.meta.requested_model, 60) or NOTHING,
        "changes": _changes(side.changes, run),
    }


def best(sides: Sequence[Side]) -> Mapping[str, frozenset[int]]:
    """Return the numbers of the cheapest and of the fastest completed runs, by the row; none if all are alike.

    Unknown prices never count as $0: without the whole cost of a run that may be the cheapest one, none is.
    """
    runs = {number: side.run for number, side in enumerate(sides) if side.run.status is RunStatus.COMPLETED}
    costs = {number: run.usage.cost for number, run in runs.items() if not run.usage.unpriced}
    least_unknown = min((run.usage.cost for run in runs.values() if run.usage.unpriced), default=None)
    cheapest = _lowest(costs)
    if least_unknown is not None and any(costs[number] > least_unknown for number in cheapest):
        cheapest = frozenset[int]()
    ends = {number: run.end for number, run in runs.items() if run.end}
    seconds = {number: end.duration_ms // 1000 for number, end in ends.items() if end.duration_ms is not None}
    return {"cost": cheapest, "time": _lowest(seconds)}


def _lowest(figures: Mapping[int, float]) -> frozenset[int]:
    if len(set(figures.values())) < 2:
        return frozenset()
    least = min(figures.values())
    return frozenset(number for number, figure in figures.items() if figure == least)


def _status(run: RunSnapshot) -> str:
    usual = (None, RunReason.DONE, RunReason.FINALIZED)
    return state(run) if run.reason in usual else f"{state(run)}: {run.reason}"


def _check(run: RunSnapshot, now: datetime) -> str:
    if run.checking:
        return checking_words(run.checking, now)
    if run.check:
        return check_words(run.check)
    return f"{one_line(run.meta.check, 40)}, at its end" if run.meta.check else NOTHING


def _changes(changes: Changes | None, run: RunSnapshot) -> str:
    if changes is not None:
        return changes.words
    return NOTHING if run.started_at is None else "unknown"


def files(side: Side) -> list[tuple[str, str]]:
    """Return a run's changed files, with their line counts."""
    changes = side.changes
    if changes is None:
        return []
    named = [
        (
            one_line(file.path, 300),
            "" if file.added is None or file.removed is None else f"+{file.added} −{file.removed}",
        )
        for file in changes.named[:FILES]
    ]
    more = changes.files - len(named)
    return [*named, *([(f"and {more} more", "")] if more > 0 else [])]


def answer(side: Side) -> str:
    """Return the beginning of a run's answer, or its current activity, or why it ended without an answer."""
    run = side.run
    if text := plain(side.answer[:ANSWER]).strip():
        return text
    if run.end:
        return one_line(run.end.message, ANSWER) or NOTHING
    return one_line(run.sentence or activity(run), ANSWER) or NOTHING
