"""Search a file of lines, block by block: forward, backward, and to count; runs in threads."""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from ...core.system.line_file import FileMark, LineFile

WARM = 256 * 1024
"""Bytes before the start of a search that a matcher sees first: they hold the calls whose results come after it."""

REGION = 4 * 1024 * 1024
"""Bytes that are searched at once where a search goes backward."""

_BEYOND = 1 << 62
"""Farther than any file goes."""

Cancelled = Callable[[], bool]

Matcher = Callable[[int, bytes], list[int]]
"""Returns where matching lines begin in a block of whole lines; the first argument is where the block begins.

It gets the blocks of a file in their order, and may remember what it saw.
"""
NewMatcher = Callable[[], Matcher]


class Match(NamedTuple):
    """The result of a search for the next or the previous match."""

    offset: int | None
    """Where the matching line begins; None for no match in the whole file."""
    wrapped: bool = False
    """Whether the search went around the end of the file."""


def scan(
    file: LineFile, start: int, end: int, matcher: Matcher, cancelled: Cancelled
) -> Iterator[tuple[list[int], int]]:
    """Search the lines that begin at `start` or after it and before `end`, a block at a time, until cancelled.

    Yields the matches in each block, and where the block ends. `start` is the beginning of a line.
    """
    for position, block, following in file.blocks(start):
        if position >= end or cancelled():
            return
        yield [match for match in matcher(position, block) if match < end], following


def find(file: LineFile, new_matcher: NewMatcher, offset: int, step: int, cancelled: Cancelled) -> Match:
    """Return the first match from this byte on (`step` 1) or the last before it (-1), around the end of the file."""
    mark = file.mark()
    size = mark.size if mark else 0
    if step > 0:
        match = first_match(file, new_matcher, offset, size, cancelled)
        other = None if match is not None else first_match(file, new_matcher, 0, min(offset, size), cancelled)
    else:
        match = last_match(file, new_matcher, offset, cancelled)
        other = None if match is not None else last_match(file, new_matcher, file.end_of_lines(size), cancelled)
    return Match(match) if match is not None else Match(other, True)


def first_match(file: LineFile, new_matcher: NewMatcher, start: int, end: int, cancelled: Cancelled) -> int | None:
    """Return where the first matching line at or after `start` and before `end` begins."""
    begin = file.end_of_lines(max(0, start - WARM))
    found = scan(file, begin, end, new_matcher(), cancelled)
    return next((match for matches, _ in found for match in matches if match >= start), None)


def last_match(file: LineFile, new_matcher: NewMatcher, end: int, cancelled: Cancelled) -> int | None:
    """Return where the last matching line before `end`, the beginning of a line, begins."""
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
"""Matches that are counted; those beyond have no number."""

PIECE = 8 * 1024 * 1024
"""Bytes that are searched in one call."""


class Count:
    """The matches from the beginning of a file as far as it was searched.

    `read_on` runs in threads, one at a time; the event loop may ask for all else meanwhile.
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
        """Up to here all matches are known."""
        self._caught_up = False
        """Whether the end of the file was reached once."""

    @property
    def full(self) -> bool:
        return len(self.matches) >= MOST

    @property
    def complete(self) -> bool:
        """Whether all matches are known."""
        return self._caught_up and not self.full

    @property
    def total(self) -> str:
        """`17`, and `17+` when there may be more."""
        return f"{len(self.matches)}{'' if self.complete else '+'}"

    def read_on(self, cancelled: Cancelled) -> bool:
        """Search the next piece; return whether there was one. A file that was replaced is searched anew."""
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
        """Return the number of this match, from 1; None while that is not known."""
        index = bisect_left(self.matches, match)
        return index + 1 if index < len(self.matches) and self.matches[index] == match else None

    def match_from(self, offset: int, step: int) -> Match | None:
        """Return the match after this byte (`step` 1) or before it (-1), around the end; None while it is not known."""
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
