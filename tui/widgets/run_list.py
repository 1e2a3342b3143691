"""The runs of the project: running, queued, finished, one row each."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

from textual.content import Content
from textual.geometry import Region

from ...core.describe import doing, elapsed, state, tokens
from ...core.plain import one_line
from ..actions import Place, bindings
from ..board import Board
from ..messages import RunHighlighted
from ..present import fit, tries
from .row_list import RowList

if TYPE_CHECKING:
    from ...core.follow import Update

STATE_WIDTH = 11
TIME_WIDTH = 7
TOKENS_WIDTH = 6
NARROW = 60
"""Below this many cells the list leaves out what a run does now: state, preset and task tell more."""

EMPTY = [
    "No runs yet.",
    "",
    "  n  launch the highlighted preset    N  run a task without a preset",
    "  1  go to the presets                ?  every key",
]


class RunList(RowList):
    """Keeps the selection on a run, by its id, whatever happens around it."""

    BINDINGS = bindings(Place.RUNS)

    def __init__(self, board: Board) -> None:
        super().__init__(id=Place.RUNS)
        self._board = board
        self._drawn_order = -1
        self._selected: str | None = None
        self._wanted: str | None = None
        """A run to be selected as soon as the engine tells of it."""

    @property
    def selected(self) -> str | None:
        return self._selected

    @property
    def row_count(self) -> int:
        return len(self._board)

    def empty_lines(self) -> list[str]:
        return EMPTY

    def cursor_moved(self) -> None:
        self._wanted = None
        self._select(self._board.run_at(self.cursor).run_id)

    def select(self, run_id: str) -> None:
        """Put the cursor on a run, at once or when it appears."""
        row = self._board.row_of(run_id)
        if row is None:
            self._wanted = run_id
            return
        self._wanted = None
        self.cursor = row
        self._select(run_id)
        self.show_cursor()
        self.refresh()

    def runs_changed(self, update: Update) -> None:
        """Redraw after the board took an update: all rows when their order changed, else only those of changed runs."""
        before = self.cursor
        self._keep_selection()
        reordered, self._drawn_order = self._drawn_order != self._board.order, self._board.order
        self.set_height()
        if self.cursor != before and self.scroll_offset.y:
            self.scroll_to(y=max(0, self.scroll_offset.y + self.cursor - before), animate=False)
        self._tell_unseen()
        if reordered or len(update.runs) > self.size.height:
            self.refresh()
            return
        for run in update.runs:
            self._refresh_row(self._board.row_of(run.run_id))

    def mark_seen(self, run_id: str | None) -> None:
        """Take a run off those that need the operator: it is being looked at."""
        if run_id is not None and run_id in self._board.unseen:
            self._board.unseen.discard(run_id)
            self._tell_unseen()
            self.refresh()

    def tick(self) -> None:
        """Redraw the rows whose time goes on, if any of them is on screen."""
        top = self.scroll_offset.y
        height = min(self._board.active - top, self.scrollable_content_region.height)
        if height > 0:
            self.refresh(Region(0, 0, self.size.width, height))

    def row_segments(self, row: int, width: int) -> list[tuple[str, str]]:
        run = self._board.run_at(row)
        colour = "row-list--muted" if run.status == "queued" else f"row-list--{run.status}"
        unseen = "!" if run.run_id in self._board.unseen else " "
        figures = TIME_WIDTH + TOKENS_WIDTH + 1
        room = width - STATE_WIDTH - 2 - figures
        preset_width = max(6, min(14, room // 4))
        rest = max(0, room - preset_width - 2)
        wide, again = width >= NARROW, tries(run)
        task_width = rest // 2 if wide else rest
        told = one_line(run.meta.description or run.meta.task, 400)
        segments = [
            (unseen, "row-list--failed"),
            (fit(state(run), STATE_WIDTH), colour),
            (" " + fit(one_line(run.meta.title, 60), preset_width), ""),
            (" " + fit(f"{again} · {told}" if again and not wide else told, task_width), ""),
        ]
        if wide:
            muted = "row-list--muted" if run.status != "failed" else colour
            now = f"{again} · {doing(run)}" if again else doing(run)
            segments.append((" " + fit(now, rest - task_width), muted))
        segments.append((fit(elapsed(run, datetime.now(UTC)), TIME_WIDTH + 1, right=True), ""))
        segments.append((fit(tokens(run.usage.tokens), TOKENS_WIDTH, right=True), "row-list--muted"))
        return segments

    def _keep_selection(self) -> None:
        if self._wanted is not None and self._wanted in self._board:
            self.select(self._wanted)
            return
        if not self.row_count:
            self.cursor = 0
            self._select(None)
            return
        row = self._board.row_of(self._selected)
        if row is None:
            self.cursor = min(self.cursor, self.row_count - 1)
            self._select(self._board.run_at(self.cursor).run_id)
        else:
            self.cursor = row

    def _select(self, run_id: str | None) -> None:
        if run_id != self._selected:
            self._selected = run_id
            self.post_message(RunHighlighted(run_id))

    def _refresh_row(self, row: int | None) -> None:
        y = -1 if row is None else row - self.scroll_offset.y
        if 0 <= y < self.size.height:
            self.refresh(Region(0, y, self.size.width, 1))

    def _tell_unseen(self) -> None:
        unseen = len(self._board.unseen)
        verb = "needs" if unseen == 1 else "need"
        self.border_subtitle = Content(f"{unseen} {verb} you  ] next") if unseen else ""
