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
from .marks import Mark, is_case_sensitive
from .position import Place
from .rows import Row

CURSOR = "▌"
LIVE_CURSOR = "▋"

PREFIX = "transcript--"
_KINDS = {
    Kind.TEXT: "text",
    Kind.TOOL: "tool",
    Kind.RESULT: "quiet",
    Kind.NOTE: "quiet",
    Kind.WARNING: "warning",
    Kind.ERROR: "error",
    Kind.ENDED: "ended",
    Kind.THINKING: "quiet",
    Kind.LIVE: "live",
    Kind.RAW: "text",
}
_MARKS = {Mark.STRONG: "strong", Mark.HEADING: "strong", Mark.CODE: "code"}
COMPONENTS = {PREFIX + name for name in (*_KINDS.values(), *_MARKS.values(), "time", "cursor", "pointer")}

_HIT = Style(reverse=True, bold=True)


class Painter:
    """Puts rows into segments; remembers how the lines looked at lately were cut."""

    def __init__(self, style_of: Callable[[str], Style]) -> None:
        """`style_of` answers the style of a component class."""
        self._style_of = style_of
        self._styles: dict[str, Style] = {}
        self._cut: LRUCache[int, list[Row]] = LRUCache(1024)
        self._words: re.Pattern[str] | None = None

    def forget(self) -> None:
        """Take nothing of what was cut or coloured for granted."""
        self._cut.clear()
        self._styles.clear()

    def forget_rows(self) -> None:
        self._cut.clear()

    def mark(self, words: str) -> None:
        """Mark this text wherever it occurs, its case counting as the search takes it; empty marks nothing."""
        case = re.NOFLAG if is_case_sensitive(words) else re.IGNORECASE
        self._words = re.compile(re.escape(words), case) if words else None

    def row(self, place: Place, indent: int, *, cursor: bool, pointed: bool) -> list[Segment]:
        """Return a row of the document; the row `cursor` is on stands out, the one that is only `pointed` at little."""
        entry = place.rows.entries[place.entry]
        row = self._row(place)
        back = self.style("cursor") if cursor else Style.null()
        time = entry.time if place.part == 0 and cell_len(entry.time) < indent else ""
        kind = self.style(_KINDS[entry.kind]) if not row.prefix else self.style("text")
        segments = [
            Segment(
                CURSOR if cursor or pointed else " ", self._over(self.style("pointer" if cursor else "time"), back)
            ),
            Segment(time.ljust(indent - 1), self._over(self.style("time"), back)),
        ]
        if row.prefix:
            segments.append(Segment(row.prefix, self._over(self.style("time"), back)))
        segments += [Segment(text, self._over(style, back)) for text, style in self._pieces(row, kind)]
        return segments

    def live(self, text: str, indent: int, *, last: bool) -> list[Segment]:
        """Return a row of the sentence being written; the last one ends with the writer's own cursor."""
        style = self.style("live")
        # The sentence was laid out with a blank in the cursor's place.
        return [Segment(" " * indent, style), Segment(text.removesuffix(" ") + LIVE_CURSOR if last else text, style)]

    def style(self, name: str) -> Style:
        """Return the style of a component."""
        found = self._styles.get(name)
        if found is None:
            found = self._styles[name] = self._style_of(PREFIX + name)
        return found

    def _row(self, place: Place) -> Row:
        offset = place.rows.offsets[place.entry]
        rows = self._cut.get(offset)
        if rows is None or place.part >= len(rows):
            rows = self._cut[offset] = place.rows.cut(place.entry)
        return rows[place.part] if place.part < len(rows) else Row("")

    def _pieces(self, row: Row, kind: Style) -> list[tuple[str, Style]]:
        """Cut a row where its look changes."""
        hits = [found.span() for found in self._words.finditer(row.text)] if self._words else []
        if not row.spans and not hits:
            return [(row.text, kind)]
        ends = {
            0,
            len(row.text),
            *(end for span in row.spans for end in span[:2]),
            *(end for hit in hits for end in hit),
        }
        cuts = sorted(ends)
        pieces: list[tuple[str, Style]] = []
        for start, end in pairwise(cuts):
            style = kind
            for span in row.spans:
                if span.start <= start < span.end:
                    style += self.style(_MARKS[span.mark])
            if any(hit[0] <= start < hit[1] for hit in hits):
                style += _HIT
            pieces.append((row.text[start:end], style))
        return pieces

    def _over(self, style: Style, back: Style) -> Style:
        return style + Style(bgcolor=back.bgcolor) if back.bgcolor else style
