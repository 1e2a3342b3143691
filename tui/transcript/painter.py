"""The rows of a document as strips for the screen."""

from __future__ import annotations

import re
from collections.abc import Callable
from itertools import pairwise

from rich.cells import cell_len
from rich.segment import Segment
from rich.style import Style
from textual.cache import LRUCache

from ..feed.lines import Kind
from .position import LaidOutRow
from .rows import Mark, Row

CURSOR = "▌"
LIVE_CURSOR = "▋"

_KINDS = {
    Kind.TEXT: "transcript--text",
    Kind.TOOL: "transcript--tool",
    Kind.RESULT: "transcript--quiet",
    Kind.NOTE: "transcript--quiet",
    Kind.WARNING: "transcript--warning",
    Kind.ERROR: "transcript--error",
    Kind.ENDED: "transcript--ended",
    Kind.THINKING: "transcript--quiet",
    Kind.LIVE: "transcript--live",
    Kind.RAW: "transcript--text",
}
_MARKS = {Mark.STRONG: "transcript--strong", Mark.HEADING: "transcript--strong", Mark.CODE: "transcript--code"}
TIME_STYLE = "transcript--time"
CURSOR_STYLE = "transcript--cursor"
POINTER_STYLE = "transcript--pointer"
COMPONENTS = {*_KINDS.values(), *_MARKS.values(), TIME_STYLE, CURSOR_STYLE, POINTER_STYLE}

_MATCH = Style(reverse=True, bold=True)


class Painter:
    """Turns rows into segments; remembers how the lines drawn lately were cut."""

    def __init__(self, style_of: Callable[[str], Style]) -> None:
        """`style_of` returns the style of a component class."""
        self._style_of = style_of
        self._cut: LRUCache[int, list[Row]] = LRUCache(1024)
        """Rows of lines, by the offset of the line."""
        self._words: re.Pattern[str] | None = None

    def forget_rows(self) -> None:
        self._cut.clear()

    def highlight(self, words: re.Pattern[str] | None) -> None:
        """Mark what this finds in each row; None marks nothing."""
        self._words = words

    def row(self, laid_out: LaidOutRow, indent: int, *, cursor: bool, pointed: bool) -> list[Segment]:
        """Return a row of the document: highlighted where the cursor is on it, with only a pointer where `pointed`."""
        entry = laid_out.entry
        row = self._row(laid_out)
        back = self._style_of(CURSOR_STYLE) if cursor else Style.null()
        time = entry.time if laid_out.part == 0 and cell_len(entry.time) < indent else ""
        margin = self._over(self._style_of(TIME_STYLE), back)
        pointer = self._over(self._style_of(POINTER_STYLE), back) if cursor else margin
        segments = [Segment(CURSOR if cursor or pointed else " ", pointer), Segment(time.ljust(indent - 1), margin)]
        if row.prefix:
            segments.append(Segment(row.prefix, margin))
        kind = self._style_of(_KINDS[Kind.TEXT if row.prefix else entry.kind])
        segments += [Segment(text, self._over(style, back)) for text, style in self._pieces(row, kind)]
        return segments

    def live(self, text: str, indent: int, *, last: bool) -> list[Segment]:
        """Return a row of the sentence being written; the last one ends with the writer's own cursor."""
        style = self._style_of(_KINDS[Kind.LIVE])
        # The sentence was laid out with a blank in the cursor's place.
        return [Segment(" " * indent, style), Segment(text.removesuffix(" ") + LIVE_CURSOR if last else text, style)]

    def _row(self, laid_out: LaidOutRow) -> Row:
        offset = laid_out.entry.offset
        rows = self._cut.get(offset)
        if rows is None or laid_out.part >= len(rows):
            rows = self._cut[offset] = laid_out.rows.cut(laid_out.entry)
        return rows[laid_out.part] if laid_out.part < len(rows) else Row("")

    def _pieces(self, row: Row, kind: Style) -> list[tuple[str, Style]]:
        """Cut a row where its style changes."""
        matches = [found.span() for found in self._words.finditer(row.text)] if self._words else []
        if not row.spans and not matches:
            return [(row.text, kind)]
        cuts = {0, len(row.text)}
        cuts.update(end for start, stop, *_ in (*row.spans, *matches) for end in (start, stop))
        pieces: list[tuple[str, Style]] = []
        for start, end in pairwise(sorted(cuts)):
            style = kind
            for span in row.spans:
                if span.start <= start < span.end:
                    style += self._style_of(_MARKS[span.mark])
            if any(begin <= start < stop for begin, stop in matches):
                style += _MATCH
            pieces.append((row.text[start:end], style))
        return pieces

    def _over(self, style: Style, back: Style) -> Style:
        return style + Style(bgcolor=back.bgcolor) if back.bgcolor else style
