"""The little of markdown that a transcript shows; pure, bounded, and never wrong about what it does not know.

Only the two stars around strong text are left out. Backticks and the signs of headings stay: colour alone says nothing.
"""

from __future__ import annotations

import re
from enum import IntEnum
from typing import NamedTuple

LINE_LIMIT = 2000
"""Characters of a line in which marks are looked for; a longer one is shown as it is."""


class Mark(IntEnum):
    STRONG = 0
    HEADING = 1
    CODE = 2


class Span(NamedTuple):
    start: int
    end: int
    mark: Mark


class Marked(NamedTuple):
    """One line as it is shown."""

    text: str
    spans: tuple[Span, ...] = ()


_FENCE = re.compile(r" {0,8}(`{3,}|~{3,})")
_HEADING = re.compile(r" {0,3}#{1,6} +\S")
_BULLET = re.compile(r"( *)[-*] (?=\S)")
_INLINE = re.compile(r"(`[^`]+`)|\*\*(?! )([^*]+)(?<! )\*\*")


def marked_lines(text: str) -> list[Marked]:
    """Return the lines of a text with what is marked in them."""
    lines: list[Marked] = []
    fence = ""
    for line in text.split("\n"):
        found = _FENCE.match(line)
        sign = found[1] if found else ""
        if fence:
            lines.append(_whole(line, Mark.CODE))
            closes = sign.startswith(fence) and not line.strip().strip(fence[0])
            fence = "" if closes else fence
        elif sign:
            lines.append(_whole(line, Mark.CODE))
            fence = sign
        else:
            lines.append(_marked(line))
    return lines


def shown_lines(text: str) -> list[str]:
    """Return the same lines without their marks; a bullet is as wide as what it stands for, and so left alone."""
    return [line.text for line in marked_lines(text)] if "**" in text else text.split("\n")


def _whole(line: str, mark: Mark) -> Marked:
    return Marked(line, (Span(0, len(line), mark),) if line else ())


def _marked(line: str) -> Marked:
    if len(line) > LINE_LIMIT:
        return Marked(line)
    if _HEADING.match(line):
        return _whole(line, Mark.HEADING)
    if bullet := _BULLET.match(line):
        line = f"{bullet[1]}• {line[bullet.end() :]}"
    if "`" not in line and "**" not in line:
        return Marked(line)
    shown, spans, done, size = [""], [Span(0, 0, Mark.CODE)][:0], 0, 0
    for found in _INLINE.finditer(line):
        before = line[done : found.start()]
        inside = found[1] or found[2]
        start = size + len(before)
        spans.append(Span(start, start + len(inside), Mark.CODE if found[1] else Mark.STRONG))
        shown += [before, inside]
        size, done = start + len(inside), found.end()
    return Marked("".join([*shown, line[done:]]), tuple(spans))
