"""A list of one-line rows drawn on the line API: what is not on screen costs nothing."""

from __future__ import annotations

from typing import ClassVar

from rich.segment import Segment
from rich.style import Style
from textual.events import Blur, Click, Focus, Resize
from textual.geometry import Region, Size
from textual.scroll_view import ScrollView
from textual.strip import Strip

from ..messages import RowChosen

CURSOR = "▌"


class RowList(ScrollView, can_focus=True, inherit_bindings=False):
    """Rows with a cursor; subclasses say how many there are and what each shows."""

    ALLOW_SELECT = False
    COMPONENT_CLASSES: ClassVar[set[str]] = {
        "row-list--cursor",
        "row-list--muted",
        "row-list--running",
        "row-list--completed",
        "row-list--failed",
        "row-list--aborted",
    }
    DEFAULT_CSS = """
    RowList {
        overflow-x: hidden;
        scrollbar-size-vertical: 1;
        & > .row-list--cursor { background: $surface-lighten-1; }
        &:focus > .row-list--cursor { background: $primary 25%; }
        & > .row-list--muted { color: $text-muted; }
        & > .row-list--running { color: $text-primary; }
        & > .row-list--completed { color: $text-success; }
        & > .row-list--failed { color: $text-error; }
        & > .row-list--aborted { color: $text-warning; }
    }
    """

    cursor: int = 0
    """Row of the cursor; of no meaning while there are no rows."""

    def __init__(self, *, id: str) -> None:  # noqa: A002 (the name that Textual gives it)
        super().__init__(id=id)
        self._styles: dict[str, Style] = {}
        self._cell_styles: dict[tuple[bool, str], Style] = {}
        """By whether it is the row of the cursor, and component."""
        self._empty_lines: list[str] | None = None
        """What the frame that is drawn says while there are no rows; None before a line of it is drawn."""

    @property
    def row_count(self) -> int:
        raise NotImplementedError

    def row_segments(self, row: int, width: int) -> list[tuple[str, str]]:
        """Return the texts of a row, each with the component class that colours it (empty for none)."""
        raise NotImplementedError

    def empty_lines(self) -> list[str]:
        """What to say while there are no rows."""
        return []

    def cursor_moved(self) -> None:
        """Called after the operator moved the cursor to another row."""

    def on_resize(self, _: Resize) -> None:
        self.set_height()
        self.show_cursor()

    def on_focus(self, _: Focus) -> None:
        self.refresh()

    def on_blur(self, _: Blur) -> None:
        self.refresh()

    def set_height(self) -> None:
        size = Size(max(1, self.scrollable_content_region.width), self.row_count)
        if size != self.virtual_size:
            self.virtual_size = size

    def action_move(self, where: str) -> None:
        page = max(1, self.scrollable_content_region.height - 1)
        steps = {"down": 1, "up": -1, "page_down": page, "page_up": -page}
        ends = {"first": 0, "last": self.row_count - 1}
        self.move_to(ends[where] if where in ends else self.cursor + steps[where])

    def move_to(self, row: int) -> None:
        row = max(0, min(row, self.row_count - 1))
        if row == self.cursor or not self.row_count:
            return
        self.cursor = row
        self.show_cursor()
        self.refresh()
        self.cursor_moved()

    def show_cursor(self) -> None:
        """Scroll just so far that the cursor's row is visible."""
        height = self.scrollable_content_region.height
        top = self.scroll_offset.y
        if height <= 0:
            return
        if self.cursor < top:
            self.scroll_to(y=self.cursor, animate=False)
        elif self.cursor >= top + height:
            self.scroll_to(y=self.cursor - height + 1, animate=False)

    def on_click(self, event: Click) -> None:
        offset = event.get_content_offset(self)
        if offset is None or (row := offset.y + self.scroll_offset.y) >= self.row_count:
            return
        if row == self.cursor and event.chain > 1:
            self.post_message(RowChosen())
        else:
            self.move_to(row)

    def notify_style_update(self) -> None:
        super().notify_style_update()
        self._styles.clear()
        self._cell_styles.clear()

    def render_lines(self, crop: Region) -> list[Strip]:
        self._empty_lines = None
        return super().render_lines(crop)

    def render_line(self, y: int) -> Strip:
        width = self.scrollable_content_region.width
        base = self._style("")
        row = self.scroll_offset.y + y
        if not self.row_count:
            lines = self._empty_lines = self.empty_lines() if self._empty_lines is None else self._empty_lines
            text = lines[y] if y < len(lines) else ""
            return Strip([Segment(text, self._style("row-list--muted"))]).crop_extend(0, width, base)
        if row >= self.row_count:
            return Strip.blank(width, base)
        here = row == self.cursor
        back = self._style("row-list--cursor") if here else base
        segments = [Segment(CURSOR if here else " ", self._cell_style("row-list--running", here=here))]
        texts = self.row_segments(row, width - 1)
        segments += [Segment(text, self._cell_style(name, here=here)) for text, name in texts]
        return Strip(segments).crop_extend(0, width, back)

    def _cell_style(self, component: str, *, here: bool = False) -> Style:
        """Return how a part of a row looks, with or without the cursor on it."""
        style = self._cell_styles.get((here, component))
        if style is None:
            back = self._style("row-list--cursor" if here else "")
            # Where colours change places, dim or coloured text is a patch that cannot be read.
            style = self._cell_styles[here, component] = back if back.reverse else back + self._colour(component)
        return style

    def _colour(self, component: str) -> Style:
        """Only the foreground and whether it is dim: the background belongs to the row."""
        if not component:
            return Style.null()
        style = self._style(component)
        return Style(color=style.color, dim=style.dim)

    def _style(self, component: str) -> Style:
        """Return the style of a component, or of the list itself, found out once: it costs more than a row."""
        style = self._styles.get(component)
        if style is None:
            style = self.get_component_rich_style(component) if component else self.rich_style
            self._styles[component] = style
        return style
