"""Read the lines of a big file from its end, without ever holding more than a piece of it."""

from __future__ import annotations

import os
from collections.abc import Iterator

from msgspec import Struct

CHUNK = 1024 * 1024
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
        start = max(0, position - CHUNK)
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
