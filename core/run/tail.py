"""Incremental reader of a growing file of lines; it never reads a byte twice."""

from __future__ import annotations

import os
from collections.abc import Iterator

from .events import Event, decode_event

CHUNK = 256 * 1024
"""Bytes read at a time."""


class LineTail:
    """Hands out whole lines as they appear; a torn last line waits for its rest.

    A file that is missing has no lines yet. One that shrank or was replaced is read from its beginning.
    """

    def __init__(self, path: str, offset: int = 0) -> None:
        self.path = path
        self.offset = offset
        """Where the next unread whole line begins."""

    def lines(self, limit: int | None = None) -> Iterator[bytes]:
        """Yield unread whole lines without their newline, at most about `limit` bytes of them."""
        try:
            descriptor = os.open(self.path, os.O_RDONLY | os.O_CLOEXEC)
        except OSError:
            return
        try:
            if os.fstat(descriptor).st_size < self.offset:
                self.offset = 0
            rest, position, end = b"", self.offset, None if limit is None else self.offset + limit
            while end is None or position < end or rest:
                try:
                    chunk = os.pread(descriptor, CHUNK, position)
                except OSError:
                    return  # a directory in its place, or a disk that fails
                if not chunk:
                    return
                position += len(chunk)
                whole, newline, tail = (rest + chunk).rpartition(b"\n")
                rest = tail
                if not newline:
                    continue
                for line in whole.split(b"\n"):
                    self.offset += len(line) + 1
                    yield line
                if end is not None and position >= end:
                    return
        finally:
            os.close(descriptor)


class EventTail:
    """Hands out the events of one run as they are written."""

    def __init__(self, path: str) -> None:
        self._lines = LineTail(path)
        self.unreadable = 0
        """Lines so far that were no events."""

    @property
    def offset(self) -> int:
        """Bytes read so far, up to the last whole line."""
        return self._lines.offset

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
