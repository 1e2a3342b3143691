"""The screen rows of one chunk's lines, with their markdown, and how they are drawn."""

from __future__ import annotations

import re
from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator
from itertools import pairwise
from operator import attrgetter
from typing import NamedTuple

from rich.segment import Segment
from rich.style import Style
from textual.cache import LRUCache

from ...core.text import markdown
from ...core.text.markdown import Line, Look, Source
from ..feed.lines import Kind, TranscriptEntry
from ..text.cells import cells, wrap_line

UNWRAPPED_LIMIT = 4000
"""Cells of a line that can be scrolled to if lines are not wrapped."""

BODY_PREFIX = "│ "
"""In front of an opened line's body."""

_LOOK_STYLES = {look: f"transcript--{look}" for look in Look}

STATE_ROOM = 14
"""Cells at the end of a message's row for its outcome."""
LEAST_FOR_STATE = 44
"""Minimum cells of a row with room for that."""


class Row(NamedTuple):
    """The content of one row of the screen."""

    line: Line
    sign: str = ""
    """The sign of a diff line; it is also in the prefix."""

    @property
    def text(self) -> str:
        return self.line.text

    def says(self, low: str) -> bool:
        """Return whether the shown or the written text contains words in lower case."""
        return low in self.line.text.lower() or low in self.line.source.lower()


class TextPosition(NamedTuple):
    """A row by the offset of its line in the file, which stays valid while rows above it come and go."""

    offset: int
    """Offset of its line."""
    part: int = 0
    """Number of the row in the line."""


class LaidOutRow(NamedTuple):
    """A row by its place in the layout."""

    rows: Rows
    entry: TranscriptEntry
    part: int
    """Number of the row in the entry."""

    @property
    def position(self) -> TextPosition:
        return TextPosition(self.entry.offset, self.part)


class Rows:
    """The entries of one chunk and the height of each at a width; rows are cut when they become visible."""

    def __init__(self, width: int, entries: Iterable[TranscriptEntry] = ()) -> None:
        self.entries: list[TranscriptEntry] = []
        self._tops = array("l")
        """First row of each entry."""
        self.height = 0
        self.width = width
        """Cells for text; 0 if lines are not wrapped."""
        self.longest = 0
        """Cells of the longest line; only updated if lines are not wrapped."""
        self.extend(entries)

    def extend(self, entries: Iterable[TranscriptEntry]) -> None:
        for entry in entries:
            self.entries.append(entry)
            self._tops.append(self.height)
            self.height += self._row_count(entry)

    def at(self, row: int) -> LaidOutRow:
        index = bisect_right(self._tops, row) - 1
        return LaidOutRow(self, self.entries[index], row - self._tops[index])

    def row_of(self, index: int, part: int) -> int:
        """Return the row of a part of an entry, or its last one if it has fewer; the height after the last entry."""
        if index >= len(self.entries):
            return self.height
        following = self._tops[index + 1] if index + 1 < len(self._tops) else self.height
        return min(self._tops[index] + part, following - 1)

    def index_of(self, offset: int) -> int:
        """Return the first entry at this offset or after it; the number of entries if there is none."""
        return bisect_left(self.entries, offset, key=attrgetter("offset"))

    def cut(self, entry: TranscriptEntry) -> list[Row]:
        """Break an entry into its rows."""
        text = _head(entry)
        shown = markdown.lines(text) if entry.kind is Kind.TEXT else map(Line, text.split("\n"))
        lines = [Row(line) for line in shown]
        if entry.body is not None:
            lines += [Row(Line(line.text, (), BODY_PREFIX + line.margin), line.sign) for line in entry.body]
        room = self._room_of(entry)
        return [row for line in lines for row in self._cut_line(line, room)]

    def _room_of(self, entry: TranscriptEntry) -> int:
        """Return the cells for its text; a message reserves some for its outcome."""
        return self.width - STATE_ROOM if entry.message and self.width >= LEAST_FOR_STATE else self.width

    def _cut_line(self, row: Row, room: int) -> Iterator[Row]:
        line, position = row.line, 0
        prefix, width = line.prefix, room - len(line.prefix)
        for text in wrap_line(line.text, width) if self.width else [line.text[:UNWRAPPED_LIMIT]]:
            position = line.text.find(text, position)
            yield Row(markdown.part(line, position, position + len(text), prefix), row.sign)
            position += len(text)
            prefix = re.sub(r"\d", " ", prefix)  # a line number is in the first row, the sign in all

    def _row_count(self, entry: TranscriptEntry) -> int:
        text, room = _head(entry), self._room_of(entry)
        # Nearly every line fits; cutting the others is the slow part.
        if entry.body is None and len(text) <= room and text.isascii() and "\n" not in text:
            return 1
        below = entry.body or ()
        if not self.width:
            return self._measured(entry, text)
        if entry.kind is Kind.TEXT and markdown.may_have_marks(text):
            rows = sum(_rows_of(source, room) for source in markdown.sources(text))
        else:
            rows = sum(len(wrap_line(line, room)) for line in text.split("\n"))
        inner = self.width - len(BODY_PREFIX)
        return rows + sum(len(wrap_line(line.text, inner - len(line.margin))) for line in below)

    def _measured(self, entry: TranscriptEntry, text: str) -> int:
        """Return the rows of an entry if lines are not wrapped, and record the longest."""
        shown = markdown.lines(text) if entry.kind is Kind.TEXT else map(Line, text.split("\n"))
        rows = [line.prefix + line.text for line in shown]
        rows += [BODY_PREFIX + line.margin + line.text for line in entry.body or ()]
        self.longest = max(self.longest, *(cells(row[:UNWRAPPED_LIMIT]) for row in rows))
        return len(rows)


