"""Read the file of the one shown run, in pieces; everything here happens in a worker thread.

First its end, so that there is something to see; then what is written meanwhile, and the rest backwards: of it only
the lines are counted.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from typing import TYPE_CHECKING

from msgspec import Struct

from ...core.run.events import ToolCall, ToolResult, call_id_of_line, decode_event, line_prefix, seq_of_line
from ...core.run.progress import ProgressFormatter
from ...core.system.line_file import BLOCK, CHUNK, Chunk, FileMark, LineFile, chunks_of
from ...core.text.plain import plain
from .lines import Entry, body_of_line, entry_of_line
from .views import View

if TYPE_CHECKING:
    from ...core.system.line_file import LineFile

PRIMED = 256 * 1024
"""Bytes before a chunk in which the calls of its first results are looked for."""

_CALL, _RESULT = line_prefix(ToolCall), line_prefix(ToolResult)


class Decoded(Struct, frozen=True):
    """What some lines say; those that say nothing are left out."""

    entries: list[Entry]
    offsets: list[int]
    """Where the line of each entry begins."""
    bodies: dict[int, str]
    """What the opened ones show below themselves, by their offsets."""


def decode_lines(
    lines: Sequence[tuple[int, bytes]],
    view: View,
    formatter: ProgressFormatter,
    opened: Callable[[int], bool] | None = None,
) -> Decoded:
    """Say lines in their order."""
    decoded = Decoded([], [], {})
    for offset, line in lines:
        entry = entry_of_line(view, line, formatter)
        if entry is None:
            continue
        decoded.entries.append(entry)
        decoded.offsets.append(offset)
        if entry.opens and opened is not None and opened(offset):
            decoded.bodies[offset] = body_of_line(view, line)
    return decoded


def load(
    file: LineFile,
    start: int,
    end: int,
    view: View,
    formatter: ProgressFormatter,
    opened: Callable[[int], bool] | None = None,
) -> Decoded:
    """Decode one chunk; a few milliseconds, so that it may be done while somebody scrolls."""
    lines = file.lines(start, end)
    if view is View.READABLE and start:
        prime(formatter, file, start, lines)
    return decode_lines(lines, view, formatter, opened)


def prime(formatter: ProgressFormatter, file: LineFile, start: int, lines: Sequence[tuple[int, bytes]]) -> None:
    """Tell the formatter the calls whose results come in these lines without them."""
    called: set[bytes] = set()
    missing: list[bytes] = []
    for _, line in lines:
        if line.startswith(_CALL):
            called.add(call_id_of_line(line))
        elif line.startswith(_RESULT) and (call := call_id_of_line(line)) not in called:
            missing.append(call)
    if not missing:
        return
    first = max(0, start - PRIMED)
    before = file.read(first, start - first)
    for call in missing:
        if call and (event := _call_in(before, call)):
            formatter.text(event)


def _call_in(before: bytes, call: bytes) -> ToolCall | None:
    position = before.rfind(call)
    while position >= 0:
        begin = before.rfind(b"\n", 0, position) + 1
        event = decode_event(before[begin : before.find(b"\n", position)])
        if isinstance(event, ToolCall):
            return event
        position = before.rfind(call, 0, begin)
    return None


PIECE = 512 * 1024
"""Bytes of what was written that are decoded in one piece: some thousand events, a few hundredths of a second."""

FAR_BEHIND = 8 * PIECE
"""Bytes from which on what was written is only counted: nobody has seen it pass by."""

COUNTED = 512
"""Chunks in one piece of what is before the end."""

REST = 4096
"""Characters shown of a last line that is not finished."""

HEAD = 200
"""Bytes of an event in which its number is looked for."""


class Part(Struct, frozen=True):
    """Lines that were written at the end."""

    chunk: Chunk
    decoded: Decoded | None
    """None where lines were only counted."""


class Piece(Struct, frozen=True):
    """What was read at once."""

    file: LineFile
    begins: bool = False
    """The file was opened, or is another one than before: nothing that was shown counts any more."""
    before: tuple[Chunk, ...] = ()
    """What is before all that is known, in the order of the file."""
    after: tuple[Part, ...] = ()
    last_seq: int = 0
    """Of the last event that was read."""
    rest: str = ""
    """The beginning of a line that is still being written; only of what is no event."""
    more: bool = False
    """Whether there is more to read at once."""


class RunReader:
    """Hands out what one file says, each line once."""

    def __init__(self, run_id: str, view: View, file: LineFile) -> None:
        self.run_id = run_id
        self.view = view
        self._file = file
        self._mark: FileMark | None = None
        """The file as it was read from, None before."""
        self._end = 0
        """Where the next unread line begins."""
        self._searched = 0
        """Bytes behind it that hold no newline."""
        self._before: Iterator[Chunk] = iter(())
        self._counting = False
        self._formatter = ProgressFormatter()
        self._last_seq = 0

    def read(self) -> Piece:
        """Return the next piece; an empty one when nothing is new."""
        mark, known = self._file.mark(), self._mark
        if mark is None:
            return Piece(self._file, begins=known is None)
        self._mark = mark
        if known is None or mark.inode != known.inode or mark.size < self._end:
            return self._begin(mark.size)
        if mark.size - self._end > self._searched and (piece := self._read_on(mark.size)):
            return piece
        return self._count()

    def _begin(self, size: int) -> Piece:
        self._formatter = ProgressFormatter()
        self._end = self._file.end_of_lines(size)
        self._searched = self._last_seq = 0
        self._before = self._file.chunks_before(self._end)
        last = next(self._before, None)
        after: tuple[Part, ...] = ()
        if last is not None:
            decoded = load(self._file, last.start, last.end, self.view, self._formatter)
            after = (Part(last, decoded),)
            self._find_seq(last)
        self._counting = last is not None and last.start > 0
        return Piece(self._file, True, (), after, self._last_seq, self._rest(size), self._counting)

    def _count(self) -> Piece:
        """Go on counting what is before."""
        chunks = list(islice(self._before, COUNTED)) if self._counting else []
        self._counting = bool(chunks) and chunks[-1].start > 0
        size = self._mark.size if self._mark else 0
        before = tuple(reversed(chunks))
        return Piece(self._file, False, before, (), self._last_seq, self._rest(size), self._counting)

    def _read_on(self, size: int) -> Piece | None:
        """Read whole lines that were written since; None while there are none."""
        behind = size - self._end > FAR_BEHIND
        block = self._file.read(self._end, FAR_BEHIND if behind else PIECE)
        whole = block[: block.rfind(b"\n") + 1]
        if not whole:
            return self._read_long_line(size) if len(block) >= PIECE else self._note_searched(len(block))
        parts = tuple(self._part(chunk, decoded=not behind) for chunk in chunks_of(self._end, whole))
        self._end += len(whole)
        self._searched = 0
        self._find_seq(parts[-1].chunk)
        more = self._counting or self._end + len(block) - len(whole) < size
        return Piece(self._file, False, (), parts, self._last_seq, self._rest(size), more)

    def _read_long_line(self, size: int) -> Piece | None:
        """Find the end of a line that is longer than a piece."""
        position = self._end + self._searched
        while block := self._file.read(position, BLOCK):
            newline = block.find(b"\n")
            if newline >= 0:
                chunk = Chunk(self._end, position + newline + 1, 1)
                part = self._part(chunk, decoded=True)
                self._end, self._searched = chunk.end, 0
                self._find_seq(chunk)
                return Piece(self._file, False, (), (part,), self._last_seq, "", self._counting or chunk.end < size)
            position += len(block)
        return self._note_searched(position - self._end)

    def _note_searched(self, searched: int) -> None:
        self._searched = searched

    def _part(self, chunk: Chunk, *, decoded: bool) -> Part:
        if not decoded:
            return Part(chunk, None)
        lines = self._file.lines(chunk.start, chunk.end)
        return Part(chunk, decode_lines(lines, self.view, self._formatter))

    def _find_seq(self, chunk: Chunk) -> None:
        """Note the number of the last event of a chunk: it is at the beginning of its line."""
        if self.view is View.STDERR:
            return
        offset, _ = self._file.lines(chunk.start, chunk.end)[-1]
        self._last_seq = max(self._last_seq, seq_of_line(self._file.read(offset, HEAD)))

    def _rest(self, size: int) -> str:
        if self.view is not View.STDERR or size <= self._end:
            return ""
        start = max(self._end, size - CHUNK)
        return plain(self._file.read(start, size - start).decode("utf-8", "replace").rpartition("\r")[2])[-REST:]
