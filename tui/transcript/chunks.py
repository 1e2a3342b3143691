"""Where the chunks of a document are, and how many rows each takes as far as is known; pure."""

from __future__ import annotations

from array import array
from bisect import bisect_right
from collections.abc import Sequence
from itertools import accumulate

from ...core.system.line_file import Chunk


class ChunkTable:
    """The chunks from some place in a file to its end, without gaps; heights are guessed until a chunk is laid out."""

    def __init__(self) -> None:
        self._starts = array("q")
        self._lines = array("l")
        self._heights = array("l")
        self._exact = bytearray()
        self._tops: array[int] | None = None
        """Row on which each chunk begins, and the height of all; None until somebody asks."""
        self.end = 0
        self.density = 1.0
        """Rows of a line, as far as they were counted."""

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
    def height(self) -> int:
        return self._all_tops[-1]

    def top(self, index: int) -> int:
        return self._all_tops[index]

    def height_of(self, index: int) -> int:
        return self._heights[index]

    def lines_of(self, index: int) -> int:
        return self._lines[index]

    def is_exact(self, index: int) -> bool:
        return bool(self._exact[index])

    def bytes_of(self, index: int) -> tuple[int, int]:
        """Return where a chunk begins and ends."""
        following = index + 1
        return self._starts[index], self._starts[following] if following < len(self) else self.end

    def at(self, row: int) -> int:
        """Return the chunk a row belongs to."""
        return max(0, min(bisect_right(self._all_tops, row) - 1, len(self) - 1))

    def holding(self, offset: int) -> int:
        """Return the chunk a byte belongs to."""
        return max(0, bisect_right(self._starts, offset) - 1)

    def set_height(self, index: int, height: int) -> None:
        """Note what laying a chunk out has shown."""
        self._exact[index] = True
        if self._heights[index] != height:
            self._heights[index] = height
            self._tops = None

    def put_before(self, chunks: Sequence[Chunk]) -> None:
        """Add chunks at the beginning."""
        heights = array("l", (self._guess(chunk.lines) for chunk in chunks))
        self._starts = array("q", (chunk.start for chunk in chunks)) + self._starts
        self._lines = array("l", (chunk.lines for chunk in chunks)) + self._lines
        self._heights = heights + self._heights
        self._exact = bytearray(len(chunks)) + self._exact
        self._tops = None
        if chunks and len(self) == len(chunks):
            self.end = chunks[-1].end

    def put_after(self, chunk: Chunk) -> None:
        """Add a chunk at the end."""
        self._starts.append(chunk.start)
        self._lines.append(chunk.lines)
        self._heights.append(self._guess(chunk.lines))
        self._exact.append(False)
        self.end = chunk.end
        self._tops = None

    def grow_last(self, chunk: Chunk) -> None:
        """Let the last chunk go on to the end of what follows it."""
        self._lines[-1] += chunk.lines
        self._heights[-1] += self._guess(chunk.lines)
        self.end = chunk.end
        self._tops = None

    def forget_height(self, index: int) -> None:
        """Hold the height of a chunk for a guess."""
        self._exact[index] = False

    def forget_heights(self, density: float) -> None:
        """Guess all heights anew."""
        self.density = density
        self._heights = array("l", (self._guess(lines) for lines in self._lines))
        self._exact = bytearray(len(self))
        self._tops = None

    def _guess(self, lines: int) -> int:
        return max(1, round(lines * self.density))

    @property
    def _all_tops(self) -> array[int]:
        if self._tops is None:
            self._tops = array("q", accumulate(self._heights, initial=0))
        return self._tops
