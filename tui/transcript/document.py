"""The lines of a file as one long sheet of rows, of which only the parts somebody looks at exist.

What is kept by name is kept by its place in the file: rows move when something above them is laid out.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence

from ...core.run.progress import ProgressFormatter
from ...core.system.line_file import CHUNK, Chunk, LineFile
from ..feed.lines import full_text
from ..feed.reader import Part, load, prime
from ..feed.views import View
from .chunks import ChunkTable
from .rows import Rows

KEPT = 24
"""Chunks that stay laid out: what was scrolled through lately."""

ROUNDS = 12
"""How often the place of a view is looked for anew while what comes into it is laid out."""

LAID_AT_ONCE = 16
"""Chunks that are laid out for one view at most; only lines that say nothing take so many."""

FEW = 4
"""A document of so few chunks is laid out whole: then its height is no guess."""


class Document:
    """Lays out chunks at one width, each when it comes into view."""

    def __init__(self, file: LineFile | None = None, view: View = View.READABLE) -> None:
        self.file = file
        self.view = view
        self.table = ChunkTable()
        self.width = 0
        """Cells for text."""
        self.wrapped = True
        self._laid: OrderedDict[int, Rows] = OrderedDict()
        """Laid out chunks by their beginnings, the one looked at last at the end."""
        self._toggled: set[int] = set()
        """Lines that are not as `_all_open` says, by their offsets."""
        self._all_open = False
        self._counted = (0, 0)
        """Lines and rows of what was laid out since the last change of width."""

    @property
    def height(self) -> int:
        return self.table.height

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
        """Add chunks at the beginning; answer by how many rows all else has moved down."""
        self.table.density = self._density
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
            rows = Rows(self.width, self.wrapped)
        else:
            rows = self._laid.get(table.bytes_of(last)[0]) if table.is_exact(last) else None
            table.grow_last(part.chunk)
        start, _ = table.bytes_of(last)
        if rows is None or part.decoded is None or self._all_open:
            self._laid.pop(start, None)  # laid out from the file when somebody looks
            table.forget_height(last)
            return
        rows.extend(part.decoded.entries, part.decoded.offsets)
        self._take(last, rows)

    # --- laying out ----------------------------------------------------------------------------------------------

    def lay_out(self, width: int, wrapped: bool, anchor: int | None) -> bool:
        """Take another width or mode, and guess all heights from the chunk that holds `anchor`, a byte of the file."""
        if (width, wrapped) == (self.width, self.wrapped):
            return False
        self.width, self.wrapped = width, wrapped
        self._lay_out_again(anchor)
        return True

    def rows(self, index: int) -> Rows:
        """Return a chunk laid out."""
        start, end = self.table.bytes_of(index)
        rows = self._laid.get(start)
        if rows is None:
            rows = Rows(self.width, self.wrapped)
            if self.file is not None:
                decoded = load(self.file, start, end, self.view, ProgressFormatter(), self.is_open)
                rows.extend(decoded.entries, decoded.offsets, decoded.bodies)
        elif (rows.width, rows.wrapped) != (self.width, self.wrapped):
            rows.lay_out(self.width, self.wrapped)
        elif self.table.is_exact(index):
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
            if not table.is_exact(index):
                top = self._settle_chunk(index, top, height)
            elif not self._lay_out_down_to(index, top + height):
                return top
        return max(0, min(top, self.height + below - height))

    def _settle_chunk(self, index: int, top: int, height: int) -> int:
        """Lay out the chunk in which a view begins; return the view's new place."""
        table = self.table
        guess, within = table.height_of(index), top - table.top(index)
        seen_below = index + 1 < len(table) and table.is_exact(index + 1) and within + height > guess
        true = self.rows(index).height
        return top + true - guess if seen_below else table.top(index) + within * true // max(1, guess)

    def _lay_out_down_to(self, index: int, bottom: int) -> bool:
        """Lay out chunks from one on down to a row; return whether one was not yet."""
        changed, left = False, LAID_AT_ONCE
        while index < len(self.table) and self.table.top(index) < bottom and left:
            if not self.table.is_exact(index):
                self.rows(index)
                changed, left = True, left - 1
            index += 1
        return changed

    def _take(self, index: int, rows: Rows) -> None:
        """Keep a chunk that was laid out, and what it shows about the others."""
        lines, counted = self._counted
        if not self.table.is_exact(index):
            self._counted = (lines + self.table.lines_of(index), counted + rows.height)
        self.table.set_height(index, rows.height)
        start, _ = self.table.bytes_of(index)
        self._laid[start] = rows
        self._laid.move_to_end(start)
        if len(self._laid) > KEPT:
            self._laid.popitem(last=False)

    @property
    def _density(self) -> float:
        lines, rows = self._counted
        return rows / lines if lines else self.table.density

    def _lay_out_again(self, anchor: int | None) -> None:
        self._counted = (0, 0)
        if anchor is not None and len(self.table):
            index = self.table.holding(anchor)
            self.table.forget_height(index)
            self.rows(index)
        self.table.forget_heights(self._density)
        self._lay_out_few()

    def _lay_out_few(self) -> None:
        if len(self.table) <= FEW:
            for index in range(len(self.table)):
                self.rows(index)

    # --- opening -------------------------------------------------------------------------------------------------

    def is_open(self, offset: int) -> bool:
        return (offset in self._toggled) != self._all_open

    def toggle(self, offset: int) -> bool:
        """Open a line or close it; return whether there is something to open."""
        if not len(self.table):
            return False
        index = self.table.holding(offset)
        rows = self.rows(index)
        entry = rows.index_of(offset)
        if entry >= len(rows.entries) or rows.offsets[entry] != offset or not rows.entries[entry].opens:
            return False
        self._toggled ^= {offset}
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
