"""Read the file of a shown run, in pieces; everything here runs in a worker thread.

First its end, for a quick first view; then new output, and the lines before, which are only counted.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache, partial
from itertools import islice

from msgspec import Struct
from msgspec.structs import replace

from ...core.run.artifacts import read_meta
from ...core.run.edits import may_be_edit
from ...core.run.events import ToolCall, ToolResult, call_id_of_line, decode_event, line_prefix, seq_of_line
from ...core.run.progress import ProgressFormatter
from ...core.system.line_file import CHUNK, Chunk, FileMark, LineFile, chunks_of
from ...core.text.plain import plain
from .lines import (
    BODY_LIMIT,
    TEXT_LIMIT,
    BodyLine,
    TranscriptEntry,
    View,
    body_of_line,
    entry_of_line,
    shortened,
    shortened_body,
)

PRIMED = 256 * 1024
"""Bytes before a chunk that are searched for the calls of its first results."""

_CALL, _RESULT = line_prefix(ToolCall), line_prefix(ToolResult)


Body = Callable[[int, bytes], Sequence[BodyLine] | None]
"""Returns the body of a line by its offset; None if it is not open."""


def load(file: LineFile, start: int, end: int, view: View, body: Body) -> list[TranscriptEntry]:
    """Decode one chunk; takes a few milliseconds, so scrolling can wait for it."""
    lines = file.lines(start, end)
    return decode_lines(lines, view, primed(file, view, lines), body)


def decode_lines(
    lines: Sequence[tuple[int, bytes]],
    view: View,
    formatter: ProgressFormatter,
    body: Body = lambda _, __: None,
) -> list[TranscriptEntry]:
    """Return the entries of the lines in order; some lines have none."""
    entries: list[TranscriptEntry] = []
    for offset, line in lines:
        entry = entry_of_line(view, line, formatter)
        if entry is not None:
            below = body(offset, line) if entry.opens else None
            entries.append(entry._replace(offset=offset, text=shortened(entry.text, TEXT_LIMIT), body=below))
    return entries


def body_at(file: LineFile, view: View, offset: int, line: bytes) -> Sequence[BodyLine]:
    """Return the body of an opened line, up to the layout limit."""
    return shortened_body(body_of_line(view, line, _result_of(file, view, offset, line)), BODY_LIMIT)


def _result_of(file: LineFile, view: View, offset: int, line: bytes) -> ToolResult | None:
    """Return the result of an edit, if it soon follows the call."""
    if view is not View.READABLE or not line.startswith(_CALL) or not may_be_edit(line):
        return None
    call = call_id_of_line(line)
    after = file.read(offset + len(line) + 1, PRIMED) if call else b""
    position = after.find(call)
    while position >= 0:
        begin, end = after.rfind(b"\n", 0, position) + 1, after.find(b"\n", position)
        if end < 0:
            break
        event = decode_event(after[begin:end]) if after.startswith(_RESULT, begin) else None
        if isinstance(event, ToolResult):
            return event
        position = after.find(call, end)
    return None


def _formatter_of(file: LineFile) -> ProgressFormatter:
    return ProgressFormatter(partial(_cwd_of, os.path.dirname(file.path)))


@lru_cache(64)
def _cwd_of(run_dir: str) -> str:
    """Return a run's working directory; empty if its meta is unreadable."""
    meta = read_meta(run_dir)
    return meta.cwd if meta else ""


def primed(file: LineFile, view: View, lines: Sequence[tuple[int, bytes]]) -> ProgressFormatter:
    """Return a formatter that knows the earlier calls of the results in these lines."""
    formatter = _formatter_of(file)
    if view is not View.READABLE:
        return formatter
    called: set[bytes] = set()
    missing: list[bytes] = []
    for _, line in lines:
        if line.startswith(_CALL):
            called.add(call_id_of_line(line))
        elif line.startswith(_RESULT) and (call := call_id_of_line(line)) not in called:
            missing.append(call)
    if missing and (start := lines[0][0]):
        first = max(0, start - PRIMED)
        before = file.read(first, start - first)
        for call in missing:
            if call and (event := _call_in(before, call)):
                formatter.text(event)
    return formatter


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
"""Bytes of new output decoded in one piece: some thousand events, a few hundredths of a second."""

FAR_BEHIND = 8 * PIECE
"""Bytes of new output above which lines are only counted: they passed unseen."""

COUNTED = 512
"""Chunks before the end in one piece."""

REST = 4096
"""Characters shown of an unfinished last line."""


class Part(Struct, frozen=True):
    """New lines at the end."""

    chunk: Chunk
    entries: list[TranscriptEntry] | None
    """Their entries; None if they were only counted."""


