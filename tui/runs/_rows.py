"""The texts of the run list's rows, column by column, and of the list's edges; pure."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from time import monotonic
from typing import TYPE_CHECKING, NamedTuple

from ...core.run.columns import AGE, ELAPSED, NOW, PRESET, STATE, TASK, RunColumn, RunView
from ...core.run.describe import FOREIGN
from ...core.run.model import RunStatus
from ...core.run.need import Need
from ...core.run.snapshot import RunSnapshot
from ...core.text.plain import one_line
from ...core.text.visible import recounted
from ..keys.actions import ACTIONS
from ..keys.command import Action
from ..keys.keymap import key_of
from ..text.cells import cells as cells_of
from ..text.format import tries
from .column_layout import GUTTER, ColumnSpan, Layout, cell
from .order import GroupFacts
from .store import RunStore

if TYPE_CHECKING:
    from ._listing import Listing, Row

Cell = tuple[str, str]
"""A text and the component class of its colour; empty for none."""

NEEDS_YOU = "!"
UNREAD = Need.NEW.glyph
ASKS = Need.ASKS.glyph
MARK = "◆"
FOLDED, UNFOLDED = "▸", "▾"
MEMBER, LAST_MEMBER = "│", "╰"

_MUTED = "row-list--muted"
_SILENT = "row-list--silent"
_WAITING = "row-list--waiting"

_CALM = {False: (UNREAD, _MUTED), True: (ASKS, "row-list--aborted")}
"""The sign of an unread result, by whether it is a question."""


class RowFlags(NamedTuple):
    """The state of a row beside its run."""

    needs_you: bool = False
    unread: bool = False
    marked: bool = False
    tree: str = " "
    """Its place in a group."""
    asks: bool = False
    """Whether its unread answer is a question."""
    silence: int | None = None
    """Seconds for which it has been idle; None if it is not."""
    waiting: bool = False
    """Whether it waits for a reply."""
    common: int = 0
    """Characters at the beginning of its task that are in the head of its group."""
    changed: str = ""
    """The figure of its changes so far, while it is running."""

    def cells(self) -> list[Cell]:
        if self.waiting:
            return [(NEEDS_YOU, _WAITING), self._mark_or_tree]
        calm = _CALM[self.asks] if self.unread else (" ", _MUTED)
        loud = "row-list--failed" if self.silence is None else _SILENT
        attention = (NEEDS_YOU, loud) if self.needs_you else calm
        return [attention, self._mark_or_tree]

    @property
    def _mark_or_tree(self) -> Cell:
        return (MARK, "row-list--running") if self.marked else (self.tree, _MUTED)


class RunRow:
    """The row of a run as it is now; only its times are drawn again."""

    def __init__(self, run: RunSnapshot, flags: RowFlags, layout: Layout) -> None:
        self.shows = (run, flags, layout)
        self._cells = flags.cells()
        self._times: list[tuple[int, ColumnSpan]] = []
        """Indexes of the cells that change with time."""
        colour = _colour_of(run, flags)
        loud = colour if run.status is RunStatus.FAILED or colour in (_SILENT, _WAITING) else _MUTED
        colours = _colours(colour, loud)
        note = _note(run, layout)
        noted = None if not note else NOW if layout.span_of(NOW) else TASK
        view = RunView(run, flags.silence, common=flags.common, changed=flags.changed, brief=layout.brief)
        for span in layout.spans:
            column, _, width = span
            if column.time:
                self._times.append((len(self._cells), span))
            text = column.text(view)
            if column is noted:
                text = f"{note} · {text}"
            if column.counted and run.is_waiting:
                text = recounted(text, max(0, width - GUTTER), cells_of)
            self._cells.append((cell(text, width, column), colours[column.tone]))

    def is_of(self, run: RunSnapshot, flags: RowFlags, layout: Layout) -> bool:
        """Return whether the row shows this very snapshot, in this way."""
        return self.shows[0] is run and self.shows[1:] == (flags, layout)

    def cells(self, now: datetime) -> list[Cell]:
        cells = self._cells.copy()
        for index, (column, _, width) in self._times:
            if column.time:
                cells[index] = (cell(column.time(self.shows[0], now), width, column), cells[index][1])
        return cells


def _colours(state: str, news: str) -> dict[str, str]:
    """Return the component class of each tone of a column."""
    return {"muted": _MUTED, "plain": "", "state": state, "news": news}


def _colour_of(run: RunSnapshot, flags: RowFlags) -> str:
    if run.foreign:
        return _MUTED
    if flags.waiting:
        return _WAITING
    return _colour(run.status) if flags.silence is None else _SILENT


def _note(run: RunSnapshot, layout: Layout) -> str:
    """Return what no column has: the attempt, and that a run is untrusted if its state has no word."""
    return " · ".join(filter(None, (FOREIGN if run.foreign and not layout.has_word else "", tries(run))))


def head_cells(group: GroupFacts, flags: RowFlags, layout: Layout, now: datetime) -> list[Cell]:
    """Return the row of a whole group."""
    colours = _colours(_WAITING if group.waiting else _colour(group.status), _MUTED)
    cells = flags.cells()
    for column, _, width in layout.spans:
        text = _head_text(group, column, layout, width, now)
        cells.append((cell(text, width, column), colours[column.tone]))
    return cells


def _head_text(group: GroupFacts, column: RunColumn, layout: Layout, width: int, now: datetime) -> str:
    if column is STATE:
        return group.state
    if column is PRESET:
        return _named(group, width - GUTTER)
    if column is NOW:
        return _tally(group, width - GUTTER)
    if column is TASK:
        tally = "" if layout.span_of(NOW) else f"{_tally(group, width - GUTTER)}  "
        return f"{tally}{group.about}"
    if column is AGE:
        return group.age(now)
    return group.elapsed(now) if column is ELAPSED else group.texts[column.name]


def _named(group: GroupFacts, room: int) -> str:
    """Return preset and number; only the preset is cut."""
    size = f" {group.size}"
    title = group.title
    title_room = room - cells_of(size)
    if cells_of(title) > title_room:
        title = cell(title, max(0, title_room) + GUTTER, PRESET)[GUTTER:]
    return f"{title}{size}" if title_room > 1 else group.size


def _tally(group: GroupFacts, room: int) -> str:
    """Return the states of the runs, in words if they fit."""
    return group.tally if cells_of(group.tally) <= room else group.short_tally


def _colour(status: RunStatus) -> str:
    return _MUTED if status is RunStatus.QUEUED else f"row-list--{status.value}"


FILTER_SHOWN = 40
"""Characters of a filter in the title."""


def upper_edge(listing: Listing, count: int) -> str:
    """Return `Runs · 12 of 240 · status:failed · by cost`; defaults are omitted."""
    parts = ["Runs"]
    if listing.filter:
        parts += [f"{listing.shown} of {count}", f"/ {one_line(listing.filter.text, FILTER_SHOWN)}"]
    if listing.sort.title or listing.backwards:
        parts.append((listing.sort.title or "by age") + (", reversed" if listing.backwards else ""))
    return " · ".join(parts)


def lower_edge(run_store: RunStore, listing: Listing, actions: Sequence[Action] = ACTIONS) -> str:
    """Return `3 selected, 1 hidden · 2 need you  ] next`."""
    parts: list[str] = []
    if run_store.marked:
        hidden = sum(listing.row_of(run_id) is None for run_id in run_store.marked)
        parts.append(f"{len(run_store.marked)} selected" + (f", {hidden} hidden" if hidden else ""))
    if count := len(run_store.needs_you):
        verb = "needs" if count == 1 else "need"
        parts.append(f"{count} {verb} you  {key_of('next_unseen', actions)} next")
    return " · ".join(parts)


# --- painting --------------------------------------------------------------------------------------------------------

MOST_ROWS = 500
"""Drawn rows that are kept."""


class RowPainter:
    def __init__(self, run_store: RunStore, listing: Listing) -> None:
        self._run_store = run_store
        self._listing = listing
        self._rows: dict[str, RunRow] = {}
        """By run id."""

    def cells(self, row: Row, layout: Layout) -> list[Cell]:
        """Return the texts of a row, each with the component class of its colour."""
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
            asks=not store.questions.isdisjoint(members),
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
