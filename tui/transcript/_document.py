"""The lines of a file as one long sheet of rows; only the visible parts exist.

State is stored by offset in the file, not by row: rows move when something above them is laid out.
"""

from __future__ import annotations

from array import array
from bisect import bisect_right
from collections import OrderedDict
from collections.abc import Iterable, Sequence
from itertools import accumulate, islice, pairwise

from ...core.system.line_file import CHUNK, Chunk, LineFile
from ..feed.lines import BodyLine, TranscriptEntry, View, full_text, is_laborious
from ..feed.reader import Part, body_at, load, primed
from ._rows import LaidOutRow, Rows, TextPosition
from .earlier import EarlierRun, entries_of, said_in

KEPT = 24
"""Chunks that stay laid out: the last visible ones."""

ROUNDS = 12
"""How often a view's place is computed again while its content is laid out."""

LAID_AT_ONCE = 16
"""Maximum chunks laid out for one view; only lines without entries need so many."""

MADE = 32
"""Slow bodies that are kept."""
BEING_MADE = (BodyLine("comparing…"),)

FEW = 4
"""A document of so few chunks is laid out whole, so that its height is exact."""


def _state_in(text: str) -> str:
    """Return the word of `▸ refused: why`."""
    return text.removeprefix("▸ ").partition(":")[0]


