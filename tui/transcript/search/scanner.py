"""Look through a file of lines for what is wanted, forward and backward, by blocks; used in threads."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, NamedTuple, Protocol

from ....core.system.line_file import BLOCK

if TYPE_CHECKING:
    from ....core.system.line_file import LineFile

WARM = 256 * 1024
"""Bytes before the place asked for that a matcher sees first: they hold the calls whose results come after it."""

REGION = 4 * 1024 * 1024
"""Bytes that are looked through at once where a search goes backward."""

LONGEST = 4 * 1024 * 1024
"""Bytes of one line that are looked at; of a longer one only the beginning."""

_BEYOND = 1 << 62
"""Farther than any file goes."""

Cancelled = Callable[[], bool]


class Matcher(Protocol):
    """Goes through a file from one place on, and may remember what it saw on the way."""

    def hits(self, start: int, block: bytes) -> list[int]:
        """Return where wanted lines begin in a block of whole lines that begins at `start`."""
        ...


class Wanted(Protocol):
    """What is looked for."""

    def matcher(self) -> Matcher: ...


class Found(NamedTuple):
    hits: list[int]
    """Where wanted lines begin, in their order."""
    end: int
    """Where the block ends that was looked at."""


def scan(file: LineFile, start: int, end: int, matcher: Matcher, cancelled: Cancelled) -> Iterator[Found]:
    """Look at the lines that begin at `start` or after it and before `end`, a block at a time, until cancelled.

    `start` is the beginning of a line. A last line that has no newline yet waits for its rest.
    """
    for position, block, following in blocks(file, start):
        if position >= end or cancelled():
            return
        yield Found([hit for hit in matcher.hits(position, block) if hit < end], following)


def blocks(file: LineFile, start: int) -> Iterator[tuple[int, bytes, int]]:
    """Yield whole lines from `start` on, some hundred kilobytes at once: where they begin, they, where the next begin.

    Of a line longer than `LONGEST` only the beginning is there.
    """
    while True:
        block, following = _block(file, start)
        if not block:
            return
        yield start, block, following
        start = following


def first_hit(file: LineFile, wanted: Wanted, start: int, end: int, cancelled: Cancelled) -> int | None:
    """Return where the first wanted line at or after `start` begins."""
    begin = _line_start(file, max(0, start - WARM), start)
    for found in scan(file, begin, end, wanted.matcher(), cancelled):
        for hit in found.hits:
            if hit >= start:
                return hit
    return None


def last_hit(file: LineFile, wanted: Wanted, end: int, cancelled: Cancelled) -> int | None:
    """Return where the last wanted line before `end`, the beginning of a line, begins."""
    position, size = end, REGION
    while position > 0 and not cancelled():
        region = _line_start(file, max(0, position - size), position)
        if region == position:  # within one very long line
            size *= 2
            continue
        hits: list[int] = []
        begin = _line_start(file, max(0, region - WARM), region)
        for found in scan(file, begin, position, wanted.matcher(), cancelled):
            hits += [hit for hit in found.hits if hit >= region]
        if hits:
            return hits[-1]
        position, size = region, REGION
    return None


def _line_start(file: LineFile, position: int, latest: int) -> int:
    """Return where the first line at or after `position` begins; `latest` when none does before it."""
    if position <= 0:
        return 0
    position -= 1  # a newline right there means that a line begins at the position itself
    while position < latest:
        block = file.read(position, min(BLOCK, latest - position))
        if not block:
            return latest
        if (newline := block.find(b"\n")) >= 0:
            return position + newline + 1
        position += len(block)
    return latest


def _block(file: LineFile, position: int) -> tuple[bytes, int]:
    """Read whole lines, and answer where the next ones begin; nothing where no line has been written to its end."""
    size = BLOCK
    while True:
        block = file.read(position, size)
        if (newline := block.rfind(b"\n")) >= 0:
            return block[: newline + 1], position + newline + 1
        if len(block) < size:
            return b"", position
        if size >= LONGEST:
            following = _line_start(file, position + size, _BEYOND)
            return (block + b"\n", following) if following < _BEYOND else (b"", position)
        size *= 4
