"""A document drawn on the line API: nothing is laid out that nobody looks at."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

from rich.segment import Segment
from rich.style import Style
from textual.events import Blur, Focus, Resize
from textual.geometry import Size
from textual.scroll_view import ScrollView
from textual.strip import Strip

from ..terminal.textual_internals import grow
from .document import Document
from .painter import COMPONENTS, Painter
from .position import Spot, place_at, row_of, spot_at

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
        self._cursor: Spot | None = None
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

    def _anchor(self) -> tuple[Spot | None, int]:
        """Answer what is to stay where it is in the view, and where that is: the cursor, or else the first row."""
        top = self.scroll_offset.y
        if not self.following and self._cursor is not None:
            y = row_of(self.document, self._cursor) - top
            if 0 <= y < self.scrollable_content_region.height:
                return self._cursor, y
        return spot_at(self.document, top), 0

    def _keep(self, anchor: Spot | None, y: int) -> None:
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
