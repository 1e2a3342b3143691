"""A document with a cursor, whose end is followed until somebody goes up."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

from rich.segment import Segment
from rich.style import Style
from textual.events import Blur, Click, Focus, Resize
from textual.geometry import Size
from textual.scroll_view import ScrollView
from textual.strip import Strip

from ...core.system.line_file import Chunk
from ..terminal.textual_internals import grow
from .document import Document
from .painter import COMPONENTS, Painter
from .position import TextPosition, last, near, place_at, row_of, spot_at, step, words_in_line

LEAST_FOR_TIMES = 36
"""Columns; with less, lines begin without their time."""
NO_TIME = 2
"""Cells in front of a line without one."""


class SheetView(ScrollView, can_focus=True, inherit_bindings=False):
    """Lays out what is in view and draws it; a row of it may have a cursor."""

    ALLOW_SELECT = False
    COMPONENT_CLASSES: ClassVar[set[str]] = COMPONENTS

    def __init__(self, name: str) -> None:
        super().__init__(id=name)
        self.document = Document()
        self.following = True
        self._wrapped = True
        self._cursor: TextPosition | None = None
        """Where the cursor is while the end is not followed."""
        self._wanted: int | None = None
        """A byte that is to be shown as soon as it is known what is there."""
        self.live_rows: Sequence[str] = ()
        self.live_is_written = True
        """Whether they are still being written, which a sign at their end says."""
        """Rows after the document: what is being written."""
        self._painter = Painter(self.get_component_rich_style)
        self._base: Style | None = None
        self._settling = False
        """True while the view is moved by what it shows, not by the operator."""
        self._short_of: int | None = None
        """A row that the view could not be moved to, for once."""

    def on_mount(self) -> None:
        super().on_mount()
        self.anchor()

    def notify_style_update(self) -> None:
        super().notify_style_update()
        self._painter.forget()
        self._base = None

    @property
    def _base_style(self) -> Style:
        """What the pane itself looks like, found out once: it costs more than a row."""
        if self._base is None:
            self._base = self.rich_style
        return self._base

    def open_document(self, document: Document) -> None:
        """Show another document, from its end."""
        self.document = document
        self._cursor = self._wanted = None
        self._painter.forget_rows()
        self.lay_out()

    def set_wrap(self, wrapped: bool) -> None:
        self._wrapped = wrapped
        self.styles.overflow_x = "hidden" if wrapped else "auto"
        self.lay_out()

    @property
    def wrapped(self) -> bool:
        return self._wrapped

    def highlight(self, words: str) -> None:
        """Mark where this text occurs in visible rows; empty ends it."""
        self._painter.mark(words)
        self.refresh()

    @property
    def _indent(self) -> int:
        """Cells in front of the lines; a screen that is hardly there has none to spare for the time."""
        view = self.document.view
        return view.indent if self.scrollable_content_region.width >= LEAST_FOR_TIMES else min(view.indent, NO_TIME)

    def scroll_to(self, x: float | None = None, y: float | None = None, **options: Any) -> None:
        """Scroll without animation: rows may move while what comes into view is laid out."""
        super().scroll_to(x, y, animate=False, force=bool(options.get("force")))

    def on_focus(self, _: Focus) -> None:
        self.refresh()

    def on_blur(self, _: Blur) -> None:
        self.refresh()

    def on_resize(self, event: Resize) -> None:
        self.lay_out()

    def lay_out(self) -> None:
        """Cut rows anew for the present width, keeping in place what is in view."""
        width = max(10, self.scrollable_content_region.width - self._indent)
        anchor, y = self._anchor()
        self.document.lay_out(width, self._wrapped, anchor.offset if anchor else None)
        self._keep(anchor, y)

    def settle(self, top: int | None = None, *, at_end: bool | None = None) -> None:
        """Lay out what is in view, at row `top` or where it is, and let nothing in it jump."""
        height = max(1, self.scrollable_content_region.height)
        at_end = self.following if at_end is None else at_end
        wanted = self.scroll_offset.y if top is None else top
        y = self.document.settle(wanted, height, len(self.live_rows), at_end=at_end)
        view = max(1, self.scrollable_content_region.width)
        width = view if self._wrapped else max(view, self._indent + self.document.longest)
        grow(self, Size(width, self.document.height + len(self.live_rows)))
        if y != self.scroll_y:
            self._settling = True
            self.scroll_y = self.scroll_target_y = y
            self._settling = False
            short_of, self._short_of = self._short_of, y if self.scroll_offset.y < y else None
            if at_end and self._short_of not in (None, short_of):
                self.call_after_refresh(self.settle)  # there is room to scroll only after the next layout

    def _anchor(self) -> tuple[TextPosition | None, int]:
        """Return what is to stay where it is in the view, and where that is: the cursor, or else the first row."""
        top = self.scroll_offset.y
        if not self.following and self._cursor is not None:
            y = row_of(self.document, self._cursor) - top
            if 0 <= y < self.scrollable_content_region.height:
                return self._cursor, y
        return spot_at(self.document, top), 0

    def _keep(self, anchor: TextPosition | None, y: int) -> None:
        self._painter.forget_rows()
        self.settle(row_of(self.document, anchor) - y if anchor else None)
        self.refresh()

    def render_line(self, y: int) -> Strip:
        base = self._base_style
        row = self.scroll_offset.y + y
        indent = self._indent
        if (below := row - self.document.height) >= 0:
            if below >= len(self.live_rows):
                return Strip.blank(self.scrollable_content_region.width, base)
            is_end = self.live_is_written and below == len(self.live_rows) - 1
            return self.strip(self._painter.live(self.live_rows[below], indent, last=is_end))
        place = place_at(self.document, row)
        if place is None:
            return Strip.blank(self.scrollable_content_region.width, base)
        pointed = self.following and self.has_focus and below == -1
        cursor = not self.following and place.spot == self._cursor
        segments = self._painter.row(place, indent, cursor=cursor, pointed=pointed)
        return self.strip(segments, whole="cursor" if cursor else "")

    def strip(self, segments: list[Segment], whole: str = "") -> Strip:
        """Cut segments to what the view shows of its width; `whole` names what the rest of the row looks like."""
        x, width = self.scroll_offset.x, self.scrollable_content_region.width
        back = self._painter.style(whole) if whole else self._base_style
        return Strip(segments).crop_extend(x, x + width, back)


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
    def cursor(self) -> TextPosition | None:
        """The row the keys are about; the last one while the end is followed."""
        return last(self.document) if self.following or self._cursor is None else self._cursor

    @property
    def cursor_offset(self) -> int | None:
        """Where in the file the line under the cursor begins; of the last one while the end is followed."""
        cursor = self.cursor
        return cursor.offset if cursor else None

    def entry_text_at_cursor(self) -> str:
        """Return the whole text under the cursor, not cut, opened or not."""
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
        self._put_cursor(TextPosition(cursor.offset))

    def toggle_all(self) -> None:
        """Open everything, or close it."""
        anchor, y = self._anchor()
        self.document.toggle_all(anchor.offset if anchor else None)
        self._keep(anchor, y)

    def _put_cursor(self, spot: TextPosition | None) -> None:
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
