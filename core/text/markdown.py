"""The little markdown that agents write, line by line: the displayed text of each line, and its styles; pure.

Only marks are removed: every other character stays in its place. Anything that is not certainly a mark stays, because
answers are full of globs, names with underscores and half-written code. The work is linear in any text.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator
from enum import StrEnum
from itertools import pairwise
from typing import NamedTuple

from .plain import one_line

LONGEST_LINE = 2000
"""Characters up to which a line is searched for marks; a longer one is shown as it is."""
_SIGNS = ("`", "*", "#", "[", ">", "~~~", "\n-", "\n+", "\n_", "\n ")
"""Every text with marks contains one of these, or begins with a bullet, a rule or spaces."""
CODE_PREFIX = "  "
"""Before each line of a code block, so that it is visible as one without colours."""

_FENCE = re.compile(r" {0,8}(`{3,}|~{3,})([^`]*)$")
_HEADING = re.compile(r" {0,3}(#{1,6}) +(?=\S)")
_BULLET = re.compile(r"( *)[-*+] (?= *\S)")
_NUMBER = re.compile(r" *\d{1,9}[.)] ")
_QUOTE = re.compile(r" {0,3}>")
_INDENTED = re.compile(r" {4,}\S")
_TABLE_ROW = re.compile(r" *\|")

_TICKS = re.compile(r"`+")
_ESCAPED = re.compile(r"\\([*_`#\[\]])")
_STRONG = re.compile(r"\*\*(?=[^\s*])([^*]+)(?<=[^\s*])\*\*")
_STRONG_BEGINS = re.compile(r"\*\*(?=[^\s*])[^*]+$")
_EMPHASIS = re.compile(r"""(?<![^\s("'\0])\*(?=[\w\0])([^*]+)(?<=[\w\0.!?,)])\*(?=[\s.,;:!?)"'\0]|$)""")
_LINK = re.compile(r"(!?\[)([^\[\]]+)(\]\()([^()\s]+)\)")
_INNER_HEADING = re.compile(r"(?<!\S)#{2,6} +(?=\S)")
_OPAQUE = "\0"
"""Replaces text that is not searched for further marks; safe text never contains it."""


class Look(StrEnum):
    """Style of a part of a line."""

    STRONG = "strong"
    EMPHASIS = "emphasis"
    TITLE = "title"
    """Of the two highest levels of headings."""
    CODE = "code"
    FAINT = "faint"


class Span(NamedTuple):
    start: int
    end: int
    look: Look


class Line(NamedTuple):
    """A line, or a part of one, as displayed."""

    text: str
    spans: tuple[Span, ...] = ()
    prefix: str = ""
    """Displayed before it, and not part of the text."""
    source: str = ""
    """As it was written; empty if nothing was removed from it."""
    places: tuple[int, ...] = ()
    """With `source`: position in the text of each of its characters, or of the next one shown, and of the text's
    end.
    """

    def found(self, words: re.Pattern[str]) -> list[tuple[int, int]]:
        """Return the spans of the text that match as displayed, or as written."""
        spans = [match.span() for match in words.finditer(self.text)]
        if self.source:
            spans += [
                (self.places[start], self.places[end])
                for start, end in (match.span() for match in words.finditer(self.source))
            ]
        return [(start, end) for start, end in spans if start < end]


def may_have_marks(text: str) -> bool:
    """Return False if a text is certainly displayed as it is written."""
    return text[:1] in ("-", "+", "_", " ") or any(sign in text for sign in _SIGNS)


class Source(NamedTuple):
    """A line as it is written, and its kind; its layout is left to the caller."""

    text: str
    is_code: bool = False
    prefix: str = ""


def lines(text: str) -> list[Line]:
    """Lay out a text that is safe to show; fences are hidden, but not their content."""
    return [laid_out(source) for source in sources(text)]


def sources(text: str) -> list[Source]:
    """Return the displayed lines of a text; each takes as many cells as it is written in, or fewer."""
    if not may_have_marks(text):
        return [Source(line) for line in text.split("\n")]
    return [*_sources(text)] or [Source(line, is_code=True) for line in text.split("\n")]


def laid_out(source: Source) -> Line:
    if source.is_code:
        return Line(source.text, _whole(source.text, Look.CODE), source.prefix)
    return _marked(source.text) if may_have_marks(source.text) else Line(source.text)


def prose(text: str, limit: int) -> str:
    """Fold a text into one line without marks, of at most `limit` characters."""
    line = one_line(text, limit * 2)
    if not may_have_marks(line):
        return one_line(line, limit)
    shown = _marked(line, is_cut=True)
    return one_line(_INNER_HEADING.sub("", shown.text), limit)


def part(line: Line, start: int, end: int, prefix: str | None = None) -> Line:
    """Return a part of a line, for breaking it into rows."""
    spans = tuple(
        Span(max(span.start, start) - start, min(span.end, end) - start, span.look)
        for span in line.spans
        if span.start < end and span.end > start
    )
    shown = Line(line.text[start:end], spans, line.prefix if prefix is None else prefix)
    if not line.source:
        return shown
    first = bisect_left(line.places, start)
    last = bisect_right(line.places, end) - 1
    positions = tuple(min(position - start, end - start) for position in (*line.places[first:last], end))
    return shown._replace(source=line.source[first:last], places=positions)


def _sources(text: str) -> Iterator[Source]:
    fence = ""
    has_indented = text.startswith("    ") or "\n    " in text
    is_in_list = False
    was_blank = True
    """Whether the previous line was blank, or code by its indentation."""
    for line in text.split("\n"):
        match = _FENCE.match(line) if "```" in line or "~~~" in line else None
        ticks = match[1] if match else ""
        if fence:
            if match and ticks.startswith(fence) and not match[2].strip():
                fence = ""
            else:
                yield Source(line, is_code=True, prefix=CODE_PREFIX)
        elif ticks:
            fence, was_blank = ticks, False
        elif has_indented and was_blank and not is_in_list and _INDENTED.match(line):
            yield Source(line, is_code=True)
        else:
            was_blank = not line.strip()
            if has_indented and not was_blank and line[0] != " ":
                is_in_list = bool(_BULLET.match(line) or _NUMBER.match(line))
            yield Source(line)


def _whole(line: str, look: Look) -> tuple[Span, ...]:
    return (Span(0, len(line), look),) if line else ()


def _marked(line: str, *, is_cut: bool = False) -> Line:
    """Lay out one line outside of code blocks. With `is_cut` the end of its last mark may be missing."""
    if len(line) > LONGEST_LINE or _TABLE_ROW.match(line):
        return Line(line)
    if _is_rule(line):
        return Line("─" * len(line), _whole(line, Look.FAINT))
    out = _Marks(line)
    if heading := _HEADING.match(line):
        end = max(heading.end(), _heading_end(line))
        out.drop(0, heading.end())
        out.drop(end, len(line))
        out.style(heading.end(), end, Look.TITLE if len(heading[1]) < 3 else Look.STRONG)
    elif bullet := _BULLET.match(line):
        out.put(bullet.end() - 2, "•")
    elif quote := _QUOTE.match(line):
        out.put(quote.end() - 1, "▏")
    out.inline(is_cut=is_cut)
    return out.line()


def _is_rule(line: str) -> bool:
    """Return whether a line is three or more of `-`, `*` or `_` and nothing else."""
    marks = line.replace(" ", "")
    return len(marks) >= 3 and marks[0] in "-*_" and marks == marks[0] * len(marks) and not line.startswith(" " * 4)


def _heading_end(line: str) -> int:
    """Return where the text of a heading ends, before a closing `#`."""
    whole = line.rstrip(" ")
    text = whole.rstrip("#")
    return len(text.rstrip(" ")) if text != whole and text.endswith(" ") else len(whole)


class _Marks:
    """The marks of one line, by position."""

    def __init__(self, line: str) -> None:
        self._line = line
        self._shown = line
        """With some characters replaced, at the same length."""
        self._hidden = line
        """The text that is still searched for marks."""
        self._dropped: list[tuple[int, int]] = []
        self._spans: list[Span] = []

    def drop(self, start: int, end: int) -> None:
        self._dropped.append((start, end))
        self._hide(start, end)

    def style(self, start: int, end: int, look: Look) -> None:
        self._spans.append(Span(start, end, look))

    def put(self, at: int, shown: str) -> None:
        self._shown = self._shown[:at] + shown + self._shown[at + len(shown) :]
        self._hide(at, at + len(shown))

    def _hide(self, start: int, end: int) -> None:
        self._hidden = self._hidden[:start] + _OPAQUE * (end - start) + self._hidden[end:]

    def inline(self, *, is_cut: bool) -> None:
        self._code(is_cut=is_cut)
        for match in _ESCAPED.finditer(self._hidden):
            self._dropped.append((match.start(), match.start() + 1))
        self._hidden = _ESCAPED.sub(_OPAQUE * 2, self._hidden)
        for match in _LINK.finditer(self._hidden):
            self._dropped.append(match.span(1))
            self._shown = f"{self._shown[: match.start(3)]} ({self._shown[match.end(3) :]}"
            self.style(*match.span(4), Look.FAINT)
        for pattern, look, width in ((_STRONG, Look.STRONG, 2), (_EMPHASIS, Look.EMPHASIS, 1)):
            for match in pattern.finditer(self._hidden):
                start, end = match.span()
                self._dropped += [(start, start + width), (end - width, end)]
                self.style(start + width, end - width, look)
            edge = _OPAQUE * width
            self._hidden = pattern.sub(rf"{edge}\1{edge}", self._hidden)
        if is_cut and (match := _STRONG_BEGINS.search(self._hidden)):
            self._dropped.append((match.start(), match.start() + 2))

    def _code(self, *, is_cut: bool) -> None:
        """Apply spans of code: between two runs of equally many backticks, with no other marks inside."""
        if "`" not in self._hidden:
            return
        runs = [match.span() for match in _TICKS.finditer(self._hidden)]
        later: dict[int, list[int]] = {}
        for number, (start, end) in reversed([*enumerate(runs)]):
            later.setdefault(end - start, []).append(number)
        number = 0
        while number < len(runs):
            start, end = runs[number]
            if self._line[start - 1 : start] == "\\":
                number += 1
                continue  # it is escaped
            same = later[end - start]
            while same and same[-1] <= number:
                same.pop()
            if same and runs[same[-1]][0] > end:
                closing = same[-1]
                self._take_code(start, end, *runs[closing])
                number = closing
            elif is_cut and number == len(runs) - 1:
                self.drop(start, end)
            number += 1

    def _take_code(self, start: int, inner: int, inner_end: int, end: int) -> None:
        code = self._line[inner:inner_end]
        if len(code) > 2 and code[0] == code[-1] == " " and code[1] + code[-2] != "  " and "`" in code:
            inner, inner_end = inner + 1, inner_end - 1  # the spaces separate its own backticks from the marks
        self._dropped += [(start, inner), (inner_end, end)]
        self.style(inner, inner_end, Look.CODE)
        self._hide(start, end)

    def line(self) -> Line:
        if not self._dropped:
            return Line(self._shown, tuple(sorted(self._spans)))
        kept = _without(self._dropped, len(self._line))
        return self._finished("".join(self._shown[start:end] for start, end in kept), kept)

    def _finished(self, text: str, kept: list[tuple[int, int]]) -> Line:
        """Return the line with the position of each of its characters in the displayed text."""
        positions: list[int] = []
        shown = 0
        for start, end in kept:
            positions += [shown] * (start - len(positions))
            positions += range(shown, shown + end - start)
            shown += end - start
        positions += [shown] * (len(self._line) + 1 - len(positions))
        spans = (Span(positions[start], positions[end], look) for start, end, look in self._spans)
        return Line(
            text, tuple(sorted(span for span in spans if span.start < span.end)), "", self._line, tuple(positions)
        )


def _without(dropped: Iterable[tuple[int, int]], length: int) -> list[tuple[int, int]]:
    """Return the remaining ranges of `length` characters."""
    bounds = [(0, 0), *sorted(dropped), (length, length)]
    return [(end, start) for (_, end), (start, _) in pairwise(bounds) if end < start]
