"""Matches in a run's files, of words or of errors: the tests of lines, the next match, the number of matches.

Only lines that may match are decoded. Three kinds of visible words are not in the bytes of their line and need care:
subdeck's own words, the subject of a result's call, and text that only comes together when control characters are
removed.
"""

from __future__ import annotations

import re
from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from ...core.run.edits import is_edit, may_be_edit
from ...core.run.events import (
    AssistantText,
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
from ...core.search.pattern import hides
from ...core.search.texts import texts_of
from ...core.text import markdown
from ...core.text.plain import plain
from ..feed.lines import LINE_TEXTS, View, entry_of_line, event_of, full_text

if TYPE_CHECKING:
    from ...core.system.line_file import FileMark, LineFile

Cancelled = Callable[[], bool]

Matcher = Callable[[int, bytes], list[int]]
"""Returns the offsets of matching lines in a block of whole lines; the first argument is the block's offset.

It gets the blocks of a file in order, and may keep state.
"""
NewMatcher = Callable[[], Matcher]

OWN_WORDS = vocabulary(*LINE_TEXTS)
"""All words written around an agent's texts, calls and results: they are visible without being in the bytes."""

_OWN_GLYPHS = frozenset("✓✗⊘●◌▸·…")
_PLAIN_WORD = re.compile(r"[a-z0-9_]+")

_CONTROLS = bytes((*range(9), *range(11, 32), 127))
"""Removed from a text before it is shown, in files that are not JSON."""

_CALL, _RESULT = line_prefix(ToolCall), line_prefix(ToolResult)

_MOST_CALLS = 200
"""Calls that are remembered until their result comes, as many as the formatter remembers."""


_MOST_EDITS = 100_000
"""Matched calls that edit files and are remembered."""


def is_case_sensitive(words: str) -> bool:
    """Return whether case counts: the words contain a capital letter."""
    return words != words.lower()


def highlighter(words: str) -> re.Pattern[str] | None:
    """Return a pattern that finds the words within a row, to mark them; None for no words."""
    return re.compile(re.escape(words), re.NOFLAG if is_case_sensitive(words) else re.IGNORECASE) if words else None


class Query:
    """Words as typed, searched for in one view; a capital letter makes them case-sensitive."""

    def __init__(self, words: str, view: str) -> None:
        self.view = view
        self._exact = is_case_sensitive(words)
        self._sought = words if self._exact else words.lower()
        self.needle = _needle(words, view)
        """Lower-case bytes contained in every line with the words; empty if none are known."""

    def matcher(self) -> Matcher:
        """Return a matcher for a file from one offset on; it remembers which calls may contain the words."""
        return partial(self._matches, ProgressFormatter(), {})

    def is_in(self, text: str) -> bool:
        return self._sought in (text if self._exact else text.lower())

    def _matches(self, formatter: ProgressFormatter, called: dict[bytes, bool], start: int, block: bytes) -> list[int]:
        """Return the offsets of lines with the words; `called` has the ids of calls whose results also show them."""
        low = block.lower()
        if self.needle not in low and not called and not _hides(block):
            return []
        matches: list[int] = []
        for line, low_line in zip(block.split(b"\n")[:-1], low.split(b"\n"), strict=False):
            if self._may_be_in(line, low_line, called) and self.is_in(searched_text(self.view, line, formatter)):
                matches.append(start)
            start += len(line) + 1
        return matches

    def _may_be_in(self, line: bytes, low_line: bytes, called: dict[bytes, bool]) -> bool:
        if self.needle not in low_line and not _hides(line):
            return bool(called) and line.startswith(_RESULT) and called.pop(call_id_of_line(line), False)
        if self.needle and line.startswith(_CALL) and (call := call_id_of_line(line)):
            if len(called) >= _MOST_CALLS:
                del called[next(iter(called))]
            called[call] = True
        return True


def searched_text(view: str, line: bytes, formatter: ProgressFormatter) -> str:
    """Return the readable text of a line, opened or not; empty if it is not shown. An agent's text is included as
    written, and as shown without its markup.

    For an edit these are all its texts: no diff is made only for a search.
    """
    if view == View.READABLE:
        event = event_of(line)
        if isinstance(event, AssistantText):
            written = plain(event.text).strip("\n")
            shown = [shown.text for shown in markdown.lines(written)] if markdown.may_have_marks(written) else []
            return "\n".join((written, *shown))
        if may_be_edit(line) and event and is_edit(event):
            entry = entry_of_line(view, line, formatter)
            return "\n".join((entry.text if entry else "", *texts_of(event)))
        return full_text(view, line, formatter)
    entry = entry_of_line(view, line, formatter)
    return entry.text if entry else ""


def _needle(words: str, view: str) -> bytes:
    """Choose the longest part of the words that a line's bytes must contain."""
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
    """Return whether parts of these bytes may be removed before they are shown."""
    return len(block.translate(None, _CONTROLS)) != len(block) or hides(block, len(block))


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


def edit_matcher() -> Matcher:
    """Match calls that edit files, and results with an edit if the call had none."""
    return partial(_edits, set())


def _edits(called: set[bytes], start: int, block: bytes) -> list[int]:
    """Return the offsets of edits; `called` has the ids of the matched calls, whose results are skipped."""
    matches: list[int] = []
    for line in block.split(b"\n")[:-1]:
        if may_be_edit(line):
            call = call_id_of_line(line)
            if call not in called and (event := event_of(line)) and is_edit(event):
                matches.append(start)
                if len(called) < _MOST_EDITS:
                    called.add(call)
        start += len(line) + 1
    return matches


WARM = 256 * 1024
"""Bytes before the start of a search that a matcher sees first: they contain the calls of the first results."""

REGION = 4 * 1024 * 1024
"""Bytes searched at once in a backward search."""

_BEYOND = 1 << 62
"""Beyond the end of any file."""


class Match(NamedTuple):
    """The result of a search for the next or the previous match."""

    offset: int | None
    """Offset of the matching line; None for no match in the whole file."""
    wrapped: bool = False
    """Whether the search wrapped around the end of the file."""


def scan(
    file: LineFile, start: int, end: int, matcher: Matcher, cancelled: Cancelled
) -> Iterator[tuple[list[int], int]]:
    """Search the lines that begin at `start` or after it and before `end`, a block at a time, until cancelled.

    Yields the matches in each block, and the block's end. `start` is the beginning of a line.
    """
    for position, block, following in file.blocks(start):
        if position >= end or cancelled():
            return
        yield [match for match in matcher(position, block) if match < end], following


def find(file: LineFile, new_matcher: NewMatcher, offset: int, step: int, cancelled: Cancelled) -> Match:
    """Return the first match from this byte on (`step` 1) or the last before it (-1), wrapping around."""
    mark = file.mark()
    size = mark.size if mark else 0
    if step > 0:
        match = first_match(file, new_matcher, offset, size, cancelled)
        wrapped_match = None if match is not None else first_match(file, new_matcher, 0, min(offset, size), cancelled)
    else:
        match = last_match(file, new_matcher, offset, cancelled)
        wrapped_match = None if match is not None else last_match(file, new_matcher, file.end_of_lines(size), cancelled)
    return Match(match) if match is not None else Match(wrapped_match, True)


def first_match(file: LineFile, new_matcher: NewMatcher, start: int, end: int, cancelled: Cancelled) -> int | None:
    """Return the offset of the first matching line at or after `start` and before `end`."""
    begin = file.end_of_lines(max(0, start - WARM))
    found = scan(file, begin, end, new_matcher(), cancelled)
    return next((match for matches, _ in found for match in matches if match >= start), None)


def last_match(file: LineFile, new_matcher: NewMatcher, end: int, cancelled: Cancelled) -> int | None:
    """Return the offset of the last matching line before `end`, the beginning of a line."""
    position = end
    while position > 0 and not cancelled():
        region = file.end_of_lines(max(0, position - REGION))
        begin = file.end_of_lines(max(0, region - WARM))
        found = scan(file, begin, position, new_matcher(), cancelled)
        if all_matches := [match for matches, _ in found for match in matches if match >= region]:
            return all_matches[-1]
        position = region
    return None


MOST = 10_000
"""Matches that are counted; further ones have no number."""

PIECE = 8 * 1024 * 1024
"""Bytes searched in one call."""


class Count:
    """The matches in the searched beginning of a file.

    `read_on` runs in threads, one at a time; the event loop may call the other methods during that.
    """

    def __init__(self, file: LineFile, new_matcher: NewMatcher) -> None:
        self._file = file
        self._new_matcher = new_matcher
        self._mark: FileMark | None = None
        self._begin()

    def _begin(self) -> None:
        self._matcher = self._new_matcher()
        self.matches = array("q")
        self.end = 0
        """All matches up to here are known."""
        self._caught_up = False
        """Whether the end of the file was reached once."""

    @property
    def full(self) -> bool:
        return len(self.matches) >= MOST

    @property
    def complete(self) -> bool:
        return self._caught_up and not self.full

    @property
    def total(self) -> str:
        """`17`, or `17+` if there may be more."""
        return f"{len(self.matches)}{'' if self.complete else '+'}"

    def read_on(self, cancelled: Cancelled) -> bool:
        """Search the next piece; return whether there was one. A replaced file is searched from its start."""
        mark, before = self._file.mark(), self._mark
        if mark is None or (before and (mark.inode != before.inode or mark.size < self.end)):
            self._begin()
        self._mark = mark
        start = self.end
        for matches, end in scan(self._file, start, _BEYOND, self._matcher, cancelled):
            self.matches.extend(matches[: MOST - len(self.matches)])
            self.end = end
            if end - start >= PIECE or self.full:
                return True
        self._caught_up = self._caught_up or not cancelled()
        return self.end > start

    def number(self, match: int) -> int | None:
        index = bisect_left(self.matches, match)
        return index + 1 if index < len(self.matches) and self.matches[index] == match else None

    def match_from(self, offset: int, step: int) -> Match | None:
        """Return the match after this byte (`step` 1) or before it (-1), wrapping around; None while it is unknown."""
        matches = self.matches
        if step > 0:
            index = bisect_right(matches, offset)
            if index < len(matches):
                return Match(matches[index])
        else:
            index = bisect_left(matches, offset) - 1
            if index >= 0 and offset <= (matches[-1] if self.full else self.end):
                return Match(matches[index])
        if self.complete and offset <= self.end:
            return Match(matches[0 if step > 0 else -1] if matches else None, True)
        return None
