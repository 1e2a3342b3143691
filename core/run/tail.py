"""Incremental reader of a growing file of lines; it never reads a byte twice."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator

from .events import Event, decode_event

FIRST_BYTES = 16 * 1024
"""Bytes read at first: mostly all that is new."""
CHUNK_BYTES = 256 * 1024
"""Bytes read at a time where there is more."""
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
        """Return what the path names now: None for no file, another one where that has taken its place.

        A descriptor that has become useless (a network file system that was lost for a while) is opened anew.
        """
        status = self._status()
        if status is None or not status.st_nlink:
            self.close()
            status = self._status()
        return status

    def read(self, length: int, offset: int) -> bytes:
        """Return these bytes, fewer where the file ends."""
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
                self._descriptor = os.open(self.path, os.O_RDONLY | os.O_CLOEXEC)
            except OSError:
                return False
            HeldFile.held += 1
        return True


class LineTail:
    """Hands out whole lines as they appear; a torn last line waits for its rest.

    A file that is missing has no lines yet. One that shrank or was replaced is read from its beginning.
    """

    def __init__(self, path: str, offset: int = 0, *, held: bool = False) -> None:
        """`held` keeps the file open between two reads."""
        self.path = path
        self.offset = offset
        """Where the next unread whole line begins."""
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
            length = CHUNK_BYTES


class EventTail:
    """Hands out the events of one run as they are written."""

    def __init__(self, path: str, *, held: bool = False) -> None:
        self._lines = LineTail(path, held=held)
        self.unreadable = 0
        """Lines so far that were no events."""

    @property
    def offset(self) -> int:
        """Bytes read so far, up to the last whole line."""
        return self._lines.offset

    def has_grown(self) -> bool:
        return self._lines.has_grown()

    def read(self, limit: int | None = None) -> list[Event]:
        """Return the events written since the last call, at most about `limit` bytes of them."""
        events: list[Event] = []
        for line in self._lines.lines(limit):
            event = decode_event(line)
            if event is None:
                self.unreadable += bool(line.strip())
            else:
                events.append(event)
        return events
