"""What is looked for: words as they are typed, or a regular expression; and which lines of a file may hold it."""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterable

from ..errors import UsageError
from ..text.plain import one_line, plain

Span = tuple[int, int]
"""Where a match begins and ends in its line."""

_TAB = re.compile(" {4,}")
"""What a tab may have become when its text was cleaned."""

_LOOKS_AROUND = re.compile(r"\(\?|\\[AZ]")
"""Something in an expression by which it may match a line, but not the text that the line stands in."""

_ESCAPES = re.compile(rb"\\[ubrf]")
_BEYOND_ASCII = re.compile(
    rb"\xc2[\x80-\x9f]|\xd8\x9c|\xe1\xa0\x8e|\xe2\x80[\x8b\x8e\x8f\xa8-\xae]|\xe2\x81[\xa0-\xaf]"
    rb"|\xef\xbb\xbf|\xef\xbf[\xb9-\xbb]|\xf3\xa0[\x80\x81]"
)
_ASCII = bytes(range(128))
_DELETE = b"\x7f"


class Pattern:
    """Finds what it stands for in one line of plain text."""

    def __init__(self, text: str, *, regex: bool = False, ignore_case: bool = False) -> None:
        """Raise UsageError for a pattern that nothing could match, and for a regular expression that is none."""
        self.text = text if regex else plain(text)
        self.is_regex = regex
        self.ignores_case = ignore_case
        if not self.text:
            raise UsageError("the pattern is empty", where="PATTERN", hint="give at least one character")
        if "\n" in self.text:
            raise UsageError("the pattern has more than one line", where="PATTERN", hint="search for one of its lines")
        self.needles = () if regex else tuple(_needles(self.text, ignore_case))
        """Bytes of which a line of JSON that holds the text has one; none where no such bytes are known."""
        self._expression = _compiled(self.text if regex else re.escape(self.text), self._flags())
        self._in_text = re.compile(self._expression.pattern, self._expression.flags | re.MULTILINE)
        """Finds it in several lines at once, and may find more there."""

    def _flags(self) -> re.RegexFlag:
        if not self.ignores_case:
            return re.NOFLAG
        # Else an `s` would be found in the long s, of which the bytes of an `s` say nothing.
        return re.IGNORECASE | re.ASCII if self.text.isascii() and not self.is_regex else re.IGNORECASE

    def spans(self, line: str) -> tuple[Span, ...]:
        """Return where the pattern is in a line."""
        return tuple(match.span() for match in self._expression.finditer(line))

    def is_in(self, text: str) -> bool:
        """Return False where no line of a text holds it."""
        if self.is_regex and _LOOKS_AROUND.search(self.text):
            return True
        return self._in_text.search(text) is not None if self.is_regex or self.ignores_case else self.text in text

    def lines(self, block: bytearray, end: int) -> Iterable[Span]:
        """Return where the lines of JSON are, in the first `end` bytes of a block, that may hold the pattern."""
        if not self.needles:
            return _all_lines(block, end)
        low = block[:end].lower() if self.ignores_case else block
        found = _lines_with(low, end, self.needles)
        if hides(block, end):
            found.update(line for line in _all_lines(block, end) if hides(block[line[0] : line[1]], line[1] - line[0]))
        return sorted(found)

    def may_be_in(self, content: bytes) -> bool:
        """Return False where certainly no text of a JSON document holds the pattern."""
        if not self.needles:
            return True
        low = content.lower() if self.ignores_case else content
        return any(needle in low for needle in self.needles) or hides(content, len(content))


def hides(block: bytes | bytearray, end: int) -> bool:
    """Whether these bytes may hold characters that are written otherwise there, or taken out before they are shown."""
    if _ESCAPES.search(block, 0, end) or block.find(_DELETE, 0, end) >= 0:
        return True
    part = block[:end]
    return not part.isascii() and _BEYOND_ASCII.search(part.translate(None, _ASCII)) is not None


def _compiled(expression: str, flags: re.RegexFlag) -> re.Pattern[str]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of what may once mean something else: it means what it means today
        try:
            return re.compile(expression, flags)
        except (re.error, OverflowError, RecursionError) as error:
            shown = one_line(expression, 60)
            what = f"{shown} is not a regular expression: {error}"
            raise UsageError(what, where="PATTERN", hint="search for it literally without --regex") from error


def _needles(text: str, ignore_case: bool) -> Iterable[bytes]:
    """Yield the forms in which JSON writes the longest part of a text of which no blank may have been a tab."""
    part = max(_TAB.split(text.strip(" ")), key=len)
    if not part or (ignore_case and not part.isascii() and not part.lower() == part == part.upper()):
        return
    written = part.replace("\\", "\\\\").replace('"', '\\"')
    form = (written.lower() if ignore_case else written).encode("utf-8", "replace")
    yield form
    if b"/" in form:
        yield form.replace(b"/", b"\\/")


def _lines_with(block: bytearray, end: int, needles: Iterable[bytes]) -> set[Span]:
    found: set[Span] = set()
    for needle in needles:
        at = block.find(needle, 0, end)
        while at >= 0:
            stop = block.find(b"\n", at, end)
            stop = end if stop < 0 else stop
            found.add((block.rfind(b"\n", 0, at) + 1, stop))
            at = block.find(needle, stop, end)
    return found


def _all_lines(block: bytearray, end: int) -> Iterable[Span]:
    begin = 0
    while begin < end:
        stop = block.find(b"\n", begin, end)
        stop = end if stop < 0 else stop
        yield begin, stop
        begin = stop + 1
