"""Files of lines that are still being written: read from an offset, backward from the end, or anywhere between.

The file may be missing, replaced, truncated or removed at any moment: then there is less to read, and nothing raises.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator

from msgspec import Struct

from .files import open_regular

FIRST_BYTES = 16 * 1024
"""Bytes of new content that are read first: mostly there are no more."""
CHUNK = 64 * 1024
"""Bytes of a chunk, slightly more if a line is longer: the amount that is decoded at once for display."""
BLOCK = 256 * 1024
"""Bytes read at a time if there are more, or if newlines are only counted."""
HELD = 256 * 1024
"""Bytes of one line that are returned; of a longer one only the beginning."""
WHOLE = 1024 * 1024
"""Bytes up to which a chunk is read whole; a longer one has a line that is cut."""
LONGEST = 4 * 1024 * 1024
"""Bytes of one line that `blocks` returns; of a longer one only the beginning."""
ENDLESS = 64 * 1024 * 1024
"""Bytes after which a line counts as endless: a file may have a hole of a terabyte, too long to search."""
HEAD = 512
"""Bytes of a line that `lines_backward` returns with it."""

_OPEN_LIMIT = os.sysconf("SC_OPEN_MAX")
"""Files that this process may have open at a time, usually 1,024; -1 without a limit."""
MOST_HELD = 400 if _OPEN_LIMIT < 0 else min(400, _OPEN_LIMIT // 4)
"""Files that this process keeps open at a time, at most a quarter of its limit."""


class HeldFile:
    """A file that is read repeatedly, and kept open in between unless too many are."""

    held = 0
    """Number of them open now."""

    def __init__(self, path: str) -> None:
        self.path = path
        self._descriptor = -1

    def __del__(self) -> None:
        self.close()

    def status(self) -> os.stat_result | None:
        """Return the status of the file that the path names now, None for no file; a lost network file system is
        reopened.
        """
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
            with contextlib.suppress(OSError):  # it is closed even if the file system is gone
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
    """Yields whole lines as they appear; a file that shrank or was replaced is read from its beginning."""

    def __init__(self, path: str, offset: int = 0, *, held: bool = False) -> None:
        """`held` keeps the file open between two reads."""
        self.path = path
        self.offset = offset
        """Where the next unread whole line begins."""
        self.restarts = 0
        """Number of times that the file was read from its beginning again."""
        self._inode = 0
        self._file = HeldFile(path)
        self._done = self._file.release if held else self._file.close

    def has_grown(self) -> bool:
        """Return whether there is anything to read, even if only the beginning of a line."""
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
        unfinished, position, length = b"", self.offset, FIRST_BYTES
        end = None if limit is None else self.offset + limit
        while end is None or position < end or unfinished:
            chunk = self._file.read(length, position)
            position += len(chunk)
            whole, newline, tail = (unfinished + chunk).rpartition(b"\n")
            unfinished = tail
            if newline:
                for line in whole.split(b"\n"):
                    self.offset += len(line) + 1
                    yield line
            if len(chunk) < length or (newline and end is not None and position >= end):
                return
            if len(unfinished) > ENDLESS:
                self.offset = max(position, status.st_size)
                yield unfinished[:HELD]
                return
            length = BLOCK if newline else max(BLOCK, len(unfinished))


class Chunk(Struct, frozen=True, gc=False):
    """A range of bytes that holds whole lines."""

    start: int
    end: int
    lines: int


class FileMark(Struct, frozen=True, gc=False):
    """The file that a path named at some moment, and its length then."""

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
        """Return these bytes, fewer at the end of the file."""
        try:
            descriptor, _ = open_regular(self.path)
            try:
                return os.pread(descriptor, length, start)
            finally:
                os.close(descriptor)
        except OSError:
            return b""  # removed, or a directory in its place

    def end_of_lines(self, size: int) -> int:
        """Return where the last whole line in the first `size` bytes ends; 0 if no newline is near their end."""
        position = size
        while position > max(0, size - ENDLESS):
            start = max(0, position - CHUNK)
            newline = self.read(start, position - start).rfind(b"\n")
            if newline >= 0:
                return start + newline + 1
            position = start
        return 0

    def line_start(self, position: int) -> int | None:
        """Return where the first line at or after `position` begins; None if there is no newline before it."""
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
        """Yield whole lines from `start` on, mostly `BLOCK` bytes: their start, the bytes, the start of the next ones.

        Of a line longer than `LONGEST` only the beginning is there; a last one without a newline waits for its rest.
        """
        while True:
            block, following = self._block(start)
            if not block:
                return
            yield start, block, following
            start = following

    def _block(self, position: int) -> tuple[bytes, int]:
        """Read whole lines, and return where the next ones begin; no bytes if no line is complete."""
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
        """Return the whole line that begins here, without its newline, unless it is endless."""
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
        """Return the lines of a chunk, each with its offset; a very long one is cut at `HELD`."""
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
        """Yield the chunks before `end`, the last one first, reading every byte once.

        `end` is the start of a line. Each chunk is the shortest of at least `CHUNK` bytes.
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
    """Yield the chunks of whole lines that were read from `start` on, in order."""
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
    """Position of a line, without its newline, and its first `HEAD` bytes."""

    offset: int
    length: int
    head: bytes


def lines_backward(descriptor: int, size: int) -> Iterator[Line]:
    """Yield the lines of the first `size` bytes, the last one first; empty ones are omitted."""
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
