"""Which rows of the screen the lines of one chunk take; pure."""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from ..feed.lines import Entry, Kind
from ..text.cells import cells, wrap_line
from .marks import Marked, Span, marked_lines, shown_lines

UNWRAPPED_LIMIT = 4000
"""Cells of a line that can be scrolled to when lines are not wrapped."""

BODY_PREFIX = "│ "
"""In front of what an opened line shows below itself."""


class Row(NamedTuple):
    """What stands in one row of the screen."""

    text: str
    spans: tuple[Span, ...] = ()
    prefix: str = ""


class Rows:
    """The entries of one chunk and the rows each takes at a width; rows are cut when somebody looks at them."""

    def __init__(self, width: int = 0, wrapped: bool = True) -> None:
        self.entries: list[Entry] = []
        self.offsets = array("q")
        """Byte of the file at which the line of each entry begins."""
        self.bodies: dict[int, str] = {}
        """What the opened entries show below themselves, by their offsets."""
        self._tops = array("l")
        """Row on which each entry starts."""
        self.height = 0
        self.width = width
        """Cells for text."""
        self.wrapped = wrapped
        self.longest = 0
        """Cells of the longest line; only kept up when lines are not wrapped."""

    def extend(self, entries: Iterable[Entry], offsets: Iterable[int], bodies: Mapping[int, str] | None = None) -> None:
        if bodies:
            self.bodies |= bodies
        for entry, offset in zip(entries, offsets, strict=True):
            self.entries.append(entry)
            self.offsets.append(offset)
            self._tops.append(self.height)
            self.height += self._row_count(entry, self.bodies.get(offset))

    def lay_out(self, width: int, wrapped: bool) -> None:
        """Take another width or mode."""
        entries, offsets = self.entries, self.offsets
        self.entries, self.offsets, self._tops = [], array("q"), array("l")
        self.width, self.wrapped = width, wrapped
        self.height = self.longest = 0
        self.extend(entries, offsets)

    def at(self, row: int) -> tuple[int, int]:
        """Return the entry a row belongs to and which of its rows it is."""
        index = bisect_right(self._tops, row) - 1
        return index, row - self._tops[index]

    def top(self, index: int) -> int:
        return self._tops[index]

    def count(self, index: int) -> int:
        """Return how many rows an entry takes."""
        following = self._tops[index + 1] if index + 1 < len(self._tops) else self.height
        return following - self._tops[index]

    def index_of(self, offset: int) -> int:
        """Return the first entry that begins here or after it; the number of entries when there is none."""
        return bisect_left(self.offsets, offset)

    def cut(self, index: int) -> list[Row]:
        """Break an entry into its rows."""
        entry = self.entries[index]
        body = self.bodies.get(self.offsets[index])
        if entry.kind is Kind.TEXT:
            lines = marked_lines(entry.text)
        else:
            lines = [Marked(line) for line in _head(entry, body).split("\n")]
        rows = [row for line in lines for row in self._cut_line(line, "")]
        if body is not None:
            rows += [row for line in body.split("\n") for row in self._cut_line(Marked(line), BODY_PREFIX)]
        return rows

    def _cut_line(self, line: Marked, prefix: str) -> list[Row]:
        rows: list[Row] = []
        position = 0
        for part in self._break(line.text, self.width - len(prefix)):
            position = line.text.find(part, position)
            rows.append(Row(part, _spans_in(line.spans, position, position + len(part)), prefix))
            position += len(part)
        return rows

    def _break(self, line: str, width: int) -> Sequence[str]:
        if self.wrapped and width > 0:
            return wrap_line(line, width)
        return (line[:UNWRAPPED_LIMIT],)

    def _row_count(self, entry: Entry, body: str | None) -> int:
        text = _head(entry, body)
        # Nearly every line fits; cutting the rest is what costs.
        if self.wrapped and body is None and len(text) <= self.width and text.isascii() and "\n" not in text:
            return 1
        lines = shown_lines(text) if entry.kind is Kind.TEXT else text.split("\n")
        below = [] if body is None else body.split("\n")
        if not self.wrapped:
            shown = (cells(line[:UNWRAPPED_LIMIT]) for line in (*lines, *below))
            self.longest = max(self.longest, *shown)
            return len(lines) + len(below)
        inner = self.width - len(BODY_PREFIX)
        return sum(len(self._break(line, self.width)) for line in lines) + sum(
            len(self._break(line, inner)) for line in below
        )


def _head(entry: Entry, body: str | None) -> str:
    """Return what stands above the body; of thinking its first line would stand there twice."""
    if body is None or entry.kind is not Kind.THINKING:
        return entry.text
    return "▾" + entry.text.partition(")")[0][1:] + ")"


def _spans_in(spans: tuple[Span, ...], start: int, end: int) -> tuple[Span, ...]:
    """Return the parts of spans that lie in a part of their line."""
    return tuple(
        Span(max(span.start, start) - start, min(span.end, end) - start, span.mark)
        for span in spans
        if span.start < end and span.end > start
    )