def _rows_of(source: Source, room: int) -> int:
    """Return how many rows a line takes; nearly every line fits, and is not laid out for that."""
    room -= len(source.prefix)
    if len(source.text) <= room and source.text.isascii():
        return 1
    return len(wrap_line(markdown.laid_out(source).text, room))


def _head(entry: TranscriptEntry) -> str:
    """Return the text above the body; for thinking without its first line, which the body repeats."""
    if entry.body is None or entry.kind is not Kind.THINKING:
        return entry.text
    return "▾" + entry.text.partition(")")[0][1:] + ")"


CURSOR = "▌"
LIVE_CURSOR = "▋"

_KIND_STYLES = {kind: f"transcript--{kind}" for kind in Kind}
TIME_STYLE = "transcript--time"
CURSOR_STYLE = "transcript--cursor"
POINTER_STYLE = "transcript--pointer"
_SIGN_STYLES = {"+": "transcript--added", "-": "transcript--removed"}
COMPONENTS = {
    *_KIND_STYLES.values(),
    *_SIGN_STYLES.values(),
    *_LOOK_STYLES.values(),
    TIME_STYLE,
    CURSOR_STYLE,
    POINTER_STYLE,
}

_MATCH = Style(reverse=True, bold=True)


class Painter:
    """Turns rows into segments; caches how recently drawn lines were cut."""

    def __init__(self, style_of: Callable[[str], Style]) -> None:
        """`style_of` returns the style of a component class."""
        self._style_of = style_of
        self._cut: LRUCache[int, list[Row]] = LRUCache(1024)
        """Rows of lines, by the offset of the line."""
        self._words: re.Pattern[str] | None = None

    def forget_rows(self) -> None:
        self._cut.clear()

    def highlight(self, words: re.Pattern[str] | None) -> None:
        self._words = words

    def row(self, laid_out: LaidOutRow, indent: int, *, cursor: bool, pointed: bool) -> list[Segment]:
        """Return a row of the document: highlighted at the cursor, with only a pointer if `pointed`."""
        entry = laid_out.entry
        row = self._row(laid_out)
        back = self._style_of(CURSOR_STYLE) if cursor else Style.null()
        time = entry.time if laid_out.part == 0 and cells(entry.time) < indent else ""
        margin = self._over(self._style_of(TIME_STYLE), back)
        pointer = self._over(self._style_of(POINTER_STYLE), back) if cursor else margin
        segments = [Segment(CURSOR if cursor or pointed else " ", pointer), Segment(time.ljust(indent - 1), margin)]
        prefix = row.line.prefix
        kind = self._style_of(_SIGN_STYLES.get(row.sign) or _KIND_STYLES[Kind.TEXT if prefix else entry.kind])
        if prefix:
            # The sign has the colour of its line, and also shows without colours.
            signed = len(prefix) - 2 if row.sign else len(prefix)
            segments.append(Segment(prefix[:signed], margin))
            segments.append(Segment(prefix[signed:], self._over(kind, back)))
        segments += [Segment(text, self._over(style, back)) for text, style in self._pieces(row, kind)]
        return segments

    def live(self, text: str, indent: int, *, last: bool) -> list[Segment]:
        """Return a row of the sentence being written; the last one ends with the writer's cursor."""
        style = self._style_of(_KIND_STYLES[Kind.LIVE])
        # The sentence was laid out with a space in the cursor's place.
        return [Segment(" " * indent, style), Segment(text.removesuffix(" ") + LIVE_CURSOR if last else text, style)]

    def _row(self, laid_out: LaidOutRow) -> Row:
        offset = laid_out.entry.offset
        rows = self._cut.get(offset)
        if rows is None or laid_out.part >= len(rows):
            rows = self._cut[offset] = laid_out.rows.cut(laid_out.entry)
        return rows[laid_out.part] if laid_out.part < len(rows) else Row(Line(""))

    def _pieces(self, row: Row, kind: Style) -> list[tuple[str, Style]]:
        """Split a row where its style changes."""
        line = row.line
        matches = line.found(self._words) if self._words else []
        if not line.spans and not matches:
            return [(line.text, kind)]
        cuts = {0, len(line.text)}
        cuts.update(end for start, stop, *_ in (*line.spans, *matches) for end in (start, stop))
        pieces: list[tuple[str, Style]] = []
        for start, end in pairwise(sorted(cuts)):
            style = kind
            for span in line.spans:
                if span.start <= start < span.end:
                    style += self._style_of(_LOOK_STYLES[span.look])
            if any(begin <= start < stop for begin, stop in matches):
                style += _MATCH
            pieces.append((line.text[start:end], style))
        return pieces

    def _over(self, style: Style, back: Style) -> Style:
        return style + Style(bgcolor=back.bgcolor) if back.bgcolor else style
