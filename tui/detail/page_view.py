"""The rows of a page on the line API: long texts cost what is on the screen."""

from __future__ import annotations

from typing import ClassVar

from rich.segment import Segment
from textual.geometry import Size
from textual.scroll_view import ScrollView
from textual.strip import Strip

from .page import Page


class PageView(ScrollView, can_focus=False, inherit_bindings=False):
    """Keeps its place when a newer page of the same tab comes; one that follows its end goes on doing so."""

    ALLOW_SELECT = False
    COMPONENT_CLASSES: ClassVar[set[str]] = {"page--muted", "page--strong", "page--warning", "page--error"}
    DEFAULT_CSS = """
    PageView {
        overflow-x: hidden;
        overflow-y: auto;
        scrollbar-size-vertical: 1;
        scrollbar-gutter: stable;
        & > .page--muted { color: $text-muted; }
        & > .page--strong { text-style: bold; }
        & > .page--warning { color: $text-warning; }
        & > .page--error { color: $text-error; }
    }
    """

    def __init__(self) -> None:
        super().__init__(id="page")
        self._page = Page()

    def show_page(self, page: Page, *, anew: bool) -> None:
        """`anew`: it is of another tab than the page before."""
        at_end = self.scroll_offset.y >= self.max_scroll_y
        self._page = page
        self.virtual_size = Size(max(1, self.scrollable_content_region.width), len(page.rows))
        if page.follows and (anew or at_end):
            self.call_after_refresh(self._go_to_end)
        elif anew:
            self.scroll_to(y=0, animate=False)
        self.refresh()

    def move(self, where: str) -> None:
        page = max(1, self.scrollable_content_region.height - 1)
        steps = {"down": 1, "up": -1, "page_down": page, "page_up": -page}
        ends = {"first": 0, "last": self.max_scroll_y}
        self.scroll_to(y=ends[where] if where in ends else self.scroll_offset.y + steps[where], animate=False)

    def _go_to_end(self) -> None:
        self.scroll_to(y=self.max_scroll_y, animate=False)

    def render_line(self, y: int) -> Strip:
        width, base = self.scrollable_content_region.width, self.rich_style
        row = self.scroll_offset.y + y
        if row >= len(self._page.rows):
            return Strip.blank(width, base)
        shown = self._page.rows[row]
        if isinstance(shown, Strip):
            strip = shown.apply_style(base)
        else:
            strip = Strip(Segment(text, self._style(name)) for text, name in shown if text)
        return strip.crop_extend(0, width, base)

    def _style(self, name: str):
        return self.get_component_rich_style(f"page--{name}") if name else self.rich_style
