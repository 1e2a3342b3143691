"""The text of one tab: rows made in a thread to fit the width, and the view that draws those on the screen."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from enum import StrEnum
from typing import ClassVar

from msgspec import Struct
from rich.segment import Segment
from textual.geometry import Size
from textual.strip import Strip

from ...core.text.plain import plain
from ..text.cells import wrap
from ..widgets.line_view import LineView

Part = tuple[str, str]
"""A text and the name of its style: `muted`, `strong`, `warning`, `error`, or empty."""
Row = Strip | tuple[Part, ...]


class Tab(StrEnum):
    TRANSCRIPT = "transcript"
    ANSWER = "answer"
    PROMPT = "prompt"
    FACTS = "facts"
    USAGE = "usage"
    FILES = "files"
    EVENTS = "events"


class FileRow(Struct, frozen=True):
    name: str
    path: str
    size: int
    modified: float
    """Seconds since the epoch."""


class Page(Struct, frozen=True):
    rows: Sequence[Row] = ()
    follows: bool = False
    """Whether its end is shown first and followed, as of a file that grows."""
    copy: str = ""
    """What copying takes."""
    path: str = ""
    """The file that opening shows."""
    more: bool = False
    """Whether it is not read to its end yet."""
    files: tuple[FileRow, ...] = ()


def text_rows(text: str, width: int, style: str = "") -> list[Row]:
    """Wrap foreign text."""
    return [((row, style),) for row in wrap(plain(text).rstrip("\n"), max(1, width))]


def heading(title: str, remark: str = "") -> Row:
    return ((title, "strong"), (f"  {remark}" if remark else "", "muted"))


def note(text: str) -> Row:
    """Return a row of our own words among those of a run."""
    return ((text, "muted"),)


def joined(blocks: Iterable[Sequence[Row]]) -> list[Row]:
    """Put blocks below each other with a blank row between them."""
    rows: list[Row] = []
    for block in blocks:
        rows += [*([()] if rows else []), *block]
    return rows


def plain_text(rows: Iterable[Row]) -> str:
    """Return the rows as text, for copying."""
    return "\n".join(row.text if isinstance(row, Strip) else "".join(text for text, _ in row) for row in rows)


class PageView(LineView, can_focus=False, inherit_bindings=False):
    """Stays where it is when a newer page of the same tab comes; at the end of one that grows it follows the end."""

    COMPONENT_CLASSES: ClassVar[set[str]] = {"page--muted", "page--strong", "page--warning", "page--error"}
    DEFAULT_CSS = """
    PageView {
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

    def show_page(self, page: Page, *, is_new_tab: bool) -> None:
        """Show a page; `is_new_tab` says that the page before was of another tab."""
        at_end = self.scroll_offset.y >= self.max_scroll_y
        self._page = page
        self.virtual_size = Size(max(1, self.scrollable_content_region.width), len(page.rows))
        if page.follows and (is_new_tab or at_end):
            self.call_after_refresh(lambda: self.move("last"))
        elif is_new_tab:
            self.move("first")
        self.refresh()

    def move(self, where: str) -> None:
        self.scroll_to(y=self.target_row(where, self.scroll_offset.y, self.max_scroll_y), animate=False)

    def render_line(self, y: int) -> Strip:
        number = self.scroll_offset.y + y
        row = self._page.rows[number] if number < len(self._page.rows) else ()
        if isinstance(row, Strip):
            return self.strip(row.apply_style(self.style_of()))
        return self.strip(Segment(text, self.style_of(name and f"page--{name}")) for text, name in row if text)
