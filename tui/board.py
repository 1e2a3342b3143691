"""All runs of the project as the screen orders them: running, then queued, then finished."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Iterable
from enum import IntEnum
from typing import TYPE_CHECKING

from ..core.runs import RunSnapshot, RunStatus

if TYPE_CHECKING:
    from ..core.follow import Update

BULK = 64
"""From this many new runs on, sorting once is cheaper than inserting each."""


class Section(IntEnum):
    RUNNING = 0
    """Newest first."""
    QUEUED = 1
    """In the order in which they get their turn: oldest first."""
    FINISHED = 2
    """Newest first."""


class Board:
    """Snapshots by run id, and the row of each; a run id begins with its time, so ids sort by age."""

    def __init__(self) -> None:
        self._runs: dict[str, RunSnapshot] = {}
        self._sections: dict[Section, list[str]] = {section: [] for section in Section}
        """Ascending ids."""
        self.order = 0
        """Grows whenever a run has got another row than before."""
        self.tokens = 0
        self.cost = 0.0
        self.unseen: set[str] = set()
        """Runs that ended badly and were not looked at since: they need the operator."""

    def __len__(self) -> int:
        return len(self._runs)

    def __contains__(self, run_id: str) -> bool:
        return run_id in self._runs

    @property
    def active(self) -> int:
        """Rows of runs that are not finished; they are the first ones."""
        return len(self._sections[Section.RUNNING]) + len(self._sections[Section.QUEUED])

    def get(self, run_id: str | None) -> RunSnapshot | None:
        return self._runs.get(run_id) if run_id else None

    def apply(self, update: Update) -> None:
        """Take what changed; an update of many new runs is sorted in once."""
        for run_id in update.removed:
            self._forget(run_id)
        bulk = len(update.runs) > BULK
        for run in update.runs:
            self._put(run, bulk)
        if bulk:
            for ids in self._sections.values():
                ids.sort()
        self.mark_unseen(update.ended)

    def mark_unseen(self, ended: Iterable[RunSnapshot]) -> None:
        """Remember which of these ends the operator should look at."""
        self.unseen.update(run.run_id for run in ended if needs_operator(run))

    def run_at(self, row: int) -> RunSnapshot:
        """Answer the run of a row; raises IndexError beyond the last."""
        for section, ids in self._sections.items():
            if row < len(ids):
                return self._runs[ids[row] if section is Section.QUEUED else ids[-1 - row]]
            row -= len(ids)
        raise IndexError(row)

    def row_of(self, run_id: str | None) -> int | None:
        run = self.get(run_id)
        if run is None:
            return None
        before = 0
        for section, ids in self._sections.items():
            if section is _section(run):
                place = bisect_left(ids, run.run_id)
                return before + (place if section is Section.QUEUED else len(ids) - 1 - place)
            before += len(ids)
        return None

    def next_unseen(self, run_id: str | None, step: int) -> str | None:
        """Answer the run that needs the operator next below (step 1) or above (-1) a row, around the end."""
        rows = sorted(row for unseen in self.unseen if (row := self.row_of(unseen)) is not None)
        if not rows:
            return None
        here = self.row_of(run_id)
        if here is None:
            return self.run_at(rows[0]).run_id
        beyond = [row for row in rows if (row - here) * step > 0]
        chosen = (min(beyond) if step > 0 else max(beyond)) if beyond else (rows[0] if step > 0 else rows[-1])
        return self.run_at(chosen).run_id

    def _put(self, run: RunSnapshot, bulk: bool) -> None:
        old = self._runs.get(run.run_id)
        self._runs[run.run_id] = run
        self.tokens += run.usage.tokens - (old.usage.tokens if old else 0)
        self.cost += run.usage.cost - (old.usage.cost if old else 0.0)
        if old is not None and _section(old) is _section(run):
            return
        self.order += 1
        if old is not None:
            self._take_out(_section(old), run.run_id)
        if bulk:
            self._sections[_section(run)].append(run.run_id)
        else:
            insort(self._sections[_section(run)], run.run_id)

    def _forget(self, run_id: str) -> None:
        run = self._runs.pop(run_id, None)
        self.unseen.discard(run_id)
        if run is None:
            return
        self.order += 1
        self.tokens -= run.usage.tokens
        self.cost -= run.usage.cost
        self._take_out(_section(run), run_id)

    def _take_out(self, section: Section, run_id: str) -> None:
        ids = self._sections[section]
        place = bisect_left(ids, run_id)
        if place < len(ids) and ids[place] == run_id:
            del ids[place]
        else:  # within a bulk, new ids are still unsorted at the end
            ids.remove(run_id)


def _section(run: RunSnapshot) -> Section:
    match run.status:
        case RunStatus.RUNNING:
            return Section.RUNNING
        case RunStatus.QUEUED:
            return Section.QUEUED
        case _:
            return Section.FINISHED


def needs_operator(run: RunSnapshot) -> bool:
    """A failure does; an answer or an end that was ordered does not."""
    return run.status is RunStatus.FAILED
