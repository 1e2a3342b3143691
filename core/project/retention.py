"""Which old runs a clean-up takes; pure."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING

from msgspec import Struct

if TYPE_CHECKING:
    from ..config.settings import Retention

DAY = 24 * 3600.0
MB = 1024 * 1024


class Stored(Struct, frozen=True, gc=False):
    """A run as its directory shows it."""

    run_id: str
    size: int
    """Bytes that it takes on the disk."""
    ended: float | None
    """When its result was written, in seconds since the epoch; None for a run that has not ended."""


class Stock(Struct, frozen=True):
    """All runs of a project, as of one look."""

    runs: tuple[Stored, ...]
    trash: tuple[Stored, ...] = ()
    """Deleted ones; `ended` is when they were deleted."""
    untold: frozenset[str] = frozenset()
    """Ids of runs whose end was told to nobody yet."""

    @property
    def size(self) -> int:
        return sum(run.size for run in self.runs)

    @property
    def trash_size(self) -> int:
        return sum(run.size for run in self.trash)


class Selection(Struct, frozen=True):
    """What goes, the oldest first, and what is left out although a rule would take it."""

    going: tuple[Stored, ...]
    unfinished: int
    """Runs that go on: they are never taken."""
    needed: int
    """Runs that a rule would take if nobody needed them."""
    untold: int
    """Of those that go: how many have an end that nobody was told of."""

    @property
    def size(self) -> int:
        return sum(run.size for run in self.going)

    @property
    def run_ids(self) -> tuple[str, ...]:
        return tuple(run.run_id for run in self.going)


def choose(stock: Stock, rule: Retention, now: float, needed: Collection[str] = ()) -> Selection:
    """Decide by the three rules, each of which takes the oldest; a run goes when one of them takes it.

    `days` takes what ended longer ago, `keep` all finished runs but the newest so many, `max_mb` as many as are
    needed for what stays, unfinished runs included, to fit. Runs that go on and those in `needed` stay whatever the
    rules say; they count in all of them.
    """
    finished = sorted((run for run in stock.runs if run.ended is not None), key=_age)
    taken: dict[str, Stored] = {}
    if rule.days is not None:
        oldest = now - rule.days * DAY
        taken |= {run.run_id: run for run in finished if run.ended is not None and run.ended < oldest}
    if rule.keep is not None:
        taken |= {run.run_id: run for run in finished[: max(0, len(finished) - rule.keep)]}
    going = {run_id: run for run_id, run in taken.items() if run_id not in needed}
    spared = set(taken) - set(going)
    if rule.max_mb is not None:
        _fit(finished, stock.size - sum(run.size for run in going.values()), rule.max_mb * MB, needed, going, spared)
    chosen = tuple(run for run in finished if run.run_id in going)
    return Selection(
        chosen,
        unfinished=sum(run.ended is None for run in stock.runs),
        needed=len(spared),
        untold=sum(run.run_id in stock.untold for run in chosen),
    )


def _fit(
    finished: Sequence[Stored],
    size: int,
    most: float,
    needed: Collection[str],
    going: dict[str, Stored],
    spared: set[str],
) -> None:
    """Add the oldest runs to `going` until what stays takes at most `most` bytes; tell in `spared` who could not."""
    for run in finished:
        if size <= most:
            return
        if run.run_id in going:
            continue
        if run.run_id in needed:
            spared.add(run.run_id)
        else:
            going[run.run_id] = run
            size -= run.size


def _age(run: Stored) -> tuple[float, str]:
    return (run.ended or 0.0, run.run_id)
