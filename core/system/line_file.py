"""Random access to a growing file of lines, in chunks that begin and end at line boundaries.

The file may be missing, replaced, cut short or removed at any moment: then there is less to read, and nothing raises.
"""

from __future__ import annotations

import os
from collections.abc import Iterator

from msgspec import Struct

CHUNK = 64 * 1024
"""Bytes of a chunk, a little more where a line goes on: what is decoded at once because somebody looks at it."""

BLOCK = 256 * 1024
"""Bytes that are read at once where newlines are only counted."""

HELD = 256 * 1024
"""Bytes of one line that are handed out; of a longer one only the beginning."""

WHOLE = 1024 * 1024
"""Bytes of a chunk up to which it is read whole; one that is longer has a line that is cut."""


class Chunk(Struct, frozen=True, gc=False):
    """A range of bytes that holds whole lines."""

    start: int
    end: int
    lines: int


class FileMark(Struct, frozen=True, gc=False):
    """Which file a path named when it was looked at, and how long it was."""

    inode: int
    size: int


class LineFile:
    """Reads parts of one file; several threads may do so at once."""

    def __init__(self, path: str) -> None:
        self.path = path

    def mark(self) -> FileMark | None:
        """Return what is there now; None for no file."""
        try:
            status = os.stat(self.path)
        except OSError:
            return None
        return FileMark(status.st_ino, status.st_size)

    def read(self, start: int, length: int) -> bytes:
        """Return these bytes, fewer where the file ends."""
        try:
            descriptor = os.open(self.path, os.O_RDONLY | os.O_CLOEXEC)
            try:
                return os.pread(descriptor, length, start)
            finally:
                os.close(descriptor)
        except OSError:
            return b""  # not there any more, or a directory in its place

    def end_of_lines(self, size: int) -> int:
        """Return where the last whole line among the first `size` bytes ends; 0 when there is none."""
        position = size
        while position > 0:
            start = max(0, position - CHUNK)
            newline = self.read(start, position - start).rfind(b"\n")
            if newline >= 0:
                return start + newline + 1
            position = start
        return 0

    def line_at(self, offset: int) -> bytes:
        """Return the whole line that begins here, however long, without its newline."""
        parts: list[bytes] = []
        while block := self.read(offset, BLOCK):
            line, newline, _ = block.partition(b"\n")
            parts.append(line)
            if newline:
                break
            offset += len(block)
        return b"".join(parts)

    def lines(self, start: int, end: int) -> list[tuple[int, bytes]]:
        """Return the lines of a chunk, each with the offset of its beginning; a very long one is cut at `HELD`."""
        if end - start <= WHOLE:
            return _split(start, self.read(start, end - start))
        head = self.read(start, HELD + CHUNK)
        before, newline, _ = head.rpartition(b"\n")
        lines = _split(start, before + newline)
        long_start = start + len(before) + len(newline)
        lines.append((long_start, self.read(long_start, HELD)))
        tail_start = max(long_start, end - WHOLE // 2)
        _, newline, rest = self.read(tail_start, end - tail_start).partition(b"\n")
        return lines + (_split(end - len(rest), rest) if newline else [])

    def chunks_before(self, end: int) -> Iterator[Chunk]:
        """Yield the chunks of what is before `end`, the last one first, reading every byte once.

        `end` is the beginning of a line. Each chunk is the shortest of at least `CHUNK` bytes.
        """
        chunk_end = position = end
        lines = 0
        while position > 0:
            start = max(0, position - BLOCK)
            block = self.read(start, position - start)
            cut = len(block)
            while (target := chunk_end - CHUNK - start) > 0:
                newline = block.rfind(b"\n", 0, min(target, cut))
                if newline < 0:
                    break
                lines += block.count(b"\n", newline + 1, cut)
                cut = newline + 1
                yield Chunk(start + cut, chunk_end, lines)
                chunk_end, lines = start + cut, 0
            lines += block.count(b"\n", 0, cut)
            position = start
        if chunk_end > 0:
            yield Chunk(0, chunk_end, lines)


def chunks_of(start: int, block: bytes) -> Iterator[Chunk]:
    """Yield the chunks of whole lines that were read from `start` on, in their order."""
    position = 0
    while position < len(block):
        newline = block.find(b"\n", position + CHUNK)
        end = len(block) if newline < 0 else newline + 1
        yield Chunk(start + position, start + end, block.count(b"\n", position, end))
        position = end


def _split(start: int, block: bytes) -> list[tuple[int, bytes]]:
    lines = block.split(b"\n")
    if not lines[-1]:
        lines.pop()
    offsets: list[tuple[int, bytes]] = []
    for line in lines:
        offsets.append((start, line))
        start += len(line) + 1
    return offsets


CHUNK_BACKWARD = 1024 * 1024
"""Bytes read at a time."""

HEAD = 512
"""Bytes of a line that come with it."""


class Line(Struct, frozen=True, gc=False):
    """Where a line is, without its newline, and its first `HEAD` bytes."""

    offset: int
    length: int
    head: bytes


def lines_backward(descriptor: int, size: int) -> Iterator[Line]:
    """Yield the lines of the first `size` bytes, the last one first; blank ones are left out."""
    end = position = size
    while position > 0:
        start = max(0, position - CHUNK_BACKWARD)
        chunk = os.pread(descriptor, position - start, start)
        cut = len(chunk)
        while (newline := chunk.rfind(b"\n", 0, cut)) >= 0:
            offset = start + newline + 1
            length = end - offset
            if length > 0:
                shown = length if length < HEAD else HEAD
                is_here = end <= position
                head = chunk[newline + 1 : newline + 1 + shown] if is_here else os.pread(descriptor, shown, offset)
                yield Line(offset, length, head)
            end, cut = start + newline, newline
        position = start
    if end > 0:
        yield Line(0, end, os.pread(descriptor, min(HEAD, end), 0))
