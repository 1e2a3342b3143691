"""The lines of a file as one long sheet of rows, of which only the parts somebody looks at exist.

What is kept by name is kept by its place in the file: rows move when something above them is laid out.
"""

from __future__ import annotations

from array import array
from bisect import bisect_right
from collections import OrderedDict
from collections.abc import Sequence
from itertools import accumulate

from ...core.run.progress import ProgressFormatter
from ...core.system.line_file import CHUNK, Chunk, LineFile
from ..feed.lines import Entry, View, full_text
from ..feed.reader import Part, load, prime
from .rows import Rows

KEPT = 24
"""Chunks that stay laid out: what was scrolled through lately."""

ROUNDS = 12
"""How often the place of a view is looked for anew while what comes into it is laid out."""

LAID_AT_ONCE = 16
"""Chunks that are laid out for one view at most; only lines that say nothing take so many."""

FEW = 4
"""A document of so few chunks is laid out whole: then its height is exact."""


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
        """Return where a chunk begins and ends."""
        following = index + 1
        return self._starts[index], self._starts[following] if following < len(self) else self.end

    def at(self, row: int) -> int:
        """Return the chunk a row belongs to."""
        return max(0, min(bisect_right(self.tops, row) - 1, len(self) - 1))

    def holding(self, offset: int) -> int:
        """Return the chunk a byte belongs to."""
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
        """Add chunks at the beginning."""
        if chunks and not len(self):
            self.end = chunks[-1].end
        self._starts = array("q", (chunk.start for chunk in chunks)) + self._starts
        self._lines = array("l", (chunk.lines for chunk in chunks)) + self._lines
        self.heights = array("l", (self._guess(chunk.lines) for chunk in chunks)) + self.heights
        self.exact = bytearray(len(chunks)) + self.exact
        self._tops = None

    def put_after(self, chunk: Chunk) -> None:
        """Add a chunk at the end."""
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


