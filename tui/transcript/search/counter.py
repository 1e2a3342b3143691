"""How many matches a file has and the how manieth one is, counted piece by piece while it may still grow."""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right
from typing import TYPE_CHECKING, NamedTuple

from .scanner import Cancelled, Matcher, Wanted, scan

if TYPE_CHECKING:
    from ....core.system.line_file import FileMark, LineFile

MOST = 10_000
"""Matches that are counted; beyond them one goes on from match to match without a number."""

PIECE = 8 * 1024 * 1024
"""Bytes that are looked at in one call."""

_ANYWHERE = 1 << 62


class Inspection(NamedTuple):
    """What one call has found."""

    start: int
    hits: list[int]
    end: int
    at_end: bool
    """Nothing more has been written."""
    mark: FileMark | None


class Count:
    """The matches from the beginning of a file up to where it was looked at; `look` runs in threads, one at a time."""

    def __init__(self, file: LineFile, wanted: Wanted) -> None:
        self._file = file
        self._wanted = wanted
        self._matcher: Matcher = wanted.matcher()
        self._mark: FileMark | None = None
        self.hits = array("q")
        self.end = 0
        """Up to here all matches are known."""
        self.caught_up = False
        """Everything that was written has been looked at once."""

    @property
    def full(self) -> bool:
        return len(self.hits) >= MOST

    @property
    def complete(self) -> bool:
        """Whether all matches are known."""
        return self.caught_up and not self.full

    @property
    def total(self) -> str:
        """`17`, and `17+` when there may be more."""
        return f"{len(self.hits)}{'' if self.complete else '+'}"

    def look(self, cancelled: Cancelled) -> Inspection:
        """Look at the next piece; changes nothing but what the matcher remembers."""
        mark, before = self._file.mark(), self._mark
        start = end = self.end
        if mark is None or (before and (mark.inode != before.inode or mark.size < end)):
            self._matcher, start, end = self._wanted.matcher(), 0, 0
        hits: list[int] = []
        for found in scan(self._file, start, _ANYWHERE, self._matcher, cancelled):
            hits += found.hits
            end = found.end
            if end - start >= PIECE or len(hits) >= MOST:
                return Inspection(start, hits, end, False, mark)
        return Inspection(start, hits, end, not cancelled(), mark)

    def take(self, looked: Inspection) -> None:
        """Take what was found; another file in its place begins anew."""
        if looked.start < self.end:
            self.hits = array("q")
        self.hits.extend(looked.hits[: MOST - len(self.hits)])
        self.end, self._mark = looked.end, looked.mark
        self.caught_up = self.caught_up or looked.at_end

    def number(self, hit: int) -> int | None:
        """Return the how manieth match this is, counted from 1; None while that is not known."""
        index = bisect_left(self.hits, hit)
        return index + 1 if index < len(self.hits) and self.hits[index] == hit else None

    def after(self, offset: int) -> int | None:
        """Return the next known match."""
        index = bisect_right(self.hits, offset)
        return self.hits[index] if index < len(self.hits) else None

    def before(self, offset: int) -> int | None:
        """Return the match before this one, when it is sure that none lies between them."""
        index = bisect_left(self.hits, offset) - 1
        sure = index >= 0 and (offset <= self.end if not self.full else offset <= self.hits[-1])
        return self.hits[index] if sure else None
