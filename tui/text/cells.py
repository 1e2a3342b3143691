"""Fit text into cells: wrap, cut, pad; pure. The only module of the app that measures text.

Widths are those of rich, which Textual draws with; wcwidth differs for flags, skin tones and text selectors. The
command line, which must not load rich, has its own in `core.cli._table`.
"""

from __future__ import annotations

import re

from rich.cells import cell_len, chop_cells, set_cell_size
from textual.content import Content

_TOKENS = re.compile(r"\s*\S+|\s+$")


def cells(text: str) -> int:
    """Return the width of a text on the screen."""
    return len(text) if text.isascii() else cell_len(text)


def shortened(text: str, width: int) -> str:
    """Return text of at most `width` cells, cut with `…` if necessary."""
    return text if cells(text) <= width else set_cell_size(text, max(0, width - 1)).rstrip() + "…"


def fit(text: str, width: int, *, right: bool = False) -> str:
    """Return text exactly `width` cells wide: cut with `…`, or padded on the right (with `right` on the left)."""
    if width <= 0:
        return ""
    length = cells(text)
    if length > width:
        return set_cell_size(shortened(text, width), width)
    return " " * (width - length) + text if right else text + " " * (width - length)


def two_sided(left: Content, right: Content, width: int) -> Content:
    """Return one line with text at both ends; the left side is cut first."""
    room = width - right.cell_length
    if room <= 0:
        return left.truncate(width, ellipsis=True)
    shown = left.truncate(max(0, room - 1), ellipsis=True)
    return Content.assemble(shown, " " * (room - shown.cell_length), right)


def wrap(text: str, width: int) -> list[str]:
    """Break text into rows of at most `width` cells, at spaces if possible; indentation stays.

    Each row is a part of its line, in order; only spaces at a break are omitted.
    """
    rows: list[str] = []
    for line in text.split("\n"):
        rows.extend(wrap_line(line, width))
    return rows


def wrap_line(line: str, width: int) -> list[str]:
    """Break one line into rows."""
    if line.isascii():
        return [line] if len(line) <= width else _wrap_ascii(line, width)
    return [line] if cell_len(line) <= width else _wrap_wide(line, width)


def _wrap_ascii(line: str, width: int) -> list[str]:
    """Do the same as `_wrap_wide` if each character is a cell; the cost depends on the rows, not on the words."""
    rows: list[str] = []
    start, size = 0, len(line)
    while size - start > width:
        space = line.rfind(" ", start, start + width + 1)
        row = line[start:space].rstrip(" ") if space > start else ""
        if not row:
            rows.append(line[start : start + width])
            start += width
            continue
        rows.append(row)
        start = space
        while start < size and line[start] == " ":
            start += 1
    return [*rows, line[start:]]


def _wrap_wide(line: str, width: int) -> list[str]:
    rows: list[str] = []
    row, room = "", width
    for token in _TOKENS.findall(line):
        size = cells(token)
        if size <= room:
            row, room = row + token, room - size
            continue
        if row:
            rows.append(row)
            token = token.lstrip()
        pieces = _chop(token, width)
        rows.extend(pieces[:-1])
        row = pieces[-1] if pieces else ""
        room = width - cells(row)
    return [*rows, row]


def _chop(token: str, width: int) -> list[str]:
    if token.isascii():
        return [token[start : start + width] for start in range(0, len(token), width)] or [""]
    return chop_cells(token, width)
