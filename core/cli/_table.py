"""Lay out rows of text in the columns of a terminal."""

from __future__ import annotations

from collections.abc import Collection, Container, Sequence
from functools import lru_cache

from ..text.column import Column
from ..text.plain import one_line
from ..text.visible import recounted

GAP = "  "

_OURS = frozenset("✓✗⊘●◌◐◔–—…·→")
"""Non-Latin characters of subdeck's own texts; one cell each."""


def table(
    columns: Sequence[Column], rows: Sequence[Sequence[str]], width: int, counted: Container[str] = ()
) -> list[str]:
    """Lay out rows of untrusted text in lines of at most `width` cells.

    A column is as wide as its widest text. If there is too little room, the widest column with a `least` width is
    narrowed first. A shortened text of `counted`, such as a request, ends with the number of missing characters.
    """
    if not rows:
        return []
    written = list(zip(*rows, strict=True))
    # Most columns have few different texts: each is laid out once.
    texts = [
        {
            text: recounted(text, column.most, _cells) if text in counted else one_line(text, column.most)
            for text in set(column_texts)
        }
        for column, column_texts in zip(columns, written, strict=True)
    ]
    widths = [min(column.most, _widest(lines.values())) for column, lines in zip(columns, texts, strict=True)]
    excess = sum(widths) + len(GAP) * (len(columns) - 1) - width
    while excess > 0:
        shrinkable = [index for index, column in enumerate(columns) if column.least and widths[index] > column.least]
        if not shrinkable:
            break
        widths[max(shrinkable, key=lambda index: widths[index])] -= 1
        excess -= 1
    for column, cell_width, lines in zip(columns, widths, texts, strict=True):
        for text, line in lines.items():
            shorter = recounted(line, cell_width, _cells) if text in counted else line
            lines[text] = fit(shorter, cell_width, right=column.right)
    fitted = [map(lines.__getitem__, column_texts) for lines, column_texts in zip(texts, written, strict=True)]
    whole = map(GAP.join, zip(*fitted, strict=True))
    return [(fit(line, width) if excess > 0 else line).rstrip() for line in whole]


def _widest(lines: Collection[str]) -> int:
    """Return the cells of the widest line; in most tables each character takes one."""
    together = "".join(lines)
    is_narrow = together.isascii() or together.replace("…", "").isascii()
    return max(map(len if is_narrow else _cells, lines))


def _cells(text: str) -> int:
    return len(text) if _is_narrow(text) else sum(map(_width, text))


def fit(text: str, width: int, *, right: bool = False) -> str:
    """Make a plain line exactly `width` cells wide: cut with `…`, or padded at the other side."""
    if text.isascii() or _is_narrow(text):  # as most are
        if len(text) > width:
            text = text[: width - 1].rstrip() + "…" if width > 0 else ""
        return text.rjust(width) if right else text.ljust(width)
    if _cells(text) > width:
        text = _cut(text, width - 1).rstrip() + "…" if width > 0 else ""
    padding = " " * (width - _cells(text))
    return padding + text if right else text + padding


def _is_narrow(text: str) -> bool:
    """Whether each character certainly takes one cell; False if that needs a closer look."""
    return text.isascii() or text.rstrip("…").isascii()


def _cut(text: str, width: int) -> str:
    for index, character in enumerate(text):
        width -= _width(character)
        if width < 0:
            return text[:index]
    return text


@lru_cache(4096)
def _width(character: str) -> int:
    if character in _OURS or "\u00ad" != character < "\u0300":
        return 1
    import unicodedata  # which most tables do not need

    if unicodedata.combining(character) or unicodedata.category(character) in ("Mn", "Me", "Cf"):
        return 0
    return 2 if unicodedata.east_asian_width(character) in ("W", "F") else 1