class Document:
    """Lays out chunks at one width, each when it comes into view."""

    def __init__(self, file: LineFile | None = None, view: View = View.READABLE) -> None:
        self.file = file
        self.view = view
        self.table = ChunkTable()
        self.width = 0
        """Cells for text; 0 where lines are not wrapped."""
        self._laid: OrderedDict[int, Rows] = OrderedDict()
        """Laid out chunks by their beginnings, the one looked at last at the end."""
        self._toggled: set[int] = set()
        """Lines that are not as `_all_open` says, by their offsets."""
        self._all_open = False

    @property
    def height(self) -> int:
        return self.table.tops[-1]

    @property
    def longest(self) -> int:
        """Cells of the longest line that was laid out; only when lines are not wrapped."""
        return max((rows.longest for rows in self._laid.values()), default=0)

    @property
    def laid(self) -> list[Rows]:
        """What is laid out now, in the order of the file."""
        return [self._laid[start] for start in sorted(self._laid)]

    # --- what comes to it ----------------------------------------------------------------------------------------

    def put_before(self, chunks: Sequence[Chunk]) -> int:
        """Add chunks at the beginning; return by how many rows all else has moved down."""
        before = self.height
        self.table.put_before(chunks)
        self._lay_out_few()
        return self.height - before

    def put_after(self, part: Part) -> None:
        """Add what was written at the end."""
        table = self.table
        last = len(table) - 1
        if last < 0 or part.chunk.start - table.bytes_of(last)[0] >= CHUNK:
            table.put_after(part.chunk)
            last += 1
            rows = Rows(self.width)
        else:
            rows = self._laid.get(table.bytes_of(last)[0]) if table.exact[last] else None
            table.grow_last(part.chunk)
        start, _ = table.bytes_of(last)
        if rows is None or part.entries is None or self._all_open:
            self._laid.pop(start, None)  # laid out from the file when somebody looks
            table.exact[last] = False
            return
        rows.extend(part.entries)
        self._take(last, rows)

    # --- laying out ----------------------------------------------------------------------------------------------

    def lay_out(self, width: int, anchor: int | None) -> None:
        """Take another width, and guess all heights from the chunk that holds `anchor`, a byte of the file."""
        if width != self.width:
            self.width = width
            self._lay_out_again(anchor)

    def rows(self, index: int) -> Rows:
        """Return a chunk laid out."""
        start, end = self.table.bytes_of(index)
        rows = self._laid.get(start)
        if rows is None:
            rows = Rows(self.width)
            if self.file is not None:
                rows.extend(load(self.file, start, end, self.view, ProgressFormatter(), self.is_open))
        elif rows.width != self.width:
            rows.lay_out(self.width)
        elif self.table.exact[index]:
            self._laid.move_to_end(start)
            return rows
        self._take(index, rows)
        return rows

    def settle(self, top: int, height: int, below: int = 0, *, at_end: bool = False) -> int:
        """Lay out what a view shows that begins at row `top`; return where the view's first row is then.

        What stands in the view stays in it; at a place that was never seen, what follows it. `below` rows come after
        the document; `at_end` asks for its end.
        """
        table = self.table
        if not len(table):
            return 0
        for _ in range(ROUNDS):
            last_top = max(0, self.height + below - height)
            top = last_top if at_end else max(0, min(top, last_top))
            index = table.at(top)
            if not table.exact[index]:
                top = self._settle_chunk(index, top, height)
            elif not self._lay_out_down_to(index, top + height):
                return top
        return max(0, min(top, self.height + below - height))

    def _settle_chunk(self, index: int, top: int, height: int) -> int:
        """Lay out the chunk in which a view begins; return the view's new place."""
        table = self.table
        guess, within = table.heights[index], top - table.tops[index]
        seen_below = index + 1 < len(table) and table.exact[index + 1] and within + height > guess
        true = self.rows(index).height
        return top + true - guess if seen_below else table.tops[index] + within * true // max(1, guess)

    def _lay_out_down_to(self, index: int, bottom: int) -> bool:
        """Lay out chunks from one on down to a row; return whether one was not yet."""
        changed, left = False, LAID_AT_ONCE
        while index < len(self.table) and self.table.tops[index] < bottom and left:
            if not self.table.exact[index]:
                self.rows(index)
                changed, left = True, left - 1
            index += 1
        return changed

    def _take(self, index: int, rows: Rows) -> None:
        """Keep a chunk that was laid out, and what it shows about the others."""
        self.table.set_height(index, rows.height)
        start, _ = self.table.bytes_of(index)
        self._laid[start] = rows
        self._laid.move_to_end(start)
        if len(self._laid) > KEPT:
            self._laid.popitem(last=False)

    def _lay_out_again(self, anchor: int | None) -> None:
        self.table.forget_heights()
        if anchor is not None and len(self.table):
            self.rows(self.table.holding(anchor))
        self.table.guess_heights()
        self._lay_out_few()

    def _lay_out_few(self) -> None:
        if len(self.table) <= FEW:
            for index in range(len(self.table)):
                self.rows(index)

    # --- opening -------------------------------------------------------------------------------------------------

    def is_open(self, offset: int) -> bool:
        return (offset in self._toggled) != self._all_open

    def entry_at(self, offset: int) -> tuple[Rows, Entry] | None:
        """Return the entry of the line that begins at this byte; None where no line that says something does."""
        if not len(self.table):
            return None
        rows = self.rows(self.table.holding(offset))
        index = rows.index_of(offset)
        found = index < len(rows.entries) and rows.entries[index].offset == offset
        return (rows, rows.entries[index]) if found else None

    def toggle(self, offset: int) -> bool:
        """Open a line or close it; return whether there is something to open."""
        found = self.entry_at(offset)
        if found is None or not found[1].opens:
            return False
        self._toggled ^= {offset}
        index = self.table.holding(offset)
        del self._laid[self.table.bytes_of(index)[0]]
        self.rows(index)
        return True

    def toggle_all(self, anchor: int | None) -> None:
        """Open everything, or close it when something is open."""
        self._all_open = not (self._all_open or self._toggled)
        self._toggled.clear()
        self._laid.clear()
        self._lay_out_again(anchor)

    def full_text(self, offset: int) -> str:
        """Return all that a line says, however long."""
        if self.file is None:
            return ""
        line = self.file.line_at(offset)
        formatter = ProgressFormatter()
        if self.view is View.READABLE:
            prime(formatter, self.file, offset, [(offset, line)])
        return full_text(self.view, line, formatter)
