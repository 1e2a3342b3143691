"""Which rows of the screen each line of a transcript takes; pure."""

from __future__ import annotations

from array import array
from bisect import bisect_right
from collections.abc import Iterable

from .transcript_lines import Entry
from .wrapping import cells, wrap

INDENT = 10
"""Cells of the time column, which the rows after a line's first leave empty."""
UNWRAPPED_LIMIT = 4000
"""Cells of a line that can be scrolled to when lines are not wrapped."""


class Rows:
    """Which rows each entry takes at the present width; rows are cut anew only when somebody looks at them."""

    def __init__(self) -> None:
        self.entries: list[Entry] = []
        self._tops = array("L")
        """Row on which each entry starts."""
        self.height = 0
        self.width = 0
        """Cells for text beside the time column."""
        self.wrapped = True
        self.longest = 0
        """Cells of the longest line; only kept up when lines are not wrapped."""

    def extend(self, entries: Iterable[Entry]) -> None:
        for entry in entries:
            self.entries.append(entry)
            self._tops.append(self.height)
            self.height += self._row_count(entry.text)

    def lay_out(self, width: int, wrapped: bool) -> bool:
        """Take another width or mode; answer whether that changed anything."""
        if (width, wrapped) == (self.width, self.wrapped):
            return False
        self.width, self.wrapped = width, wrapped
        entries, self.entries, self._tops = self.entries, [], array("L")
        self.height = self.longest = 0
        self.extend(entries)
        return True

    def clear(self) -> None:
        self.entries, self._tops = [], array("L")
        self.height = self.longest = 0

    def at(self, row: int) -> tuple[int, int]:
        """Answer the entry a row belongs to and which of its rows it is."""
        index = bisect_right(self._tops, row) - 1
        return index, row - self._tops[index]

    def top(self, index: int) -> int:
        return self._tops[index]

    def cut(self, text: str) -> list[str]:
        """Break text as the rows of an entry are broken."""
        if self.wrapped and self.width > 0:
            return wrap(text, self.width)
        return [line[:UNWRAPPED_LIMIT] for line in text.split("\n")]

    def _row_count(self, text: str) -> int:
        if self.wrapped and len(text) <= self.width and text.isascii() and "\n" not in text:
            return 1
        rows = self.cut(text)
        if not self.wrapped:
            self.longest = max(self.longest, *(cells(row) for row in rows))
        return len(rows)
