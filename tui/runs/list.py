"""The list of the project's runs: running, queued, finished; a row for each run and for each group."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import TYPE_CHECKING

from textual import on
from textual.content import Content
from textual.geometry import Region
from textual.message import Message
from textual.worker import Worker

from ...core.run.columns import AGE, CHANGES, ELAPSED, RunColumn, Sort, sort_titled
from ..keys.command import Action, KeyContext
from ..keys.keymap import bindings, key_of
from ..layout_file import LayoutFile
from ..terminal.after_close import notify_failure
from ..widgets.line_view import CURSOR, RowList
from ._listing import Listing, Row
from ._rows import RowPainter, lower_edge, upper_edge
from ._shared_marks import SharedMarks
from .column_layout import Layout, for_listed, headings, layout
from .filter import Filter, parse_filter
from .order import MOST_FOLDED, ListLayout
from .seen import NEW, SEEN, SeenFile
from .store import RunStore

if TYPE_CHECKING:
    from ...core.project.follower import Update
    from ...core.run.snapshot import RunSnapshot
    from ..feed.bridge import Bridge
    from ._extent import Extent


LEAST_FOR_HEAD = 6
"""Lines of the list from which one of them is for the headings."""
WORDS_FROM = 140
"""Columns of the terminal from which a state may have its word."""
AGES_EVERY = 15
"""Seconds between two updates of the ages, which are in minutes."""

HINTS = (
    ("launch", "launch the highlighted preset or a one-off run"),
    ("presets", "go to the presets"),
    ("help", "show the keys"),
)


class RunList(RowList):
    """Keeps the cursor on a run or a group, by its id, while rows change around it."""

    BINDINGS = bindings(KeyContext.RUNS)

    class TextsSought(Message):
        """The filter needs different texts from the runs' files."""

        def __init__(self, texts: frozenset[str]) -> None:
            super().__init__()
            self.texts = texts

    def __init__(
        self,
        bridge: Bridge,
        run_store: RunStore,
        file: LayoutFile[ListLayout],
        seen: SeenFile,
        actions: Sequence[Action],
        columns: tuple[RunColumn, ...],
    ) -> None:
        """`file` stores filter, sort and folds between starts, `seen` the marks of read results."""
        super().__init__(id=KeyContext.RUNS)
        self._run_store = run_store
        self._file = file
        self._actions = actions
        self._edges = ("", "")
        self._drawn_order = -1
        self._columns = columns
        self._ticks = 0
        self.listing = Listing(run_store)
        """Its rows; changed only by methods of this list."""
        self._painter = RowPainter(run_store, self.listing)
        self.cursor_row: Row | None = None
        """The row of the cursor: a run or the head of a group; changed only by this list."""
        self._selected: str | None = None
        self._run_to_select: str | None = None
        """A run to select as soon as it appears."""
        self._ending: set[str] = set()
        """Runs that you are ending: the cursor does not follow them."""
        self._marks = SharedMarks(self, bridge, run_store, seen, self._news_changed)
        self._has_read = False
        """Whether the runs have been read."""

    def on_mount(self) -> None:
        self._show_edges()
        # After the first paint, which precedes the first run anyway.
        self.call_after_refresh(lambda: self.run_worker(self._recall_layout, exit_on_error=False))
        self._marks.begin()

    def show_columns(self, columns: tuple[RunColumn, ...]) -> None:
        """Show other columns from now on."""
        self._columns = columns
        self.refresh()

    def on_worker_state_changed(self, event: Worker.StateChanged) -> None:
        notify_failure(self, event)

    async def _recall_layout(self) -> None:
        """Restore the layout, except an invalid filter or one replaced in the meantime."""
        saved = await asyncio.to_thread(self._file.read)
        if saved.sort or saved.backwards or saved.folded:
            self.order_by(sort_titled(saved.sort), saved.folded, backwards=saved.backwards)
        if saved.filter and parse_filter(saved.filter).error is None and not self.listing.filter:
            self.filter_by(saved.filter)

    # --- content -----------------------------------------------------------------------------------------------------

    def keep_layout(self) -> None:
        """Save the layout of the list for the next start."""
        self.run_worker(partial(self._file.keep, self._list_layout), exit_on_error=False)

    def _list_layout(self) -> ListLayout:
        folded = tuple(sorted(self.listing.folded, reverse=True)[:MOST_FOLDED])
        return ListLayout(self.listing.filter.text, self.listing.sort.title, folded, self.listing.backwards)

    @property
    def selected(self) -> str | None:
        """The shown run: the one at the cursor; for the head of a group, the first running one."""
        return self._selected

    @property
    def targets(self) -> tuple[RunSnapshot, ...]:
        """The runs that an action applies to: the marked ones, otherwise those of the highlighted row."""
        ids: Iterable[str] = self._run_store.marked or (
            self.listing.runs_in(self.cursor_row) if self.cursor_row else ()
        )
        ordered = sorted(ids, key=self.listing.key_of)
        return tuple(run for run_id in ordered if (run := self._run_store.get(run_id)))

    @property
    def row_count(self) -> int:
        return len(self.listing)

    def empty_lines(self) -> list[str]:
        if not self._has_read:
            return []
        if self.listing.filter:
            return ["No runs match the filter.", "", f"  {key_of('back', self._actions)}  clears the filter"]
        from ..keys.help import hint_lines

        width = max(10, self.scrollable_content_region.width - 1)
        return ["No runs yet.", "", *hint_lines(self._actions, HINTS, width)]

    # --- the cursor --------------------------------------------------------------------------------------------------

    def cursor_moved(self) -> None:
        self._run_to_select = None
        self._go(self.listing.row(self.cursor))

    def select(self, run_id: str) -> None:
        """Move the cursor to a run, even if it is folded or hidden, at once or when it appears."""
        if run_id not in self._run_store:
            self._run_to_select = run_id
            return
        self._run_to_select = None
        group_key = self.listing.group_key_of(run_id)
        self._keep_view(lambda: self.listing.pin(run_id))
        if group_key in self.listing.folded:
            self._keep_view(lambda: self.listing.fold(group_key, False))
        if (row := self.listing.row_of(run_id)) is not None:
            self.cursor = self.listing.index_of(row) or 0
            self._go(row)
            self.show_cursor()
            self.refresh()

    def go_beside(self, step: int) -> None:
        """Go to the next row (-1: the previous one) that shows another run."""
        row = self.cursor + step
        while 0 <= row < self.row_count and self._run_of(self.listing.row(row)) == self._selected:
            row += step
        if 0 <= row < self.row_count:
            self.move_to(row)

    def fold(self, folded: bool) -> bool:
        """Fold the highlighted group, or unfold it; return whether there is one."""
        group_key = self.cursor_row.group_key if self.cursor_row else ""
        if self.listing.group(group_key) is None:
            return False
        if folded:
            self.cursor_row = Row(group_key, "")
            self.cursor = self.listing.index_of(self.cursor_row) or 0
        self._keep_view(lambda: self.listing.fold(group_key, folded))
        self.show_cursor()
        return True

    # --- changes -----------------------------------------------------------------------------------------------------

    def runs_changed(self, update: Update) -> None:
        """Redraw after an update of the run store: all rows if their order changed, otherwise only the changed ones."""
        if not self._has_read:
            self._has_read = True
            self.refresh()
        self._keep_view(partial(self._take, update))
        if self._run_to_select is not None and self._run_to_select in self._run_store:
            self.select(self._run_to_select)
        if len(update.runs) > self.size.height:
            self.refresh()
            return
        for run in update.runs:
            self._refresh_row(Row(self.listing.group_key_of(run.run_id), run.run_id))
            self._refresh_row(Row(self.listing.group_key_of(run.run_id), ""))

    def stay_beside(self, run_ids: Iterable[str]) -> None:
        """Keep the cursor in place when these runs, which you are ending, move in the list."""
        self._ending.update(run_ids)

    def _take(self, update: Update) -> None:
        run = self._run_store.get(self.cursor_row.run_id) if self.cursor_row else None
        self.listing.take(update)
        if run is None or not run.has_ended or run.run_id not in self._ending:
            return
        self._ending.discard(run.run_id)
        if self.cursor < self.row_count and self.listing.row(self.cursor) != self.cursor_row:
            self._go(self.listing.row(self.cursor))

    def filter_by(self, text: str, prefer: str | None = None) -> Filter:
        """Show the runs that pass the valid terms of a filter, with the cursor on `prefer` if it is shown."""
        parsed = parse_filter(text)
        if parsed.sought != self.listing.filter.sought:
            self.post_message(self.TextsSought(parsed.sought))

        def change() -> None:
            self.listing.filter_by(parsed)
            row = self.listing.row_of(prefer) or self.listing.row_of(self._selected)
            self.cursor_row = row
            self.cursor = 0 if row is None else self.listing.index_of(row) or 0

        self._keep_view(change)
        self.listing.pin(self._selected)
        return parsed

    def order_by(self, sort: Sort, folded: Iterable[str] = (), *, backwards: bool = False) -> None:
        """Sort the rows; fold these groups, even if they appear later."""

        def change() -> None:
            for group_key in folded:
                self.listing.fold(group_key, True)
            self.listing.sort_by(sort, backwards=backwards)

        self._keep_view(change)

    def mark(self, run_ids: Iterable[str], marked: bool) -> None:
        """Mark these runs, or remove their marks."""
        ids = tuple(run_ids)
        (self._run_store.marked.update if marked else self._run_store.marked.difference_update)(ids)
        self._refilter(ids)

    def refilter(self, run_ids: Iterable[str]) -> None:
        """Filter these runs again after a change outside their snapshots."""
        self._refilter(run_ids)

    def mark_ended(self, ended: Iterable[RunSnapshot]) -> None:
        """Mark just finished background runs as unread if their clock is behind the clock of the marks."""
        marks = self._run_store.marks
        behind = [
            run
            for run in ended
            if run.meta.background and marks.mark_of(run.run_id) is None and not marks.is_unread(run)
        ]
        if behind:
            self.mark_unseen(behind)

    def mark_unseen(self, ended: Iterable[RunSnapshot]) -> None:
        """Mark results as unread, also for other windows and the next start."""
        runs = tuple(ended)
        self._run_store.mark_unseen(runs)
        self._marks.write(NEW, [run.run_id for run in runs if self._run_store.is_unseen(run.run_id)])
        self._refilter(run.run_id for run in runs)

    def mark_seen(self, run_id: str | None) -> None:
        """Record that a run is being looked at; a finished run's result becomes read, also in other windows."""
        if run_id is None:
            return
        if self._run_store.silence.mark_seen(run_id):
            self._refilter((run_id,))
        if self._run_store.mark_seen(run_id):
            self._refilter((run_id,))
            self._marks.write(SEEN, [run_id])

    def tick(self) -> None:
        """Redraw what time changes on the screen: times of unfinished runs, idle times, now and then ages."""
        top = self.scroll_offset.y
        shown = self.layout_at(self.scrollable_content_region.width - len(CURSOR))
        active = min(self.listing.active - top, self.rows_height)
        self._refresh_column(shown, ELAPSED, active)
        self._ticks += 1
        if self._ticks % AGES_EVERY == 0:
            self._refresh_column(shown, AGE, min(self.row_count - top, self.rows_height))
        if silent := self._run_store.silence.silent:
            for row in range(top, top + active):
                if self.listing.row(row).run_id in silent:
                    self.refresh_row(row)

    def changing_in_sight(self) -> list[RunSnapshot]:
        """Return the running runs whose changes are visible on the screen."""
        width = self.scrollable_content_region.width - len(CURSOR)
        extent = self.listing.extent.with_column(CHANGES)  # the first one brings the column
        if not self.is_on_screen or not self.screen.is_current or not self._layout_for(width, extent).span_of(CHANGES):
            return []
        top = self.scroll_offset.y
        rows = range(top, min(top + self.rows_height, self.listing.active))
        shown = (self._run_store.get(self.listing.row(row).run_id) for row in rows)
        return [run for run in shown if run and not run.has_ended]

    def redraw(self, run_ids: Iterable[str]) -> None:
        """Redraw the rows of these runs after a change outside their snapshots."""
        self._keep_view(partial(self.listing.take_changing, run_ids))
        for run_id in run_ids:
            self._refresh_row(Row(self.listing.group_key_of(run_id), run_id))

    def _refresh_column(self, shown: Layout, column: RunColumn, height: int) -> None:
        span = shown.span_of(column)
        if span is not None and height > 0:
            self.refresh(Region(len(CURSOR) + span.start, self.head_height, span.width, height))

    # --- drawing -----------------------------------------------------------------------------------------------------

    @property
    def wants_head(self) -> bool:
        return bool(self.row_count) and self.scrollable_content_region.height >= LEAST_FOR_HEAD

    def layout_at(self, width: int) -> Layout:
        """Return the columns of rows of this width."""
        return self._layout_for(width, self.listing.extent)

    def _layout_for(self, width: int, extent: Extent) -> Layout:
        listing = self.listing
        columns = for_listed(self._columns, remote=listing.has_remote, agents=listing.has_several_agents)
        return layout(width, columns, extent, words=self.app.size.width >= WORDS_FROM)

    def head_line(self, width: int) -> str:
        return headings(self.layout_at(width), self.listing.sort, backwards=self.listing.backwards)

    @on(RowList.HeadClicked)
    def sort_by_column(self, click: RowList.HeadClicked) -> None:
        """Sort by the column of a heading; if it is the current one, reverse the order."""
        column = self.layout_at(self.scrollable_content_region.width - len(CURSOR)).column_at(click.x)
        sort = None if column is None else column.sort
        if sort is not None:
            self.order_by(sort, backwards=sort is self.listing.sort and not self.listing.backwards)
            self.keep_layout()

    def row_segments(self, row: int, width: int) -> list[tuple[str, str]]:
        return self._painter.cells(self.listing.row(row), self.layout_at(width))

    def _show_edges(self) -> None:
        edges = (
            upper_edge(self.listing, len(self._run_store)),
            lower_edge(self._run_store, self.listing, self._actions),
        )
        if edges != self._edges:
            self._edges = edges
            self.border_title, self.border_subtitle = (Content(edge) for edge in edges)

    def _refresh_row(self, row: Row) -> None:
        index = self.listing.index_of(row)
        if index is not None:
            self.refresh_row(index)

    # --- keeping the view --------------------------------------------------------------------------------------------

    def _keep_view(self, change: Callable[[], None]) -> None:
        """Change rows without moving the visible part: the cursor's row, or the first one if that is out of view."""
        top, height = self.scroll_offset.y, self.rows_height
        anchored = top <= self.cursor < top + height
        first = self.listing.row(top) if not anchored and 0 <= top < self.row_count else None
        distance = self.cursor - top
        change()
        self._find_cursor()
        self.set_height()
        if anchored:
            new_top = top if top == 0 and self.cursor < height else self.cursor - distance
        else:
            index = self.listing.index_of(first) if first and top else None
            new_top = top if index is None else index
        new_top = max(0, min(new_top, self.row_count - height))
        if new_top != top:
            self.scroll_to(y=new_top, animate=False, force=True)
        self._show_edges()
        if self._drawn_order != self.listing.order:
            self._drawn_order = self.listing.order
            self.refresh()

    def _find_cursor(self) -> None:
        """Move the cursor to its row, otherwise to its run, otherwise to the row that is now in its place."""
        row = self.cursor_row
        index = self.listing.index_of(row) if row else None
        if index is None and (row := self.listing.row_of(self._selected)) is not None:
            index = self.listing.index_of(row)
        if index is None:
            self.cursor = max(0, min(self.cursor, self.row_count - 1))
            self._go(self.listing.row(self.cursor) if self.row_count else None)
        elif row != self.cursor_row or self._selected not in self.listing.runs_in(row or Row("", "")):
            self.cursor = index
            self._go(row)
        else:
            self.cursor = index

    def _go(self, row: Row | None) -> None:
        """Select a row's run."""
        self.cursor_row = row
        run_id = self._run_of(row) if row else None
        if run_id == self._selected:
            return
        self._selected = run_id
        self.post_message(self.Highlighted())
        self._keep_view(lambda: self.listing.pin(run_id))

    def _run_of(self, row: Row) -> str | None:
        """Return a row's run; for the head of a group, the first running one."""
        runs = self.listing.runs_in(row)
        running = (run_id for run_id in runs if (run := self._run_store.get(run_id)) and run.status == "running")
        return next(running, runs[0] if runs else None)

    def _refilter(self, run_ids: Iterable[str]) -> None:
        self._keep_view(lambda: self.listing.refilter(run_ids))
        self.refresh()

    def _news_changed(self, run_ids: set[str]) -> None:
        self._refilter(run_ids)
        self.post_message(self.Highlighted())
