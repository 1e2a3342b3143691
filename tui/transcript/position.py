"""Positions in a document: from rows of the screen to offsets in the file, and back."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import islice
from typing import NamedTuple

from .document import LAID_AT_ONCE, Document
from .rows import LaidOutRow, Rows, TextPosition


def laid_out_row(document: Document, row: int) -> LaidOutRow | None:
    """Return what stands in a row."""
    if not 0 <= row < document.height:
        return None
    index = document.table.at(row)
    within = row - document.table.tops[index]
    rows = document.rows(index)
    return rows.at(within) if within < rows.height else None


def position_at(document: Document, row: int) -> TextPosition | None:
    found = laid_out_row(document, row)
    return found.position if found else None


def row_of(document: Document, position: TextPosition) -> int:
    """Return the row of a position, or of what comes next in the file."""
    if not len(document.table):
        return 0
    index, rows, entry = _entry(document, position.offset)
    return document.table.tops[index] + rows.row_of(entry, position.part)


def moved(document: Document, position: TextPosition, by: int) -> TextPosition | None:
    """Return the position `by` rows further down, or up; at most the last row or the first."""
    if not len(document.table):
        return None
    index, rows, entry = _entry(document, position.offset)
    row = rows.row_of(entry, position.part) + by
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
    return rows.at(row).position


def nearest(document: Document, offset: int) -> TextPosition | None:
    """Return the line that begins at this byte, or the next one shown after it, else the last one."""
    if not len(document.table):
        return None
    _, rows, entry = _entry(document, offset)
    return TextPosition(rows.entries[entry].offset) if entry < len(rows.entries) else last(document)


def first(document: Document) -> TextPosition | None:
    """Return the first row."""
    return _outermost(document, range(len(document.table)), 0)


def last(document: Document) -> TextPosition | None:
    """Return the last row."""
    return _outermost(document, reversed(range(len(document.table))), -1)


def _outermost(document: Document, chunks: Iterable[int], row: int) -> TextPosition | None:
    """Return a row of the first of these chunks that has any; -1 is its last one."""
    for index in islice(chunks, LAID_AT_ONCE):
        rows = document.rows(index)
        if rows.height:
            return rows.at(row % rows.height).position
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
