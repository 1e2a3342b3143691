"""Break text into rows of a width, by cells; pure."""

from __future__ import annotations

import re

from rich.cells import cell_len, chop_cells

_TOKENS = re.compile(r"\s*\S+|\s+$")


def wrap(text: str, width: int) -> list[str]:
    """Break text into rows of at most `width` cells, at spaces where there are any; indentation stays."""
    rows: list[str] = []
    for line in text.split("\n"):
        if len(line) <= width and (line.isascii() or cell_len(line) <= width):
            rows.append(line)
        else:
            rows.extend(_wrap_line(line, width))
    return rows


def _wrap_line(line: str, width: int) -> list[str]:
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


def cells(text: str) -> int:
    """Answer the width of a text on the screen."""
    return len(text) if text.isascii() else cell_len(text)
