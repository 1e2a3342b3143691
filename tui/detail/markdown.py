"""Markdown rendered as rows of a page: without a widget for each block, without links that open, with HTML as text."""

from __future__ import annotations

from textual.strip import Strip

from ...core.text.plain import plain
from .page import Row, text_rows

LONGEST = 200_000
"""Characters beyond which a text is shown unrendered: that many take about a second, in a thread."""


def markdown_rows(text: str, width: int) -> list[Row]:
    """Render foreign text; one that is too long, or breaks the renderer, is shown unrendered."""
    if len(text) > LONGEST:
        return text_rows(text, width)
    try:
        return list(_rendered(plain(text), max(10, width)))
    except Exception as error:
        # What a model writes can break the renderer (RecursionError and others); the words are what matters.
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
        """A code block without background and colours of its own, so that it fits every theme."""

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
