"""Scrolling views that draw their own lines: only the visible part costs time."""

from __future__ import annotations

from collections.abc import Iterable
from typing import ClassVar

from rich.segment import Segment
from rich.style import Style
from textual.events import Blur, Click, Focus, Resize
from textual.geometry import Region, Size
from textual.message import Message
from textual.scroll_view import ScrollView
from textual.strip import Strip


class LineView(ScrollView, inherit_bindings=False):
    """The base of lists, pages and transcripts: cached styles, strips cut to the view, page sizes."""

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
        """Columns of the frame being drawn; computed once, because that costs more than a row."""

    @property
    def rows_height(self) -> int:
        """Lines of the view that scroll."""
        return self.scrollable_content_region.height

    def target_row(self, where: str, row: int, last: int) -> int:
        """Return the row that a movement such as `page_down` leads to from `row`; it may not exist."""
        page = max(1, self.rows_height - 1)
        return {
            "first": 0,
            "last": last,
            "down": row + 1,
            "up": row - 1,
            "page_down": row + page,
            "page_up": row - page,
        }[where]

    def style_of(self, component: str = "") -> Style:
        """Return the style of a component class, or of the view itself. Textual's own look-up costs more than a row."""
        style = self._styles.get(component)
        if style is None:
            style = self.get_component_rich_style(component) if component else self.rich_style
            self._styles[component] = style
        return style

    def strip(self, segments: Iterable[Segment], blank_style: Style | None = None) -> Strip:
        """Cut a line to the visible width; `blank_style` is the style of the blank part."""
        x = self.scroll_offset.x
        return Strip(segments).crop_extend(
            x, x + self.shown_width, self.style_of() if blank_style is None else blank_style
        )

    def render_lines(self, crop: Region) -> list[Strip]:
        self.shown_width = self.scrollable_content_region.width
        self.prepare()
        return super().render_lines(crop)

    def prepare(self) -> None:
        """Compute what all lines of the next frame share."""

    def notify_style_update(self) -> None:
        super().notify_style_update()
        self._styles.clear()

    def on_focus(self, _: Focus) -> None:
        self.refresh()

    def on_blur(self, _: Blur) -> None:
        self.refresh()


CURSOR = "▌"


