"""A scrolling view that draws its own lines: what is not on the screen costs nothing."""

from __future__ import annotations

from collections.abc import Iterable

from rich.segment import Segment
from rich.style import Style
from textual.events import Blur, Focus
from textual.geometry import Region
from textual.scroll_view import ScrollView
from textual.strip import Strip


class LineView(ScrollView, inherit_bindings=False):
    """What lists, pages and transcripts share: styles that are looked up once, strips cut to the view, page sizes."""

    ALLOW_SELECT = False
    DEFAULT_CSS = """
    LineView {
        overflow-x: hidden;
        overflow-y: auto;
        scrollbar-size-vertical: 1;
    }
    """

    def __init__(self, *, id: str) -> None:  # noqa: A002 (Textual's name for it)
        super().__init__(id=id)
        self._styles: dict[str, Style] = {}
        self.shown_width = 0
        """Columns of the frame being drawn; looked up once, for that costs more than a row."""

    @property
    def page_rows(self) -> int:
        """Rows that Page Up and Page Down move by."""
        return max(1, self.scrollable_content_region.height - 1)

    def target_row(self, where: str, row: int, last: int) -> int:
        """Return the row, not limited to those that exist, that a movement such as `page_down` leads to from `row`."""
        match where:
            case "first":
                return 0
            case "last":
                return last
            case "down" | "up":
                return row + (1 if where == "down" else -1)
            case _:
                return row + (self.page_rows if where == "page_down" else -self.page_rows)

    def style_of(self, component: str = "") -> Style:
        """Return the style of a component class, or of the view itself. Textual's own look-up costs more than a row."""
        style = self._styles.get(component)
        if style is None:
            style = self.get_component_rich_style(component) if component else self.rich_style
            self._styles[component] = style
        return style

    def strip(self, segments: Iterable[Segment], rest: Style | None = None) -> Strip:
        """Cut a line to what the view shows of its width; `rest` is the style of what it leaves blank."""
        x = self.scroll_offset.x
        return Strip(segments).crop_extend(x, x + self.shown_width, self.style_of() if rest is None else rest)

    def render_lines(self, crop: Region) -> list[Strip]:
        self.shown_width = self.scrollable_content_region.width
        return super().render_lines(crop)

    def notify_style_update(self) -> None:
        super().notify_style_update()
        self._styles.clear()

    def on_focus(self, _: Focus) -> None:
        self.refresh()

    def on_blur(self, _: Blur) -> None:
        self.refresh()
