"""Columns of a terminal: widths in cells, the text that gives way, the cut."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache

from msgspec import Struct

from ..text.plain import one_line

GAP = "  "

_NARROW = re.compile("[ -~\u00a0-\u00ac\u00ae-\u02ff\u2010-\u2027\u2190-\u22ff\u25a0-\u25cf\u2713\u2717\u2298]*")
"""Letters and signs that are known to take one cell each: ours, and most of what Latin writing has."""


class Column(Struct, frozen=True):
    most: int
    """Cells it may take at the most."""
    least: int = 0
    """Cells it keeps when it gives way; 0 for one that never does."""
    right: bool = False


def table(columns: Sequence[Column], rows: Sequence[Sequence[str]], width: int) -> list[str]:
    """Lay out rows of foreign text in lines of at most `width` cells.

    A column is as wide as its widest text; where there is too little room the widest of those that give way gives
    first.
    """
    if not rows:
        return []
    texts = [
        [one_line(text, column.most) for text in written]
        for column, written in zip(columns, zip(*rows, strict=True), strict=True)
    ]
    widths = [
        min(column.most, max(map(cells, column_texts))) for column, column_texts in zip(columns, texts, strict=True)
    ]
    excess = sum(widths) + len(GAP) * (len(columns) - 1) - width
    while excess > 0:
        giving = [index for index, column in enumerate(columns) if column.least and widths[index] > column.least]
        if not giving:
            break
        widths[max(giving, key=lambda index: widths[index])] -= 1
        excess -= 1
    fitted = [
        [fit(text, cell_width, right=column.right) for text in column_texts]
        for column, cell_width, column_texts in zip(columns, widths, texts, strict=True)
    ]
    lines = map(GAP.join, zip(*fitted, strict=True))
    return [(fit(line, width) if excess > 0 else line).rstrip() for line in lines]


def cells(text: str) -> int:
    """Return how many cells a plain line takes in a terminal."""
    return len(text) if text.isascii() or _NARROW.fullmatch(text) else sum(map(_cells, text))


def fit(text: str, width: int, *, right: bool = False) -> str:
    """Make a plain line exactly `width` cells wide: cut with `…`, or padded at the other side."""
    length = len(text) if text.isascii() else cells(text)
    if length > width:
        text = _cut(text, width - 1).rstrip() + "…" if width > 0 else ""
        length = cells(text)
    padding = " " * (width - length)
    return padding + text if right else text + padding


def _cut(text: str, width: int) -> str:
    if text.isascii() or _NARROW.fullmatch(text):
        return text[:width]
    for place, sign in enumerate(text):
        width -= _cells(sign)
        if width < 0:
            return text[:place]
    return text


@lru_cache(4096)
def _cells(sign: str) -> int:
    import unicodedata  # for signs that are not told by their range

    if unicodedata.combining(sign) or unicodedata.category(sign) in ("Mn", "Me", "Cf"):
        return 0
    return 2 if unicodedata.east_asian_width(sign) in ("W", "F") else 1
