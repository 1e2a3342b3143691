"""The number of matches in a file, counted piece by piece while it may still grow."""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right
from typing import TYPE_CHECKING, NamedTuple

from .scanner import Cancelled, Matcher, Pattern, scan

if TYPE_CHECKING:
    from ....core.system.line_file import FileMark, LineFile

MOST = 10_000
"""Matches that are counted; those beyond have no number."""

PIECE = 8 * 1024 * 1024
"""Bytes that are searched in one call."""

_ANYWHERE = 1 << 62


class Inspection(NamedTuple):
    """What one call has found."""

    start: int
    matches: list[int]
    end: int
    at_end: bool
    """Whether all that was written has been searched."""
    mark: FileMark | None


class Count:
    """The matches from the beginning of a file as far as it was searched; `look` runs in threads, one at a time."""

    def __init__(self, file: LineFile, pattern: Pattern) -> None:
        self._file = file
        self._pattern = pattern
        self._matcher: Matcher = pattern.matcher()
        self._mark: FileMark | None = None
        self.matches = array("q")
        self.end = 0
        """Up to here all matches are known."""
        self.caught_up = False
        """Whether the end of the file was reached once."""

    @property
    def full(self) -> bool:
        return len(self.matches) >= MOST

    @property
    def complete(self) -> bool:
        """Whether all matches are known."""
        return self.caught_up and not self.full

    @property
    def total(self) -> str:
        """`17`, and `17+` when there may be more."""
        return f"{len(self.matches)}{'' if self.complete else '+'}"

    def look(self, cancelled: Cancelled) -> Inspection:
        """Search the next piece; changes nothing but what the matcher remembers."""
        mark, before = self._file.mark(), self._mark
        start = end = self.end
        if mark is None or (before and (mark.inode != before.inode or mark.size < end)):
            self._matcher, start, end = self._pattern.matcher(), 0, 0
        matches: list[int] = []
        for block in scan(self._file, start, _ANYWHERE, self._matcher, cancelled):
            matches += block.matches
            end = block.end
            if end - start >= PIECE or len(matches) >= MOST:
                return Inspection(start, matches, end, False, mark)
        return Inspection(start, matches, end, not cancelled(), mark)

    def take(self, looked: Inspection) -> None:
        """Add what was found; a file that was replaced is counted from its beginning."""
        if looked.start < self.end:
            self.matches = array("q")
        self.matches.extend(looked.matches[: MOST - len(self.matches)])
        self.end, self._mark = looked.end, looked.mark
        self.caught_up = self.caught_up or looked.at_end

    def number(self, match: int) -> int | None:
        """Return the number of this match, from 1; None while that is not known."""
        index = bisect_left(self.matches, match)
        return index + 1 if index < len(self.matches) and self.matches[index] == match else None

    def after(self, offset: int) -> int | None:
        """Return the next known match."""
        index = bisect_right(self.matches, offset)
        return self.matches[index] if index < len(self.matches) else None

    def before(self, offset: int) -> int | None:
        """Return the match before an offset, where it is certain that none lies between them."""
        index = bisect_left(self.matches, offset) - 1
        certain = index >= 0 and (offset <= self.end if not self.full else offset <= self.matches[-1])
        return self.matches[index] if certain else None
