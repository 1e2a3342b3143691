"""A document with a cursor, whose end is followed until somebody goes up."""

from __future__ import annotations

from collections.abc import Sequence

from textual.events import Click

from ...core.system.line_file import Chunk
from .position import Spot, last, near, row_of, spot_at, step
from .revealing import words_in_line
from .sheet_view import SheetView


class DocumentView(SheetView, can_focus=True, inherit_bindings=False):
    """Moves about in a document and opens its lines; catches the end again there, or by `follow`."""

    _opened_for_words: int | None = None
    """The line that `show_words` has opened, and nobody else."""

    def following_changed(self) -> None:
        """Called after the end was caught or let go."""

    def put_before(self, chunks: Sequence[Chunk]) -> None:
        """Take what is before all that was known, without moving what is in view."""
        moved = self.document.put_before(chunks)
        if not self.following:
            self.settle(self.scroll_offset.y + moved)
        if self._wanted is not None and (self._wanted >= self.document.table.start or not self.document.table.start):
            self.show_offset(self._wanted)

    @property
    def cursor(self) -> Spot | None:
        """The row the keys are about; the last one while the end is followed."""
        return last(self.document) if self.following or self._cursor is None else self._cursor

    @property
    def cursor_offset(self) -> int | None:
        """Where in the file the line under the cursor begins; of the last one while the end is followed."""
        cursor = self.cursor
        return cursor.offset if cursor else None

    def entry_text_at_cursor(self) -> str:
        """Answer the whole text under the cursor, not cut, opened or not."""
        cursor = self.cursor
        return self.document.full_text(cursor.offset) if cursor else ""

    def show_offset(self, offset: int) -> None:
        """Let go of the end, and put the cursor on what begins at this byte, or on the next thing shown after it."""
        self.follow(False)
        if offset < self.document.table.start:
            self._wanted = offset  # its lines are not counted yet
            return
        self._wanted = None
        self._put_cursor(near(self.document, offset))

    def show_words(self, words: str) -> None:
        """Move the cursor to the row of its line in which these words stand, opening it where they are folded away."""
        cursor = None if self.following or self._wanted is not None else self._cursor
        if cursor:
            self._fold_again(but=cursor.offset)
        if cursor is None or (shown := words_in_line(self.document, cursor.offset, words)) is None:
            return
        if shown.folded:
            self.toggle_at_cursor()
            self._opened_for_words = cursor.offset
            shown = words_in_line(self.document, cursor.offset, words) or shown
        self._put_cursor(shown.spot)

    def _fold_again(self, *, but: int) -> None:
        """Close the line that was opened only because searched words stand in it, unless they still do."""
        opened = self._opened_for_words
        if opened is None or opened == but:
            return
        self._opened_for_words = None
        if self.document.is_open(opened) and self.document.toggle(opened):
            self._painter.forget_rows()

    def toggle_at_cursor(self) -> None:
        """Open what is under the cursor, or close it."""
        cursor = self.cursor
        if cursor is None or not self.document.toggle(cursor.offset):
            return
        self._painter.forget_rows()
        self.follow(False)
        self._put_cursor(Spot(cursor.offset))

    def toggle_all(self) -> None:
        """Open everything, or close it."""
        anchor, y = self._anchor()
        self.document.toggle_all(anchor.offset if anchor else None)
        self._keep(anchor, y)

    def _put_cursor(self, spot: Spot | None) -> None:
        """Move the cursor, and the view just so far that it is in sight."""
        if spot is None:
            return
        self._cursor = spot
        height = self.scrollable_content_region.height
        row, top = row_of(self.document, spot), self.scroll_offset.y
        if abs(row - top) > 2 * height:
            self.settle(row - height // 3)
        elif not top <= row < top + height:
            self.settle(row if row < top else row - height + 1)
        else:
            self.settle()
        self.refresh()

    def _keep_cursor_in_view(self) -> None:
        """Let the cursor go with a view that was moved under it."""
        if self.following or self._cursor is None:
            return
        top, row = self.scroll_offset.y, row_of(self.document, self._cursor)
        bottom = min(top + self.scrollable_content_region.height, self.document.height) - 1
        if not top <= row <= bottom:
            self._cursor = spot_at(self.document, max(top, min(row, bottom))) or self._cursor

    def follow(self, follow: bool) -> None:
        if follow:
            self.following = True
            self._wanted = None
            self.anchor()
            self.settle()
            self.call_after_refresh(self.settle)
        else:
            self._cursor = self.cursor
            self.following = False
            self.release_anchor()
        self.following_changed()
        self.refresh()

    def action_move(self, where: str) -> None:
        page = max(1, self.scrollable_content_region.height - 1)
        match where:
            case "left" | "right":
                self.scroll_to(x=self.scroll_offset.x + (8 if where == "right" else -8))
            case "last":
                self.follow(True)
            case "first":
                self.show_offset(0)
            case "up" | "down":
                self._move(1 if where == "down" else -1)
            case _:
                by = page if where == "page_down" else -page
                self.settle(self.scroll_offset.y + by, at_end=False)
                self._move(by)

    def _move(self, by: int) -> None:
        """Move the cursor by rows; at the last one the end is followed again."""
        self._wanted = None
        if (cursor := self.cursor) is None:
            return
        spot = step(self.document, cursor, by)
        if by > 0 and spot == last(self.document):
            self.follow(True)
        elif spot != cursor:
            self.follow(False)
            self._put_cursor(spot)

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
        spot = spot_at(self.document, offset.y + self.scroll_offset.y) if offset else None
        if spot is None:
            return
        if event.chain > 1:
            self.toggle_at_cursor()
        elif spot == last(self.document):
            self.follow(True)
        else:
            self.follow(False)
            self._put_cursor(spot)
