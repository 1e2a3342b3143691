"""Where the chunks of a file are, and on which row of the screen each begins."""

from __future__ import annotations

from array import array
from bisect import bisect_right
from collections.abc import Sequence
from itertools import accumulate

from ...core.system.line_file import Chunk


class ChunkTable:
    """The chunks from some place in a file to its end, without gaps: where they are, and how many rows each takes."""

    def __init__(self) -> None:
        self._starts = array("q")
        self._lines = array("l")
        self.heights = array("l")
        """Rows of each chunk, guessed until it is laid out."""
        self.exact = bytearray()
        """1 for each chunk that was laid out."""
        self._tops: array[int] | None = None
        """Row on which each chunk begins, and the height of all; None until somebody asks."""
        self.end = 0
        self._counted = (1, 1.0)
        """Lines and rows of what was laid out at this width, beside one line that stands for what was known before."""

    def __len__(self) -> int:
        return len(self._starts)

    @property
    def start(self) -> int:
        """The first byte known; what is before it was not counted yet."""
        return self._starts[0] if self._starts else self.end

    @property
    def lines(self) -> int:
        return sum(self._lines)

    @property
    def tops(self) -> array[int]:
        """Row on which each chunk begins; the last one is the height of all."""
        if self._tops is None:
            self._tops = array("q", accumulate(self.heights, initial=0))
        return self._tops

    def bytes_of(self, index: int) -> tuple[int, int]:
        following = index + 1
        return self._starts[index], self._starts[following] if following < len(self) else self.end

    def at(self, row: int) -> int:
        return max(0, min(bisect_right(self.tops, row) - 1, len(self) - 1))

    def holding(self, offset: int) -> int:
        return max(0, bisect_right(self._starts, offset) - 1)

    def set_height(self, index: int, height: int) -> None:
        """Note what laying a chunk out has shown."""
        if not self.exact[index]:
            lines, rows = self._counted
            self._counted = (lines + self._lines[index], rows + height)
            self.exact[index] = True
        if self.heights[index] != height:
            self.heights[index] = height
            self._tops = None

    def put_before(self, chunks: Sequence[Chunk]) -> None:
        """Add chunks before those that are there."""
        self._starts = array("q", (chunk.start for chunk in chunks)) + self._starts
        self._lines = array("l", (chunk.lines for chunk in chunks)) + self._lines
        self.heights = array("l", (self._guess(chunk.lines) for chunk in chunks)) + self.heights
        self.exact = bytearray(len(chunks)) + self.exact
        self._tops = None

    def put_after(self, chunk: Chunk) -> None:
        self._starts.append(chunk.start)
        self._lines.append(chunk.lines)
        self.heights.append(self._guess(chunk.lines))
        self.exact.append(False)
        self.end = chunk.end
        self._tops = None

    def grow_last(self, chunk: Chunk) -> None:
        """Let the last chunk continue to the end of what follows it."""
        self._lines[-1] += chunk.lines
        self.heights[-1] += self._guess(chunk.lines)
        self.end = chunk.end
        self._tops = None

    def forget_heights(self) -> None:
        """Take all heights for guesses, and count rows anew."""
        lines, rows = self._counted
        self._counted = (1, rows / lines)
        self.exact = bytearray(len(self))

    def guess_heights(self) -> None:
        """Guess the heights of what is not laid out from what is."""
        for index, lines in enumerate(self._lines):
            if not self.exact[index]:
                self.heights[index] = self._guess(lines)
        self._tops = None

    def _guess(self, lines: int) -> int:
        counted, rows = self._counted
        return max(1, round(lines * rows / counted))