class RowList(LineView, can_focus=True, inherit_bindings=False):
    """Rows with a cursor; subclasses define their number and content."""

    COMPONENT_CLASSES: ClassVar[set[str]] = {
        "row-list--cursor",
        "row-list--muted",
        "row-list--running",
        "row-list--completed",
        "row-list--failed",
        "row-list--aborted",
        "row-list--silent",
        "row-list--waiting",
    }
    DEFAULT_CSS = """
    RowList {
        & > .row-list--cursor { background: $surface-lighten-1; }
        &:focus > .row-list--cursor { background: $primary 25%; }
        & > .row-list--muted { color: $text-muted; }
        & > .row-list--running { color: $text-primary; }
        & > .row-list--completed { color: $text-success; }
        & > .row-list--failed { color: $text-error; }
        & > .row-list--aborted { color: $text-warning; }
        & > .row-list--silent { color: $text-accent; }
        & > .row-list--waiting { color: $text-warning; }
    }
    """

    class Highlighted(Message):
        """The cursor moved, or its row's content changed."""

    class Chosen(Message):
        """A row was clicked a second time: does the same as Enter."""

    class HeadClicked(Message):
        """The line above the rows was clicked."""

        def __init__(self, x: int) -> None:
            super().__init__()
            self.x = x
            """Cells from the beginning of the rows' texts."""

    cursor: int = 0
    """Row of the cursor; meaningless without rows."""
    head_height: int = 0
    """Lines above the rows that do not scroll, as of the last `set_height`."""

    def __init__(self, *, id: str) -> None:  # noqa: A002 (Textual's name for it)
        super().__init__(id=id)
        self._cell_styles: dict[tuple[bool, str], Style] = {}
        """By whether it is the row of the cursor, and component class."""
        self._empty_lines: list[str] = []
        """The text shown without rows, of the frame being drawn."""

    @property
    def row_count(self) -> int:
        raise NotImplementedError

    @property
    def wants_head(self) -> bool:
        """Whether there are fixed headings above the rows."""
        return False

    def head_line(self, width: int) -> str:
        """Return the headings, if any."""
        return ""

    @property
    def rows_height(self) -> int:
        return max(0, self.scrollable_content_region.height - self.head_height)

    def refresh_row(self, row: int, x: int = 0, width: int | None = None) -> None:
        """Draw a row again, or a part of it, if it is on the screen."""
        y = row - self.scroll_offset.y
        if 0 <= y < self.rows_height:
            self.refresh(Region(x, y + self.head_height, self.size.width if width is None else width, 1))

    def row_segments(self, row: int, width: int) -> list[tuple[str, str]]:
        """Return the texts of a row, each with the component class of its colour (empty for none)."""
        raise NotImplementedError

    def empty_lines(self) -> list[str]:
        """Return the text shown without rows."""
        return []

    def prepare(self) -> None:
        self._empty_lines = [] if self.row_count else self.empty_lines()

    def cursor_moved(self) -> None:
        """React to a move of the cursor to another row."""

    def on_resize(self, _: Resize) -> None:
        self.set_height()
        self.show_cursor()

    def set_height(self) -> None:
        self.head_height = int(self.wants_head)
        size = Size(max(1, self.scrollable_content_region.width), self.row_count + self.head_height)
        if size != self.virtual_size:
            self.virtual_size = size

    def action_move(self, where: str) -> None:
        self.move_to(self.target_row(where, self.cursor, self.row_count - 1))

    def move_to(self, row: int) -> None:
        row = max(0, min(row, self.row_count - 1))
        if row == self.cursor or not self.row_count:
            return
        self.cursor = row
        self.show_cursor()
        self.refresh()
        self.cursor_moved()

    def show_cursor(self) -> None:
        """Scroll just enough to show the cursor's row."""
        height = self.rows_height
        top = self.scroll_offset.y
        if height <= 0:
            return
        if self.cursor < top:
            self.scroll_to(y=self.cursor, animate=False)
        elif self.cursor >= top + height:
            self.scroll_to(y=self.cursor - height + 1, animate=False)

    def on_click(self, event: Click) -> None:
        offset = event.get_content_offset(self)
        if offset is None:
            return
        if offset.y < self.head_height:
            self.post_message(self.HeadClicked(offset.x - len(CURSOR)))
            return
        row = offset.y - self.head_height + self.scroll_offset.y
        if row >= self.row_count:
            return
        if row == self.cursor and event.chain > 1:
            self.post_message(self.Chosen())
        else:
            self.move_to(row)

    def notify_style_update(self) -> None:
        super().notify_style_update()
        self._cell_styles.clear()

    def render_line(self, y: int) -> Strip:
        head = self.head_height
        if y < head:
            return self.strip([Segment(" " + self.head_line(self.shown_width - 1), self.style_of("row-list--muted"))])
        row = self.scroll_offset.y + y - head
        if not self.row_count:
            lines = self._empty_lines
            return self.strip([Segment(lines[y] if y < len(lines) else "", self.style_of("row-list--muted"))])
        if row >= self.row_count:
            return self.strip(())
        here = row == self.cursor
        segments = [Segment(CURSOR if here else " ", self.cell_style("row-list--running", here=here))]
        texts = self.row_segments(row, self.shown_width - 1)
        segments += [Segment(text, self.cell_style(name, here=here)) for text, name in texts]
        return self.strip(segments, self.style_of("row-list--cursor") if here else None)

    def cell_style(self, component: str, *, here: bool = False) -> Style:
        """Return the style of a part of a row, with or without the cursor on it."""
        style = self._cell_styles.get((here, component))
        if style is None:
            style = self.style_of("row-list--cursor" if here else "")
            # In reverse video dim or coloured text is unreadable.
            if component and not style.reverse:
                colour = self.style_of(component)
                # The background belongs to the row.
                style += Style(color=colour.color, dim=colour.dim, bold=colour.bold)
            self._cell_styles[here, component] = style
        return style
