"""The text of one tab: rows made in a thread to fit the width, including markdown, and the view that draws them."""

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


INDENT = 2
"""Cells before the content of an unfolded section."""
LONGEST_RENDERED = 200_000
"""Longer markdown is shown unrendered: this many characters take about a second, in a thread."""


class Tab(StrEnum):
    TRANSCRIPT = "transcript"
    ANSWER = "answer"
    CHANGES = "changes"
    OVERVIEW = "facts"
    """The id of its action: settings may have it."""

    @property
    def label(self) -> str:
        return self.name.lower()


class Section(StrEnum):
    """A part of the overview that folds."""

    PROMPT = "prompt"
    USAGE = "usage"
    FILES = "files"
    EVENTS = "events"


class Block(Struct, frozen=True):
    """Rows of the overview with the same content to open and copy."""

    key: str
    """Identifies it from one read to the next."""
    rows: Sequence[Row]
    section: Section | None = None
    is_unfolded: bool | None = None
    """Whether the section is unfolded, for its heading; None for other rows."""
    follows: bool = False
    """Whether its end is shown first and followed, for a growing file."""
    what: str = ""
    """Names the text to copy: `the prompt`."""
    copy: str = ""
    path: str = ""
    """The file to open. Of a block without a text, this path is copied."""


class Page(Struct, frozen=True):
    rows: Sequence[Row] = ()
    follows: bool = False
    """Whether its end is shown first and followed, for a growing file."""
    copy: str = ""
    """The text to copy."""
    path: str = ""
    """The file to open."""
    more: bool = False
    """Whether more is to be read."""
    blocks: tuple[Block, ...] = ()
    """The content of the overview, which has no `rows`."""


def text_rows(text: str, width: int, style: str = "") -> list[Row]:
    return [((row, style),) for row in wrap(plain(text).rstrip("\n"), max(1, width))]


def heading(title: str, remark: str = "") -> Row:
    return ((title, "strong"), (f"  {remark}" if remark else "", "muted"))


def note(text: str) -> Row:
    """Return a row with a remark of the app."""
    return ((text, "muted"),)


def joined(blocks: Iterable[Sequence[Row]]) -> list[Row]:
    """Join blocks with an empty row between them."""
    rows: list[Row] = []
    for block in blocks:
        rows += [*([()] if rows else []), *block]
    return rows


def plain_text(rows: Iterable[Row]) -> str:
    return "\n".join(row.text if isinstance(row, Strip) else "".join(text for text, _ in row) for row in rows)


def markdown_rows(text: str, width: int) -> list[Row]:
    """Render untrusted text without links that open; text that is too long, or breaks the renderer, stays as it is."""
    if len(text) > LONGEST_RENDERED:
        return text_rows(text, width)
    try:
        return list(_rendered(plain(text), max(10, width)))
    except Exception as error:
        # A model's text can break the renderer (RecursionError and others); the words are what matters.
        return text_rows(
            f"[shown unrendered: the markdown renderer failed with {type(error).__name__}]\n\n{text}", width
        )


def _rendered(text: str, width: int) -> list[Strip]:
    import io

    from markdown_it import MarkdownIt
    from rich.console import Console, ConsoleOptions, RenderResult
    from rich.markdown import CodeBlock, Heading, Markdown
    from rich.padding import Padding
    from rich.text import Text
    from rich.theme import Theme

    class PlainCode(CodeBlock):
        """A code block without its own background and colours, so that it fits every theme."""

        def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
            yield Padding(Text(str(self.text).rstrip("\n"), style="markdown.code_block"), (0, 0, 0, 2))

    class LeftHeading(Heading):
        """A heading aligned like the text."""

        def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
            self.text.justify = "left"
            yield self.text

    class PlainMarkdown(Markdown):
        elements = Markdown.elements | {
            "fence": PlainCode,
            "code_block": PlainCode,
            "heading_open": LeftHeading,
        }

    styles = {
        "markdown.code": "bold",
        "markdown.code_block": "dim",
        "markdown.h1": "bold underline",
        "markdown.h2": "bold underline",
        "markdown.h3": "bold",
        "markdown.h4": "bold",
        "markdown.item.bullet": "bold",
        "markdown.item.number": "bold",
        "markdown.block_quote": "italic",
        "markdown.hr": "dim",
        "markdown.link": "bold",
        "markdown.link_url": "underline",
        "markdown.table.border": "dim",
        "markdown.table.header": "bold",
    }
    document = PlainMarkdown("", hyperlinks=False)
    document.parsed = MarkdownIt("js-default", {"html": False, "linkify": False}).parse(text)
    console = Console(
        width=width, file=io.StringIO(), force_terminal=True, color_system="truecolor", theme=Theme(styles)
    )
    return [Strip(line) for line in console.render_lines(document, pad=False)]


class PageView(LineView, can_focus=False, inherit_bindings=False):
    """Keeps its position when a newer page of the same tab comes; at the end of a growing file it follows the end."""

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
        """Show a page; `is_new_tab`: the previous page was of another tab."""
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
