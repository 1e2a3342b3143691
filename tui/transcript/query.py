"""What is searched for in a run's files, words or errors, decoding only lines that may hold them.

Of the words that a person reads, three kinds are not in the bytes of their line and need care: subdeck's own words, the
subject of the call that a result belongs to, and text that only comes together when control characters are taken out.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from ...core.run.events import (
    ErrorReported,
    RunEnded,
    ToolCall,
    ToolResult,
    call_id_of_line,
    line_prefix,
    may_report_error,
)
from ...core.run.model import RunStatus
from ...core.run.progress import ProgressFormatter, vocabulary
from ..feed.lines import LINE_TEXTS, View, entry_of_line, event_of, full_text

if TYPE_CHECKING:
    from .scanner import Matcher

OWN_WORDS = vocabulary(*LINE_TEXTS)
"""Every word that is written around what a child says, calls and gets, so that it may be read where no byte says it."""

_OWN_GLYPHS = frozenset("✓✗⊘●◌▸·…")
_PLAIN_WORD = re.compile(r"[a-z0-9_]+")

_CONTROLS = bytes((*range(9), *range(11, 32), 127))
_ESCAPED = (b"\\u", b"\\r", b"\\b", b"\\f")
_HIDDEN = re.compile(
    rb"\xc2[\x80-\x9f]|\xe2\x80[\x8b\x8e\x8f\xa8-\xae]|\xe2\x81[\xa0-\xaf]|\xef\xbb\xbf|\xef\xbf[\xb9-\xbb]"
)
"""What is taken out of a text before it is shown: as it is, as JSON writes it, and beyond ASCII as UTF-8 writes it."""

_CALL, _RESULT = line_prefix(ToolCall), line_prefix(ToolResult)

_MOST_CALLS = 200
"""Calls that are remembered until their result comes, as many as the formatter remembers."""


def is_case_sensitive(words: str) -> bool:
    """Return whether the case of words counts: a capital letter is among them."""
    return words != words.lower()


def highlighter(words: str) -> re.Pattern[str] | None:
    """Return what finds the words within a row, to mark them; None for no words."""
    return re.compile(re.escape(words), re.NOFLAG if is_case_sensitive(words) else re.IGNORECASE) if words else None


class Query:
    """Words as they were typed, searched for in one view; their case counts when a capital letter is among them."""

    def __init__(self, words: str, view: str) -> None:
        self.view = view
        self._exact = is_case_sensitive(words)
        self._sought = words if self._exact else words.lower()
        self.needle = _needle(words, view)
        """Bytes in lower case that every line which holds the words has too; empty when no such bytes are known."""

    def matcher(self) -> Matcher:
        return _QueryMatcher(self).matches

    def is_in(self, text: str) -> bool:
        return self._sought in (text if self._exact else text.lower())


class _QueryMatcher:
    """Goes through a file from one offset on with a query."""

    def __init__(self, query: Query) -> None:
        self._query = query
        self._formatter = ProgressFormatter()
        self._called: dict[bytes, None] = {}
        """Ids of the calls that may hold the words: their results say them too."""

    def matches(self, start: int, block: bytes) -> list[int]:
        """Return where the lines that hold the words begin."""
        needle = self._query.needle
        low = block.lower()
        if needle not in low and not self._called and not _hides(block):
            return []
        matches: list[int] = []
        for line, low_line in zip(block.split(b"\n")[:-1], low.split(b"\n"), strict=False):
            if self._may_hold(needle, low_line, line):
                text = searched_text(self._query.view, line, self._formatter)
                if self._query.is_in(text):
                    matches.append(start)
            start += len(line) + 1
        return matches

    def _may_hold(self, needle: bytes, low_line: bytes, line: bytes) -> bool:
        if needle not in low_line and not _hides(line):
            return self._is_result_of_called(line)
        if needle and line.startswith(_CALL) and (call := call_id_of_line(line)):
            if len(self._called) >= _MOST_CALLS:
                del self._called[next(iter(self._called))]
            self._called[call] = None
        return True

    def _is_result_of_called(self, line: bytes) -> bool:
        if not self._called or not line.startswith(_RESULT):
            return False
        call = call_id_of_line(line)
        was_called = call in self._called
        self._called.pop(call, None)
        return was_called


def searched_text(view: str, line: bytes, formatter: ProgressFormatter) -> str:
    """Return what a person can read of a line, opened or not; empty where it is not shown."""
    if view == View.READABLE:
        return full_text(view, line, formatter)
    entry = entry_of_line(view, line, formatter)
    return entry.text if entry else ""


def _needle(words: str, view: str) -> bytes:
    """Choose the longest part of the words that a line's bytes must have."""
    low = words.lower()
    if view != View.READABLE:
        parts = low.split()
        candidates = [part for part in parts if part.isascii() or _caseless(part)]
    else:
        candidates = [part for part in _PLAIN_WORD.findall(low) if not any(part in word for word in OWN_WORDS)]
        if not candidates:
            foreign = re.findall(r"[^\x00-\x7f]+", words)
            candidates = [part for part in foreign if _caseless(part) and not _OWN_GLYPHS & set(part)]
    return max(candidates, key=len, default="").encode("utf-8", "replace")


def _caseless(text: str) -> bool:
    return text.isprintable() and text == text.lower() == text.upper()


def _hides(block: bytes) -> bool:
    """Whether something may be taken out of these bytes before they are shown."""
    if any(escape in block for escape in _ESCAPED) or len(block.translate(None, _CONTROLS)) != len(block):
        return True
    return not block.isascii() and _HIDDEN.search(block) is not None


def error_matcher() -> Matcher:
    """Match errors, failed tools and an end other than completed."""
    return _errors


def _errors(start: int, block: bytes) -> list[int]:
    if not may_report_error(block):
        return []
    matches: list[int] = []
    for line in block.split(b"\n")[:-1]:
        if may_report_error(line) and _is_error(line):
            matches.append(start)
        start += len(line) + 1
    return matches


def _is_error(line: bytes) -> bool:
    match event_of(line):
        case ErrorReported() | ToolResult(is_error=True):
            return True
        case RunEnded(status=status):
            return status != RunStatus.COMPLETED
        case _:
            return False
