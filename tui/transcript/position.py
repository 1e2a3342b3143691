"""Positions in a document: from rows of the screen to offsets in the file, and back."""

from __future__ import annotations

from typing import NamedTuple

from ..feed.lines import Entry
from .document import LAID_AT_ONCE, Document
from .rows import Rows


class TextPosition(NamedTuple):
    """A row by where its line is in the file, which stays true while rows above it come and go."""

    offset: int
    """Where its line begins."""
    part: int = 0
    """Which row of the line."""


class LaidOutRow(NamedTuple):
    """A row by where it is laid out."""

    rows: Rows
    entry: Entry
    part: int
    """Which row of the entry."""

    @property
    def position(self) -> TextPosition:
        return TextPosition(self.entry.offset, self.part)


def laid_out_row(document: Document, row: int) -> LaidOutRow | None:
    """Return what stands in a row."""
    if not 0 <= row < document.height:
        return None
    index = document.table.at(row)
    within = row - document.table.tops[index]
    rows = document.rows(index)
    if within >= rows.height:
        return None
    entry, part = rows.at(within)
    return LaidOutRow(rows, rows.entries[entry], part)


def position_at(document: Document, row: int) -> TextPosition | None:
    found = laid_out_row(document, row)
    return found.position if found else None


def row_of(document: Document, position: TextPosition) -> int:
    """Return the row of a position, or of what comes next in the file."""
    if not len(document.table):
        return 0
    index, rows, entry = _entry(document, position.offset)
    return document.table.tops[index] + _row_in(rows, entry, position.part)


def moved(document: Document, position: TextPosition, by: int) -> TextPosition | None:
    """Return the position `by` rows further down, or up; at most the last row or the first."""
    if not len(document.table):
        return None
    index, rows, entry = _entry(document, position.offset)
    row = _row_in(rows, entry, position.part) + by
    while row < 0 and index > 0:
        index -= 1
        rows = document.rows(index)
        row += rows.height
    while row >= rows.height and index + 1 < len(document.table):
        row -= rows.height
        index += 1
        rows = document.rows(index)
    if not 0 <= row < rows.height:
        return first(document) if row < 0 else last(document)
    found, part = rows.at(row)
    return TextPosition(rows.entries[found].offset, part)


def nearest(document: Document, offset: int) -> TextPosition | None:
    """Return the line that begins at this byte, or the next one shown after it, else the last one."""
    if not len(document.table):
        return None
    _, rows, entry = _entry(document, offset)
    return TextPosition(rows.entries[entry].offset) if entry < len(rows.entries) else last(document)


def first(document: Document) -> TextPosition | None:
    """Return the first row."""
    for index in range(min(LAID_AT_ONCE, len(document.table))):
        rows = document.rows(index)
        if rows.height:
            return TextPosition(rows.entries[0].offset)
    return None


def last(document: Document) -> TextPosition | None:
    """Return the last row."""
    count = len(document.table)
    for index in range(count - 1, max(-1, count - 1 - LAID_AT_ONCE), -1):
        rows = document.rows(index)
        if rows.height:
            entry, part = rows.at(rows.height - 1)
            return TextPosition(rows.entries[entry].offset, part)
    return None


def _entry(document: Document, offset: int) -> tuple[int, Rows, int]:
    """Return chunk and entry of the line that begins at a byte, or of the next one that says something."""
    index = document.table.holding(offset)
    rows = document.rows(index)
    entry = rows.index_of(offset)
    for _ in range(LAID_AT_ONCE):
        if entry < len(rows.entries) or index + 1 >= len(document.table):
            break
        index += 1
        rows, entry = document.rows(index), 0
    return index, rows, entry


def _row_in(rows: Rows, entry: int, part: int) -> int:
    if entry >= len(rows.entries):
        return rows.height
    return rows.top(entry) + min(part, rows.count(entry) - 1)


class MatchPosition(NamedTuple):
    position: TextPosition
    """The first row with the words; the line's first row where no row has them."""
    folded: bool
    """No row has the words, and opening the line may show them."""


def match_position(document: Document, offset: int, words: str) -> MatchPosition | None:
    """Return where a line shows these words, whatever their case; None where no line begins at this byte."""
    if (found := document.entry_at(offset)) is None:
        return None
    rows, entry = found
    low = words.lower()
    texts = [row.text.lower() for row in rows.cut(entry)]
    # Words that are broken over two rows are shown by the first of them.
    joined = [f"{text} {below}" for text, below in zip(texts, [*texts[1:], ""], strict=True)]
    for sought in (texts, joined):
        if (part := next((part for part, text in enumerate(sought) if low in text), None)) is not None:
            return MatchPosition(TextPosition(offset, part), False)
    return MatchPosition(TextPosition(offset), entry.opens and not document.is_open(offset))
