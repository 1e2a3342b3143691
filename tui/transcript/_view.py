"""A document with a cursor; its end is followed until you move up."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any, ClassVar

from rich.segment import Segment
from textual.events import Click, Resize
from textual.geometry import Size
from textual.strip import Strip

from ...core.system.line_file import Chunk
from ..feed.lines import TranscriptEntry
from ..terminal.textual_internals import grow
from ..widgets.line_view import LineView
from ._document import Document
from ._rows import COMPONENTS, CURSOR_STYLE, TIME_STYLE, Painter, TextPosition

LEAST_FOR_TIMES = 36
"""Columns; with fewer, lines begin without their time."""
NO_TIME = 2
"""Cells in front of a line without one."""


class DocumentView(LineView, can_focus=True, inherit_bindings=False):
    """Lays out and draws the visible part, moves in it and opens its lines."""

    COMPONENT_CLASSES: ClassVar[set[str]] = COMPONENTS

    def __init__(self, name: str) -> None:
        super().__init__(id=name)
        self.document = Document()
        self.following = True
        self.wrapped = True
        """Whether long lines are wrapped; changed only by `set_wrap`."""
        self.live_rows: Sequence[str] = ()
        """Rows after the document: text being written."""
        self.live_is_written = True
        """Whether it is still being written; if so, a cursor is at its end."""
        self._cursor: TextPosition | None = None
        """Where the cursor is while the end is not followed."""
        self._pending_offset: int | None = None
        """A byte to show as soon as the lines before it are counted."""
        self._opened_for_words: int | None = None
        """The line opened only by `show_words`."""
        self._painter = Painter(self.style_of)
        self._settling = False
        """Whether the view is moved by its content, not by you."""
        self._short_of: int | None = None
        """The row to which the view could not scroll for lack of room; tried again once."""

    def on_mount(self) -> None:
        super().on_mount()
        self.anchor()

    # --- laying out ----------------------------------------------------------------------------------------------

    def open_document(self, document: Document) -> None:
        """Show another document, from its end."""
        self.document = document
        self._cursor = self._pending_offset = None
        self._painter.forget_rows()
        self.lay_out()

    def set_wrap(self, wrapped: bool) -> None:
        self.wrapped = wrapped
        self.styles.overflow_x = "hidden" if wrapped else "auto"
        self.lay_out()

    def highlight(self, words: re.Pattern[str] | None) -> None:
        """Mark the matches in the rows; None ends it."""
        self._painter.highlight(words)
        self.refresh()

    @property
    def _indent(self) -> int:
        """Cells in front of the lines; a narrow screen has none for the time."""
        view = self.document.view
        return view.indent if self.scrollable_content_region.width >= LEAST_FOR_TIMES else min(view.indent, NO_TIME)

    def scroll_to(self, x: float | None = None, y: float | None = None, **options: Any) -> None:
        """Scroll without animation: rows may move while new ones are laid out."""
        super().scroll_to(x, y, animate=False, force=bool(options.get("force")))

    def on_resize(self, event: Resize) -> None:
        self.lay_out()

    def lay_out(self) -> None:
        """Cut rows again for the present width."""
        width = max(10, self.scrollable_content_region.width - self._indent) if self.wrapped else 0
        self._lay_out_by(partial(self.document.lay_out, width))

    def _lay_out_by(self, lay_out: Callable[[int | None], None]) -> None:
        """Keep the visible part in place: the line of the cursor, otherwise the first one, whose offset `lay_out`
        gets.
        """
        anchor, y = self.document.position_at(self.scroll_offset.y), 0
        if not self.following and self._cursor is not None:
            cursor_y = self.document.row_of(self._cursor) - self.scroll_offset.y
            if 0 <= cursor_y < self.scrollable_content_region.height:
                anchor, y = self._cursor, cursor_y
        lay_out(anchor.offset if anchor else None)
        self._painter.forget_rows()
        self.settle(self.document.row_of(anchor) - y if anchor else None)

    def settle(self, top: int | None = None, *, at_end: bool | None = None) -> None:
        """Lay out and draw the visible part, at row `top` or in place, without jumps."""
        height = max(1, self.scrollable_content_region.height)
        at_end = self.following if at_end is None else at_end
        first_row = self.scroll_offset.y if top is None else top
        y = self.document.settle(first_row, height, len(self.live_rows), at_end=at_end)
        view = max(1, self.scrollable_content_region.width)
        width = view if self.wrapped else max(view, self._indent + self.document.longest)
        grow(self, Size(width, self.document.height + len(self.live_rows)))
        self.refresh()
        self._make_bodies()
        if y != self.scroll_y:
            self._settling = True
            self.scroll_y = self.scroll_target_y = y
            self._settling = False
            short_of, self._short_of = self._short_of, y if self.scroll_offset.y < y else None
            if at_end and self._short_of not in (None, short_of):
                self.call_after_refresh(self.settle)  # there is room to scroll only after the next layout

    def _make_bodies(self) -> None:
        """Make slow bodies of the laid out lines in a thread."""
        offsets, self.document.laborious = self.document.laborious, set()
        if offsets:
            self.run_worker(partial(self._show_bodies, self.document, offsets), exit_on_error=False)

    async def _show_bodies(self, document: Document, offsets: Iterable[int]) -> None:
        for offset in sorted(offsets):
            if document is not self.document:
                return
            body = await asyncio.to_thread(document.make_body, offset)
            if document is self.document:
                self._lay_out_by(lambda _, offset=offset, body=body: document.take_body(offset, body))
                if offset == self.cursor_offset and not self.following:
                    self._show_body()

    def render_line(self, y: int) -> Strip:
        row = self.scroll_offset.y + y
        if (below := row - self.document.height) >= 0:
            if below >= len(self.live_rows):
                return self.strip(())
            is_end = self.live_is_written and below == len(self.live_rows) - 1
            return self.strip(self._painter.live(self.live_rows[below], self._indent, last=is_end))
        laid_out = self.document.laid_out_row(row)
        if laid_out is None:
            return self.strip(())
        pointed = self.following and self.has_focus and below == -1
        cursor = not self.following and laid_out.position == self._cursor
        segments = self._painter.row(laid_out, self._indent, cursor=cursor, pointed=pointed)
        if laid_out.entry.message and laid_out.part == 0 and (state := self.message_state(laid_out.entry)):
            room = self.scrollable_content_region.width - sum(segment.cell_length for segment in segments)
            segments.append(Segment(f"  {state}".rjust(max(0, room)), self.style_of(TIME_STYLE)))
        return self.strip(segments, self.style_of(CURSOR_STYLE) if cursor else None)

    def message_state(self, entry: TranscriptEntry) -> str:
        """Return a message's outcome; empty if it is unknown."""
        return self.document.states.get(entry.message, "")

    # --- the cursor ----------------------------------------------------------------------------------------------

    def put_before(self, chunks: Sequence[Chunk]) -> None:
        """Add chunks before the known ones, without moving the visible part."""
        moved = self.document.put_before(chunks)
        if not self.following:
            self.settle(self.scroll_offset.y + moved)
        if self._pending_offset is not None:
            self.show_offset(self._pending_offset)

    @property
    def cursor(self) -> TextPosition | None:
        """The row that keys apply to; the last one while the end is followed."""
        return self.document.last() if self.following or self._cursor is None else self._cursor

    @property
    def cursor_offset(self) -> int | None:
        """Offset of the line under the cursor; of the last one while the end is followed."""
        cursor = self.cursor
        return cursor.offset if cursor else None

    def row_text_at_cursor(self) -> str:
        """Return the text of the row under the cursor."""
        cursor = self.cursor
        rows_and_entry = self.document.entry_at(cursor.offset) if cursor else None
        if cursor is None or rows_and_entry is None:
            return ""
        rows = rows_and_entry[0].cut(rows_and_entry[1])
        return rows[min(cursor.part, len(rows) - 1)].text

    def show_offset(self, offset: int) -> None:
        """Stop following, and move the cursor to the line at this byte, or to the next shown one."""
        self.follow(False)
        if offset < self.document.table.start:
            self._pending_offset = offset  # its lines are not counted yet
            return
        self._pending_offset = None
        self._put_cursor(self.document.nearest(offset))

    def show_words(self, words: str) -> None:
        """Move the cursor to the row of its line with these words; open the line if they are folded."""
        if self.following or self._pending_offset is not None or self._cursor is None:
            return
        offset = self._cursor.offset
        self._fold_again(but=offset)
        part = self.document.part_with(offset, words)
        if part is None and not self.document.is_open(offset):
            self.toggle_at_cursor()
            self._opened_for_words = offset
            part = self.document.part_with(offset, words)
        self._put_cursor(TextPosition(offset, part or 0))

    def _fold_again(self, *, but: int) -> None:
        """Close the line that was opened only for searched words, unless it is `but`."""
        opened = self._opened_for_words
        if opened is None or opened == but:
            return
        self._opened_for_words = None
        if self.document.is_open(opened) and self.document.toggle(opened):
            self._painter.forget_rows()

    def toggle_at_cursor(self) -> None:
        cursor = self.cursor
        if cursor is None or not self.document.toggle(cursor.offset):
            return
        self._painter.forget_rows()
        self.follow(False)
        self._put_cursor(TextPosition(cursor.offset))
        self._show_body()

    def _show_body(self) -> None:
        """Scroll so that the body of the cursor's line is visible, and still the line."""
        cursor = self.cursor
        if cursor is None or (rows_and_entry := self.document.entry_at(cursor.offset)) is None:
            return
        row, height = self.document.row_of(TextPosition(cursor.offset)), self.scrollable_content_region.height
        top = min(row, row + len(rows_and_entry[0].cut(rows_and_entry[1])) - height)
        if top > self.scroll_offset.y:
            self.settle(top)

    def toggle_all(self) -> None:
        self._lay_out_by(self.document.toggle_all)

    def _put_cursor(self, position: TextPosition | None) -> None:
        """Move the cursor, and scroll just enough to show it."""
        if position is None:
            return
        self._cursor = position
        height = self.scrollable_content_region.height
        row, top = self.document.row_of(position), self.scroll_offset.y
        if abs(row - top) > 2 * height:
            top = row - height // 3
        elif not top <= row < top + height:
            top = row if row < top else row - height + 1
        self.settle(top)

    def _keep_cursor_in_view(self) -> None:
        """Move the cursor along with a scrolled view."""
        if self.following or self._cursor is None:
            return
        top, row = self.scroll_offset.y, self.document.row_of(self._cursor)
        bottom = min(top + self.scrollable_content_region.height, self.document.height) - 1
        if not top <= row <= bottom:
            self._cursor = self.document.position_at(max(top, min(row, bottom))) or self._cursor

    def follow(self, follow: bool) -> None:
        if follow:
            self.following = True
            self._pending_offset = None
            self.anchor()
            self.settle()
            self.call_after_refresh(self.settle)
        else:
            self._cursor = self.cursor
            self.following = False
            self.release_anchor()
            self.refresh()

    def action_move(self, where: str) -> None:
        match where:
            case "left" | "right":
                self.scroll_to(x=self.scroll_offset.x + (8 if where == "right" else -8))
            case "last":
                self.follow(True)
            case "first":
                self.show_offset(min(0, self.document.table.start))
            case "up" | "down":
                self._move(self.target_row(where, 0, 0))
            case _:
                by = self.target_row(where, 0, 0)
                self.settle(self.scroll_offset.y + by, at_end=False)
                self._move(by)

    def _move(self, by: int) -> None:
        """Move the cursor by rows; at the last one the end is followed again."""
        self._pending_offset = None
        if (cursor := self.cursor) is None:
            return
        position = self.document.moved(cursor, by)
        if by > 0 and position == self.document.last():
            self.follow(True)
        elif position != cursor:
            self.follow(False)
            self._put_cursor(position)

    def watch_scroll_y(self, old_value: float, new_value: float) -> None:
        super().watch_scroll_y(old_value, new_value)
        if self._settling or round(old_value) == round(new_value):
            return
        if self.following and new_value < old_value and round(new_value) < self.max_scroll_y:
            self.follow(False)
        self.settle()
        if not self.following and new_value > old_value and round(self.scroll_y) >= self.max_scroll_y:
            self.follow(True)
        self._keep_cursor_in_view()

    def on_click(self, event: Click) -> None:
        offset = event.get_content_offset(self)
        position = self.document.position_at(offset.y + self.scroll_offset.y) if offset else None
        if position is None:
            return
        if event.chain > 1:
            self.toggle_at_cursor()
        elif position == self.document.last():
            self.follow(True)
        else:
            self.follow(False)
            self._put_cursor(position)