class Piece(Struct, frozen=True):
    """The result of one read."""

    file: LineFile
    begins: bool = False
    """The file was opened or replaced: everything shown before is outdated."""
    before: tuple[Chunk, ...] = ()
    """Chunks before the known ones, in the order of the file."""
    after: tuple[Part, ...] = ()
    last_seq: int = 0
    """Of the last event that was read."""
    rest: str = ""
    """The beginning of a line that is still being written; only for stderr."""
    more: bool = False
    """Whether more can be read at once."""


class RunReader:
    """Returns the content of one file, each line once."""

    def __init__(self, run_id: str, view: View, file: LineFile) -> None:
        self.run_id = run_id
        self.view = view
        self._file = file
        self._mark: FileMark | None = None
        """The file at the last read, None before."""
        self._end = 0
        """Offset of the next unread line."""
        self._searched = 0
        """Bytes behind it without a newline."""
        self._before: Iterator[Chunk] = iter(())
        self._counting = False
        self._formatter = _formatter_of(file)
        self._last_seq = 0

    def read(self) -> Piece:
        """Return the next piece; an empty one if there is no news."""
        mark, last_mark = self._file.mark(), self._mark
        if mark is None:
            return Piece(self._file, begins=last_mark is None)
        self._mark = mark
        if last_mark is None or mark.inode != last_mark.inode or mark.size < self._end:
            piece = self._begin(mark.size)
        elif mark.size - self._end <= self._searched or (piece := self._read_on(mark.size)) is None:
            piece = self._count()
        more = piece.more or self._counting
        return replace(piece, last_seq=self._last_seq, rest=self._rest(mark.size), more=more)

    def _begin(self, size: int) -> Piece:
        self._end = self._file.end_of_lines(size)
        self._searched = self._last_seq = 0
        self._before = self._file.chunks_before(self._end)
        last = next(self._before, None)
        self._counting = last is not None and last.start > 0
        if last is None:
            return Piece(self._file, begins=True)
        lines = self._file.lines(last.start, last.end)
        self._formatter = primed(self._file, self.view, lines)
        self._note_seq(lines[-1][1] if lines else b"")
        return Piece(self._file, begins=True, after=(Part(last, decode_lines(lines, self.view, self._formatter)),))

    def _count(self) -> Piece:
        chunks = list(islice(self._before, COUNTED))
        self._counting = bool(chunks) and chunks[-1].start > 0
        return Piece(self._file, before=tuple(reversed(chunks)))

    def _read_on(self, size: int) -> Piece | None:
        """Read complete new lines; None if there are none."""
        begin, behind = self._end, size - self._end > FAR_BEHIND
        block = self._file.read(begin, FAR_BEHIND if behind else PIECE)
        whole, newline, _ = block.rpartition(b"\n")
        chunks = tuple(chunks_of(begin, whole + newline)) or self._long_line()
        if not chunks:
            self._searched = size - begin
            return None
        parts = tuple(Part(chunk, None if behind else self._decode(chunk)) for chunk in chunks)
        self._end, self._searched = chunks[-1].end, 0
        self._note_seq(whole or block)
        return Piece(self._file, after=parts, more=begin + len(block) < size)

    def _long_line(self) -> tuple[Chunk, ...]:
        """Return the chunk of a line longer than a piece; none until its end is written."""
        end = self._file.line_start(self._end + self._searched + 1)
        return () if end is None else (Chunk(self._end, end, 1),)

    def _decode(self, chunk: Chunk) -> list[TranscriptEntry]:
        return decode_lines(self._file.lines(chunk.start, chunk.end), self.view, self._formatter)

    def _note_seq(self, lines: bytes) -> None:
        """Record the number at the beginning of the last of these lines."""
        self._last_seq = max(self._last_seq, seq_of_line(lines[lines.rfind(b"\n") + 1 :]))

    def _rest(self, size: int) -> str:
        if self.view is not View.STDERR or size <= self._end:
            return ""
        start = max(self._end, size - CHUNK)
        return plain(self._file.read(start, size - start).decode("utf-8", "replace").rpartition("\r")[2])[-REST:]


LAST = 16 * 1024
"""Bytes at the end of a file that are searched for its last lines."""


def last_lines(file: LineFile, most: int) -> list[str]:
    """Return the last non-empty lines of a file, safe for the screen. Reads the file."""
    mark = file.mark()
    if mark is None:
        return []
    start = max(0, mark.size - LAST)
    lines = plain(file.read(start, LAST).decode("utf-8", "replace")).split("\n")[1 if start else 0 :]
    return [line.rstrip() for line in lines if line.strip()][-most:]
