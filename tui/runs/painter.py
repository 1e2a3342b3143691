"""Draws the rows of the run list, and keeps those that were drawn: of most only the times change."""

from __future__ import annotations

from datetime import UTC, datetime
from time import monotonic
from typing import TYPE_CHECKING

from .columns import Layout
from .rows import FOLDED, LAST_MEMBER, MEMBER, UNFOLDED, Cell, RowFlags, RunRow, head_cells
from .store import Need, RunStore

if TYPE_CHECKING:
    from ...core.run.snapshot import RunSnapshot
    from .listing import Listing, Row
    from .order import GroupFacts

MOST_ROWS = 500
"""Drawn rows that are kept."""


class RowPainter:
    def __init__(self, run_store: RunStore, listing: Listing) -> None:
        self._run_store = run_store
        self._listing = listing
        self._rows: dict[str, RunRow] = {}
        """By run id."""

    def cells(self, row: Row, layout: Layout) -> list[Cell]:
        """Return the texts of a row, each with the component class that colours it."""
        now = datetime.now(UTC)
        group = self._listing.group(row.group_key)
        run = self._run_store.get(row.run_id)
        if run is not None:
            return self._row_of(run, self._flags_of(run, group), layout).cells(now)
        return [] if group is None else head_cells(group, self._head_flags(row.group_key, group), layout, now)

    def _flags_of(self, run: RunSnapshot, group: GroupFacts | None) -> RowFlags:
        store, run_id = self._run_store, run.run_id
        need = store.need(run_id)
        silence = run.silence(monotonic()) if run_id in store.silence.silent else None
        return RowFlags(
            needs_you=need in (Need.FAILED, Need.SILENT),
            unread=need in (Need.ASKS, Need.NEW),
            marked=run_id in store.marked,
            tree=" " if group is None else LAST_MEMBER if group.members[-1] == run_id else MEMBER,
            asks=need is Need.ASKS,
            silence=None if silence is None else int(silence),
            waiting=need is Need.WAITING,
            common=group.common if group else 0,
            changed=changes.figure if (changes := store.changing.get(run_id)) else "",
        )

    def _head_flags(self, group_key: str, group: GroupFacts) -> RowFlags:
        store, members = self._run_store, group.members
        is_failed = not store.unseen.isdisjoint(members)
        is_silent = not store.silence.needing.isdisjoint(members)
        return RowFlags(
            needs_you=is_failed or is_silent,
            unread=not store.unread.isdisjoint(members),
            marked=store.marked.issuperset(members),
            tree=FOLDED if group_key in self._listing.folded else UNFOLDED,
            asks=any(store.need(run_id) is Need.ASKS for run_id in store.unread.intersection(members)),
            silence=0 if is_silent and not is_failed else None,
            waiting=not store.waiting.isdisjoint(members),
        )

    def _row_of(self, run: RunSnapshot, flags: RowFlags, layout: Layout) -> RunRow:
        row = self._rows.get(run.run_id)
        if row is None or not row.is_of(run, flags, layout):
            if len(self._rows) >= MOST_ROWS:
                self._rows.clear()
            row = self._rows[run.run_id] = RunRow(run, flags, layout)
        return row
