"""A search pattern: literal words or a regular expression; and which lines of a file may match it."""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterable

from ..errors import UsageError
from ..text.plain import one_line, plain

Span = tuple[int, int]
"""Start and end of a match in its line."""

_TAB = re.compile(" {4,}")
"""The possible form of a tab in a sanitized text."""

_LOOKS_AROUND = re.compile(r"\(\?|\\[AZ]")
"""Parts of an expression by which it may match a line, but not the text around the line."""

_ESCAPES = re.compile(rb"\\[ubrf]")
_BEYOND_ASCII = re.compile(
    rb"\xc2[\x80-\x9f]|\xd8\x9c|\xe1\xa0\x8e|\xe2\x80[\x8b\x8e\x8f\xa8-\xae]|\xe2\x81[\xa0-\xaf]"
    rb"|\xef\xbb\xbf|\xef\xbf[\xb9-\xbb]|\xf3\xa0[\x80\x81]"
)
_ASCII = bytes(range(128))
_DELETE = b"\x7f"


class Pattern:
    """Finds its matches in one line of plain text."""

    def __init__(self, text: str, *, regex: bool = False, ignore_case: bool = False) -> None:
        """Raise UsageError for a pattern that nothing could match, and for an invalid regular expression."""
        self.text = text if regex else plain(text)
        self.is_regex = regex
        self.ignores_case = ignore_case
        if not self.text:
            raise UsageError("the pattern is empty", where="PATTERN", hint="give at least one character")
        if "\n" in self.text:
            raise UsageError("the pattern has more than one line", where="PATTERN", hint="search for one of its lines")
        self.needles = () if regex else tuple(_needles(self.text, ignore_case))
        """Every line of JSON with the text contains one of these; empty if no such bytes are known."""
        self._expression = _compiled(self.text if regex else re.escape(self.text), self._flags())
        self._in_text = re.compile(self._expression.pattern, self._expression.flags | re.MULTILINE)
        """Searches several lines at once, and may find more there."""

    def _flags(self) -> re.RegexFlag:
        if not self.ignores_case:
            return re.NOFLAG
        # Otherwise an `s` would match the long s, whose bytes do not contain it.
        return re.IGNORECASE | re.ASCII if self.text.isascii() and not self.is_regex else re.IGNORECASE

    def spans(self, line: str) -> tuple[Span, ...]:
        """Return the spans of the matches in a line."""
        return tuple(match.span() for match in self._expression.finditer(line))

    def is_in(self, text: str) -> bool:
        """Return False if no line of a text matches."""
        if self.is_regex and _LOOKS_AROUND.search(self.text):
            return True
        return self._in_text.search(text) is not None if self.is_regex or self.ignores_case else self.text in text

    def lines(self, block: bytearray, end: int) -> Iterable[Span]:
        """Return the spans of the lines of JSON that may match, in the first `end` bytes of a block."""
        if not self.needles:
            return _all_lines(block, end)
        low = block[:end].lower() if self.ignores_case else block
        spans = _lines_with(low, end, self.needles)
        if hides(block, end):
            spans.update(line for line in _all_lines(block, end) if hides(block[line[0] : line[1]], line[1] - line[0]))
        return sorted(spans)

    def may_be_in(self, content: bytes) -> bool:
        """Return False if certainly no text of a JSON document matches."""
        if not self.needles:
            return True
        low = content.lower() if self.ignores_case else content
        return any(needle in low for needle in self.needles) or hides(content, len(content))


def hides(block: bytes | bytearray, end: int) -> bool:
    """Return whether these bytes may contain characters that are written differently there, or removed before
    display.
    """
    if _ESCAPES.search(block, 0, end) or block.find(_DELETE, 0, end) >= 0:
        return True
    part = block[:end]
    return not part.isascii() and _BEYOND_ASCII.search(part.translate(None, _ASCII)) is not None


def _compiled(expression: str, flags: re.RegexFlag) -> re.Pattern[str]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # warnings of possible future meanings: the present one applies
        try:
            return re.compile(expression, flags)
        except (re.error, OverflowError, RecursionError) as error:
            shown = one_line(expression, 60)
            what = f"{shown} is not a regular expression: {error}"
            raise UsageError(what, where="PATTERN", hint="search for it literally without --regex") from error


def _needles(text: str, ignore_case: bool) -> Iterable[bytes]:
    """Yield the JSON forms of the longest part of a text in which no space can have been a tab."""
    part = max(_TAB.split(text.strip(" ")), key=len)
    if not part or (ignore_case and not part.isascii() and not part.lower() == part == part.upper()):
        return
    written = part.replace("\\", "\\\\").replace('"', '\\"')
    form = (written.lower() if ignore_case else written).encode("utf-8", "replace")
    yield form
    if b"/" in form:
        yield form.replace(b"/", b"\\/")


def _lines_with(block: bytearray, end: int, needles: Iterable[bytes]) -> set[Span]:
    spans: set[Span] = set()
    for needle in needles:
        at = block.find(needle, 0, end)
        while at >= 0:
            stop = block.find(b"\n", at, end)
            stop = end if stop < 0 else stop
            spans.add((block.rfind(b"\n", 0, at) + 1, stop))
            at = block.find(needle, stop, end)
    return spans


def _all_lines(block: bytearray, end: int) -> Iterable[Span]:
    begin = 0
    while begin < end:
        stop = block.find(b"\n", begin, end)
        stop = end if stop < 0 else stop
        yield begin, stop
        begin = stop + 1
