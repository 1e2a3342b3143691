"""What the client writes, line by line."""

from __future__ import annotations

import os
from collections.abc import Iterator

LINE_LIMIT = 64 * 1024 * 1024
"""Bytes of a line; a longer one is not held."""

READ = 1024 * 1024


class Inbox:
    """Reads when there is something to read; splits at LF bytes only."""

    def __init__(self, descriptor: int, limit: int = LINE_LIMIT) -> None:
        self._descriptor = descriptor
        self._limit = limit
        self._parts: list[bytes] = []
        """The unfinished line."""
        self._length = 0
        """Its bytes so far, whether or not they are held."""
        self.has_ended = False

    def read(self) -> Iterator[bytes | None]:
        """Yield the lines that are whole now, None for one that is too long; at the end what has no newline too."""
        try:
            block = os.read(self._descriptor, READ)
        except OSError:
            block = b""  # as good as its end
        *ended, rest = block.split(b"\n")
        for part in ended:
            self._hold(part)
            yield self._whole()
        self._hold(rest)
        if not block:
            self.has_ended = True
            yield self._whole()

    def _hold(self, part: bytes) -> None:
        self._length += len(part)
        if self._length <= self._limit:
            self._parts.append(part)
        else:
            self._parts.clear()

    def _whole(self) -> bytes | None:
        line = b"".join(self._parts) if self._length <= self._limit else None
        self._parts.clear()
        self._length = 0
        return line
