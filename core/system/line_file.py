"""Files of lines that are still being written: read on from an offset, back from the end, or anywhere between.

The file may be missing, replaced, cut short or removed at any moment: then there is less to read, and nothing raises.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator

from msgspec import Struct

from .files import open_regular

FIRST_BYTES = 16 * 1024
"""Read first of what was appended: mostly all of it."""
CHUNK = 64 * 1024
"""Bytes of a chunk, a little more where a line is longer: what is decoded at once because it is shown."""
BLOCK = 256 * 1024
"""Bytes read at a time where there are more, or where newlines are only counted."""
HELD = 256 * 1024
"""Bytes of one line that are handed out; of a longer one only the beginning."""
WHOLE = 1024 * 1024
"""Bytes of a chunk up to which it is read whole; one that is longer has a line that is cut."""
LONGEST = 4 * 1024 * 1024
"""Bytes of one line that `blocks` hands out; of a longer one only the beginning."""
ENDLESS = 64 * 1024 * 1024
"""Bytes after which a line is taken for endless: nobody looks for the end of a file with a hole of a terabyte in it."""
HEAD = 512
"""Bytes of a line that `lines_backward` hands out with it."""

_OPEN_LIMIT = os.sysconf("SC_OPEN_MAX")
"""Files that this process may have open at a time, usually 1,024; -1 where there is no limit."""
MOST_HELD = 400 if _OPEN_LIMIT < 0 else min(400, _OPEN_LIMIT // 4)
"""Files of this process that are kept open at a time, at most a quarter of those it may open."""


class HeldFile:
    """A file that is read again and again, and kept open in between unless too many are."""

    held = 0
    """How many are open now."""

    def __init__(self, path: str) -> None:
        self.path = path
        self._descriptor = -1

    def __del__(self) -> None:
        self.close()

    def status(self) -> os.stat_result | None:
        """Return what the path names now, None for no file; a lost network file system is opened anew."""
        status = self._status()
        if status is None or not status.st_nlink:
            self.close()
            status = self._status()
        return status

    def read(self, length: int, offset: int) -> bytes:
        try:
            return os.pread(self._descriptor, length, offset) if self._open() else b""
        except OSError:
            return b""  # a directory in its place, or a disk that fails

    def release(self) -> None:
        """Close the file if too many are open."""
        if HeldFile.held > MOST_HELD:
            self.close()

    def close(self) -> None:
        if self._descriptor >= 0:
            with contextlib.suppress(OSError):  # it is closed even where the file system is not there any more
                os.close(self._descriptor)
            self._descriptor = -1
            HeldFile.held -= 1

    def _status(self) -> os.stat_result | None:
        try:
            return os.fstat(self._descriptor) if self._open() else None
        except OSError:
            self.close()
            return None

    def _open(self) -> bool:
        if self._descriptor < 0:
            try:
                self._descriptor, _ = open_regular(self.path)
            except OSError:
                return False
            HeldFile.held += 1
        return True


class LineTail:
    """Hands out whole lines as they appear; a file that shrank or was replaced is read from its beginning."""

    def __init__(self, path: str, offset: int = 0, *, held: bool = False) -> None:
        """`held` keeps the file open between two reads."""
        self.path = path
        self.offset = offset
        """Where the next unread whole line begins."""
        self.restarts = 0
        """How often the file was read from its beginning again."""
        self._inode = 0
        self._file = HeldFile(path)
        self._done = self._file.release if held else self._file.close

    def has_grown(self) -> bool:
        """Tell whether there is anything to read, be it only the beginning of a line."""
        status = self._file.status()
        self._done()
        return status is not None and status.st_size != self.offset

    def lines(self, limit: int | None = None) -> Iterator[bytes]:
        """Yield unread whole lines without their newline, at most about `limit` bytes of them."""
        try:
            yield from self._lines(limit)
        finally:
            self._done()

    def _lines(self, limit: int | None) -> Iterator[bytes]:
        status = self._file.status()
        if status is None:
            return
        if status.st_size < self.offset or (self._inode and status.st_ino != self._inode):
            self.offset = 0
            self.restarts += 1
        self._inode = status.st_ino
        rest, position, length = b"", self.offset, FIRST_BYTES
        end = None if limit is None else self.offset + limit
        while end is None or position < end or rest:
            chunk = self._file.read(length, position)
            position += len(chunk)
            whole, newline, tail = (rest + chunk).rpartition(b"\n")
            rest = tail
            if newline:
                for line in whole.split(b"\n"):
                    self.offset += len(line) + 1
                    yield line
            if len(chunk) < length or (newline and end is not None and position >= end):
                return
            if len(rest) > ENDLESS:
                self.offset = max(position, status.st_size)
                yield rest[:HELD]
                return
            length = BLOCK if newline else max(BLOCK, len(rest))


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
        try:
            descriptor, status = open_regular(self.path)
        except OSError:
            return None
        os.close(descriptor)
        return FileMark(status.st_ino, status.st_size)

    def read(self, start: int, length: int) -> bytes:
        """Return these bytes, fewer where the file ends."""
        try:
            descriptor, _ = open_regular(self.path)
            try:
                return os.pread(descriptor, length, start)
            finally:
                os.close(descriptor)
        except OSError:
            return b""  # not there any more, or a directory in its place

    def end_of_lines(self, size: int) -> int:
        """Return where the last whole line among the first `size` bytes ends; 0 when there is none near their end."""
        position = size
        while position > max(0, size - ENDLESS):
            start = max(0, position - CHUNK)
            newline = self.read(start, position - start).rfind(b"\n")
            if newline >= 0:
                return start + newline + 1
            position = start
        return 0

    def line_start(self, position: int) -> int | None:
        """Return where the first line at or after `position` begins; None while no newline is before it."""
        if position <= 0:
            return 0
        position -= 1  # a newline right there means that a line begins at the position itself
        last = position + ENDLESS
        while position < last and (block := self.read(position, BLOCK)):
            newline = block.find(b"\n")
            if newline >= 0:
                return position + newline + 1
            position += len(block)
        return None

    def blocks(self, start: int) -> Iterator[tuple[int, bytes, int]]:
        """Yield whole lines from `start` on, mostly `BLOCK` bytes: where they begin, they, where the next begin.

        Of a line longer than `LONGEST` only the beginning is there; a last one without a newline waits for its rest.
        """
        while True:
            block, following = self._block(start)
            if not block:
                return
            yield start, block, following
            start = following

    def _block(self, position: int) -> tuple[bytes, int]:
        """Read whole lines, and return where the next ones begin; no bytes where no line is complete."""
        size = BLOCK
        while True:
            block = self.read(position, size)
            if (newline := block.rfind(b"\n")) >= 0:
                return block[: newline + 1], position + newline + 1
            if len(block) < size:
                return b"", position
            if size >= LONGEST:
                following = self.line_start(position + size)
                return (b"", position) if following is None else (block + b"\n", following)
            size *= 4

    def line_at(self, offset: int) -> bytes:
        """Return the whole line that begins here, unless it is endless, without its newline."""
        parts: list[bytes] = []
        last = offset + ENDLESS
        while offset < last and (block := self.read(offset, BLOCK)):
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
            if chunk_end - position > ENDLESS:
                yield Chunk(position, chunk_end, max(1, lines))
                return
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


class Line(Struct, frozen=True, gc=False):
    """Where a line is, without its newline, and its first `HEAD` bytes."""

    offset: int
    length: int
    head: bytes


def lines_backward(descriptor: int, size: int) -> Iterator[Line]:
    """Yield the lines of the first `size` bytes, the last one first; blank ones are left out."""
    end = position = size
    while position > 0:
        start = max(0, position - BLOCK)
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
        if end - position > ENDLESS:
            return
    if end > 0:
        yield Line(0, end, os.pread(descriptor, min(HEAD, end), 0))