class Document:
    """Lays out chunks at one width, each when it comes into view."""

    def __init__(self, file: LineFile | None = None, view: View = View.READABLE) -> None:
        self.file = file
        self.view = view
        self.table = ChunkTable()
        self.width = 0
        """Cells for text; 0 if lines are not wrapped."""
        self.earlier: Sequence[EarlierRun] = ()
        """The earlier runs of the same conversation; changed only by `put_earlier`."""
        self.states: dict[str, str] = {}
        """The outcome of messages, by their ids, from the lines read so far."""
        self._laid: OrderedDict[int, Rows] = OrderedDict()
        """Laid out chunks by their start, the last used one at the end."""
        self._toggled: set[int] = set()
        """Offsets of lines that differ from `_all_open`."""
        self._all_open = False
        self.laborious: set[int] = set()
        """Open lines whose body `make_body` has to make in a thread; until then a placeholder is shown."""
        self._made: OrderedDict[int, Sequence[BodyLine]] = OrderedDict()
        """Such bodies, by the offsets of their lines."""

    @property
    def height(self) -> int:
        return self.table.tops[-1]

    @property
    def longest(self) -> int:
        """Cells of the longest laid out line; only if lines are not wrapped."""
        return max((rows.longest for rows in self._laid.values()), default=0)

    # --- adding content ------------------------------------------------------------------------------------------

    def put_before(self, chunks: Sequence[Chunk]) -> int:
        """Add chunks at the beginning; return by how many rows everything else has moved down."""
        before = self.height
        self.table.put_before(chunks)
        self._lay_out_few()
        return self.height - before

    def put_earlier(self, runs: Sequence[EarlierRun]) -> int | None:
        """Put the earlier runs of the conversation above everything; return by how many rows the rest has moved down,
        or None while the lines before it are unknown.
        """
        if self.table.start != 0 or not runs:
            return None
        self.earlier = runs
        return self.put_before((Chunk(-len(runs), 0, len(runs)),))

    @property
    def lines(self) -> int:
        """Known lines of the file."""
        return self.table.lines - len(self.earlier)

    def put_after(self, part: Part) -> None:
        table = self.table
        last = len(table) - 1
        if last < 0 or table.bytes_of(last)[0] < 0 or part.chunk.start - table.bytes_of(last)[0] >= CHUNK:
            table.put_after(part.chunk)
            last += 1
            rows = Rows(self.width)
        else:
            rows = self._laid.get(table.bytes_of(last)[0]) if table.exact[last] else None
            table.grow_last(part.chunk)
        start, _ = table.bytes_of(last)
        if rows is None or part.entries is None or self._all_open:
            self._laid.pop(start, None)  # laid out from the file when it becomes visible
            table.exact[last] = False
            return
        self._note_states(part.entries)
        rows.extend(part.entries)
        self._take(last, rows)

    # --- laying out ----------------------------------------------------------------------------------------------

    def lay_out(self, width: int, anchor: int | None) -> None:
        """Set another width, and estimate all heights from the chunk with `anchor`, a byte of the file."""
        if width != self.width:
            self.width = width
            self._lay_out_again(anchor)

    def rows(self, index: int) -> Rows:
        start, end = self.table.bytes_of(index)
        rows = self._laid.get(start)
        if rows is None:
            entries = self._entries_in(start, end)
            self._note_states(entries)
            rows = Rows(self.width, entries)
        elif rows.width != self.width:
            rows = Rows(self.width, rows.entries)
        elif self.table.exact[index]:
            self._laid.move_to_end(start)
            return rows
        self._take(index, rows)
        return rows

    def _entries_in(self, start: int, end: int) -> Sequence[TranscriptEntry]:
        if start < 0:
            return entries_of(self.earlier, self.is_open)
        return load(self.file, start, end, self.view, self._body) if self.file else ()

    def settle(self, top: int, height: int, below: int = 0, *, at_end: bool = False) -> int:
        """Lay out the content of a view that begins at row `top`; return its new first row.

        The view keeps its content; at a place not seen before, the following content. `below` rows come after the
        document; `at_end` goes to its end.
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
        """Lay out chunks from one on down to a row; return whether there was anything to do."""
        changed, chunks_left = False, LAID_AT_ONCE
        while index < len(self.table) and self.table.tops[index] < bottom and chunks_left:
            if not self.table.exact[index]:
                self.rows(index)
                changed, chunks_left = True, chunks_left - 1
            index += 1
        return changed

    def _note_states(self, entries: Iterable[TranscriptEntry]) -> None:
        self.states.update((entry.settles, _state_in(entry.text)) for entry in entries if entry.settles)

    def _take(self, index: int, rows: Rows) -> None:
        """Keep a laid out chunk, and its height."""
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

    def entry_at(self, offset: int) -> tuple[Rows, TranscriptEntry] | None:
        """Return the entry of the line that begins at this byte; None if there is none."""
        if not len(self.table):
            return None
        rows = self.rows(self.table.holding(offset))
        index = rows.index_of(offset)
        is_exact = index < len(rows.entries) and rows.entries[index].offset == offset
        return (rows, rows.entries[index]) if is_exact else None

    def _body(self, offset: int, line: bytes) -> Sequence[BodyLine] | None:
        if self.file is None or not self.is_open(offset):
            return None
        if (made := self._made.get(offset)) is not None:
            return made
        if self.view is View.READABLE and is_laborious(line):
            self.laborious.add(offset)
            return BEING_MADE
        return body_at(self.file, self.view, offset, line)

    def make_body(self, offset: int) -> Sequence[BodyLine]:
        """Make the body of a line, even if it takes long; any thread may call it."""
        return body_at(self.file, self.view, offset, self.file.line_at(offset)) if self.file else ()

    def take_body(self, offset: int, body: Sequence[BodyLine]) -> None:
        """Show a finished body."""
        self._made[offset] = body
        if len(self._made) > MADE:
            self._made.popitem(last=False)
        index = self.table.holding(offset)
        if self._laid.pop(self.table.bytes_of(index)[0], None) is not None:
            self.rows(index)

    def toggle(self, offset: int) -> bool:
        """Open a line or close it; return whether it can be opened."""
        rows_and_entry = self.entry_at(offset)
        if rows_and_entry is None or not rows_and_entry[1].opens:
            return False
        self._toggled ^= {offset}
        index = self.table.holding(offset)
        del self._laid[self.table.bytes_of(index)[0]]
        self.rows(index)
        return True

    def toggle_all(self, anchor: int | None) -> None:
        """Open everything, or close it if anything is open."""
        self._all_open = not (self._all_open or self._toggled)
        self._toggled.clear()
        self._laid.clear()
        self._lay_out_again(anchor)

    def full_text(self, offset: int) -> str:
        """Return the whole text of a line, even if it takes long; any thread may call it."""
        if offset < 0:
            return said_in(self.earlier[offset])
        if self.file is None:
            return ""
        line = self.file.line_at(offset)
        return full_text(self.view, line, primed(self.file, self.view, [(offset, line)]))

    # --- positions -----------------------------------------------------------------------------------------------

    def laid_out_row(self, row: int) -> LaidOutRow | None:
        if not 0 <= row < self.height:
            return None
        index = self.table.at(row)
        within = row - self.table.tops[index]
        rows = self.rows(index)
        return rows.at(within) if within < rows.height else None

    def position_at(self, row: int) -> TextPosition | None:
        laid_out = self.laid_out_row(row)
        return laid_out.position if laid_out else None

    def row_of(self, position: TextPosition) -> int:
        """Return the row of a position, or of the next one in the file."""
        if not len(self.table):
            return 0
        index, rows, entry = self._entry(position.offset)
        return self.table.tops[index] + rows.row_of(entry, position.part)

    def moved(self, position: TextPosition, by: int) -> TextPosition | None:
        """Return the position `by` rows further down, or up; at most the last row or the first."""
        if not len(self.table):
            return None
        index, rows, entry = self._entry(position.offset)
        row = rows.row_of(entry, position.part) + by
        while row < 0 and index > 0:
            index -= 1
            rows = self.rows(index)
            row += rows.height
        while row >= rows.height and index + 1 < len(self.table):
            row -= rows.height
            index += 1
            rows = self.rows(index)
        if not 0 <= row < rows.height:
            return self.first() if row < 0 else self.last()
        return rows.at(row).position

    def nearest(self, offset: int) -> TextPosition | None:
        """Return the line that begins at this byte, or the next shown one, otherwise the last one."""
        if not len(self.table):
            return None
        _, rows, entry = self._entry(offset)
        return TextPosition(rows.entries[entry].offset) if entry < len(rows.entries) else self.last()

    def first(self) -> TextPosition | None:
        return self._outermost(range(len(self.table)), 0)

    def last(self) -> TextPosition | None:
        return self._outermost(reversed(range(len(self.table))), -1)

    def _outermost(self, chunks: Iterable[int], row: int) -> TextPosition | None:
        """Return a row of the first of these chunks that has any; -1 for its last one."""
        for index in islice(chunks, LAID_AT_ONCE):
            rows = self.rows(index)
            if rows.height:
                return rows.at(row % rows.height).position
        return None

    def _entry(self, offset: int) -> tuple[int, Rows, int]:
        """Return chunk and entry of the line that begins at a byte, or of the next one with an entry."""
        index = self.table.holding(offset)
        rows = self.rows(index)
        entry = rows.index_of(offset)
        for _ in range(LAID_AT_ONCE):
            if entry < len(rows.entries) or index + 1 >= len(self.table):
                break
            index += 1
            rows, entry = self.rows(index), 0
        return index, rows, entry

    def part_with(self, offset: int, words: str) -> int | None:
        """Return the first row of a line that contains these words, ignoring case; None without a match."""
        if (found := self.entry_at(offset)) is None:
            return None
        rows, entry = found
        cut = rows.cut(entry)
        low = words.lower()
        if (part := next((part for part, row in enumerate(cut) if row.says(low)), None)) is not None:
            return part
        # For words broken over two rows it is the first of them.
        joined = (f"{row.text} {below.text}".lower() for row, below in pairwise(cut))
        return next((part for part, text in enumerate(joined) if low in text), None)


# --- chunks ----------------------------------------------------------------------------------------------------------


class ChunkTable:
    """The chunks from some place in a file to its end, without gaps: their offsets, and their heights in rows."""

    def __init__(self) -> None:
        self._starts = array("q")
        self._lines = array("l")
        self.heights = array("l")
        """Rows of each chunk, estimated until it is laid out."""
        self.exact = bytearray()
        """1 for each chunk that was laid out."""
        self._tops: array[int] | None = None
        """First row of each chunk, and the total height; None until needed."""
        self.end = 0
        self._counted = (1, 1.0)
        """Lines and rows laid out at this width, plus one line that stands for earlier knowledge."""

    def __len__(self) -> int:
        return len(self._starts)

    @property
    def start(self) -> int:
        """The first known byte; the bytes before it were not counted yet."""
        return self._starts[0] if self._starts else self.end

    @property
    def lines(self) -> int:
        return sum(self._lines)

    @property
    def tops(self) -> array[int]:
        """First row of each chunk; the last one is the total height."""
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
        """Record the height of a laid out chunk."""
        if not self.exact[index]:
            lines, rows = self._counted
            self._counted = (lines + self._lines[index], rows + height)
            self.exact[index] = True
        if self.heights[index] != height:
            self.heights[index] = height
            self._tops = None

    def put_before(self, chunks: Sequence[Chunk]) -> None:
        """Add chunks before the existing ones."""
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
        """Extend the last chunk by the following one."""
        self._lines[-1] += chunk.lines
        self.heights[-1] += self._guess(chunk.lines)
        self.end = chunk.end
        self._tops = None

    def forget_heights(self) -> None:
        """Treat all heights as estimates, and count rows again."""
        lines, rows = self._counted
        self._counted = (1, rows / lines)
        self.exact = bytearray(len(self))

    def guess_heights(self) -> None:
        """Estimate the heights of the other chunks from those laid out."""
        for index, lines in enumerate(self._lines):
            if not self.exact[index]:
                self.heights[index] = self._guess(lines)
        self._tops = None

    def _guess(self, lines: int) -> int:
        counted, rows = self._counted
        return max(1, round(lines * rows / counted))
