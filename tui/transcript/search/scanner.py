"""Search a file of lines forward and backward, block by block; runs in threads."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, NamedTuple, Protocol

if TYPE_CHECKING:
    from ....core.system.line_file import LineFile

WARM = 256 * 1024
"""Bytes before the start of a search that a matcher sees first: they hold the calls whose results come after it."""

REGION = 4 * 1024 * 1024
"""Bytes that are searched at once where a search goes backward."""

Cancelled = Callable[[], bool]


class Matcher(Protocol):
    """Goes through a file from one offset on, and may remember what it saw on the way."""

    def matches(self, start: int, block: bytes) -> list[int]:
        """Return where matching lines begin in a block of whole lines that begins at `start`."""
        ...


class Pattern(Protocol):
    """What is searched for."""

    def matcher(self) -> Matcher: ...


class BlockMatches(NamedTuple):
    matches: list[int]
    """Where matching lines begin, in their order."""
    end: int
    """Where the block that was searched ends."""


class Match(NamedTuple):
    """The result of a search for the next or the previous match."""

    offset: int | None
    """Where the matching line begins; None for no match in the whole file."""
    wrapped: bool = False
    """Whether the search went around the end of the file."""


def scan(file: LineFile, start: int, end: int, matcher: Matcher, cancelled: Cancelled) -> Iterator[BlockMatches]:
    """Search the lines that begin at `start` or after it and before `end`, a block at a time, until cancelled.

    `start` is the beginning of a line. A last line that has no newline yet waits for its rest.
    """
    for position, block, following in file.blocks(start):
        if position >= end or cancelled():
            return
        yield BlockMatches([match for match in matcher.matches(position, block) if match < end], following)


def find(file: LineFile, pattern: Pattern, offset: int, step: int, cancelled: Cancelled) -> Match:
    """Return the first match from this byte on (`step` 1) or the last before it (-1), around the end of the file."""
    mark = file.mark()
    size = mark.size if mark else 0
    if step > 0:
        match = first_match(file, pattern, offset, size, cancelled)
        other = None if match is not None else first_match(file, pattern, 0, min(offset, size), cancelled)
    else:
        match = last_match(file, pattern, offset, cancelled)
        other = None if match is not None else last_match(file, pattern, file.end_of_lines(size), cancelled)
    return Match(match) if match is not None else Match(other, True)


def first_match(file: LineFile, pattern: Pattern, start: int, end: int, cancelled: Cancelled) -> int | None:
    """Return where the first matching line at or after `start` and before `end` begins."""
    begin = file.line_start(max(0, start - WARM), start)
    blocks = scan(file, begin, end, pattern.matcher(), cancelled)
    return next((match for block in blocks for match in block.matches if match >= start), None)


def last_match(file: LineFile, pattern: Pattern, end: int, cancelled: Cancelled) -> int | None:
    """Return where the last matching line before `end`, the beginning of a line, begins."""
    position, size = end, REGION
    while position > 0 and not cancelled():
        region = file.line_start(max(0, position - size), position)
        if region == position:  # within one very long line
            size *= 2
            continue
        begin = file.line_start(max(0, region - WARM), region)
        found = scan(file, begin, position, pattern.matcher(), cancelled)
        if matches := [match for block in found for match in block.matches if match >= region]:
            return matches[-1]
        position, size = region, REGION
    return None
