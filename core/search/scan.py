"""Search the files of runs for a pattern, the newest run first."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from enum import StrEnum
from typing import TypeVar

from msgspec import Struct
from msgspec.structs import replace

from .. import paths
from ..run.events import AssistantText, Event, ToolCall, UnknownEvent, decode_beginning, decode_event
from ..run.model import NO_PRESET
from ..run.proven import counts
from ..system.directory import Directory, opened
from ..system.line_file import ENDLESS, HELD, LONGEST
from ..text.decoder import UNDECODABLE, decoder
from ..text.plain import one_line, plain
from .pattern import Pattern, Span
from .texts import texts_of

BLOCK = 1024 * 1024
"""Bytes of a file searched at once; mostly all of them."""

EXCERPT = 400
"""Characters of a line that are returned."""
BEFORE = 60
"""Characters before the first match, if the line is cut."""

Record = TypeVar("Record")

Cancelled = Callable[[], bool]


class Part(StrEnum):
    """The part of a run that has a match."""

    TASK = "task"
    """The task, or its description."""
    TRANSCRIPT = "transcript"
    ANSWER = "answer"
    """The answer, or the error in its place."""


class Hit(Struct, frozen=True, kw_only=True, rename="camel"):
    """A line with a match."""

    place: Part
    line: str
    """Plain text; of a long line the part around the first match."""
    spans: tuple[Span, ...]
    """Spans of the matches in `line`; omitted text does not count."""
    at: str = ""
    """When it was written."""
    offset: int | None = None
    """Start of its event in `events.jsonl`; None in another file."""
    kind: str = ""
    """The type of that event."""


class Found(Struct, frozen=True, rename="camel"):
    """All hits in one run: in the task, in the order of the transcript, in the answer."""

    run_id: str
    preset: str
    """`NO_PRESET` for a one-off run."""
    hits: tuple[Hit, ...]


class _Asked(Struct, rename="camel"):
    """Fields that are read from `meta.json`."""

    task: str = ""
    description: str = ""
    preset: str = ""
    created_at: str = ""


class _Result(Struct, rename="camel"):
    """Fields that are read from `result.json`."""

    final_text: str | None = None
    error_message: str | None = None
    ended_at: str = ""


_decode_asked = decoder(_Asked)
_decode_result = decoder(_Result)


def search(runs: str, run_ids: Iterable[str], pattern: Pattern, cancelled: Cancelled) -> Iterator[Found]:
    """Yield the runs of a directory that have a match, in the order given, until cancelled.

    A file that is missing or not regular has no match.
    """
    try:
        directory = opened(runs)
    except OSError:
        return
    buffer = bytearray(BLOCK)
    with directory:
        for run_id in run_ids:
            if cancelled():
                return
            try:
                found = _search_run(directory, run_id, pattern, buffer, cancelled)
            except OSError:
                continue  # it was deleted, or cannot be read
            if found:
                yield found


def _search_run(
    runs: Directory, run_id: str, pattern: Pattern, buffer: bytearray, cancelled: Cancelled
) -> Found | None:
    _, (meta, result) = runs.read_inside(run_id, paths.META, paths.RESULT)
    hits: list[Hit] = []
    if pattern.may_be_in(meta) and (asked := _decoded(_decode_asked, meta)):
        for text in (asked.task, asked.description):
            hits += _hits(pattern, plain(text), Hit(place=Part.TASK, line="", spans=(), at=asked.created_at))
    with runs.inside(run_id) as directory:
        hits += _search_events(directory, pattern, buffer, cancelled)
    may_match = pattern.may_be_in(result) and counts(f"{runs.path}/{run_id}", paths.RESULT, result)
    if may_match and (fields := _decoded(_decode_result, result)):
        _add_answer(hits, pattern, fields)
    if not hits:
        return None
    asked = _decoded(_decode_asked, meta)
    return Found(run_id, one_line(asked.preset if asked else "", 60) or NO_PRESET, tuple(hits))


def _add_answer(hits: list[Hit], pattern: Pattern, fields: _Result) -> None:
    """Mark the hits in lines of the final texts as the answer; add lines that are not in any event."""
    for text in filter(None, (fields.final_text, fields.error_message)):
        answer = _hits(pattern, plain(text), Hit(place=Part.ANSWER, line="", spans=(), at=fields.ended_at))
        written = {hit.line: index for index, hit in enumerate(hits) if hit.kind in _ANSWERING}
        for hit in answer:
            if (index := written.get(hit.line)) is None:
                hits.append(hit)
            else:
                hits[index] = replace(hits[index], place=Part.ANSWER)


_ANSWERING = frozenset(str(kind.__struct_config__.tag) for kind in (AssistantText, ToolCall))
"""The events that an answer comes from: the last text, or the call that returns a structured result."""


def _search_events(directory: Directory, pattern: Pattern, buffer: bytearray, cancelled: Cancelled) -> list[Hit]:
    hits: list[Hit] = []
    try:
        descriptor = directory.open(paths.EVENTS, os.O_RDONLY)
    except FileNotFoundError:
        return hits  # it is waiting, or never started
    try:
        for start, end in _blocks(descriptor, buffer, cancelled):
            for begin, stop in pattern.lines(buffer, end):
                event = _event(bytes(buffer[begin:stop]))
                if event is None or isinstance(event, UnknownEvent):
                    continue
                kind = str(type(event).__struct_config__.tag)
                hit = Hit(place=Part.TRANSCRIPT, line="", spans=(), at=plain(event.ts), offset=start + begin, kind=kind)
                for text in texts_of(event):
                    hits += _hits(pattern, text, hit)
    finally:
        os.close(descriptor)
    return hits


def _blocks(descriptor: int, buffer: bytearray, cancelled: Cancelled) -> Iterator[tuple[int, int]]:
    """Read whole lines into the buffer repeatedly; yield their offset in the file, and the number of bytes.

    A line longer than any that subdeck writes is cut.
    """
    start = kept = 0
    while not cancelled():
        with memoryview(buffer) as room:
            count = os.readv(descriptor, [room[kept:]])
        end = kept + count
        whole = buffer.rfind(b"\n", 0, end) + 1 if count else end
        if not count and not kept:
            return
        if not whole and end == len(buffer) and end < LONGEST:
            buffer.extend(bytes(end))
            kept = end
            continue
        if not whole and end == len(buffer):
            yield start, HELD
            following = _skip_line(descriptor)
            if following < 0:
                return
            start, kept = following, 0
            continue
        if whole:
            yield start, whole
        buffer[: end - whole] = buffer[whole:end]
        start, kept = start + whole, end - whole
        if not count:
            return


def _skip_line(descriptor: int) -> int:
    """Skip the rest of a line; return the start of the next one, -1 if it does not exist or is too far away."""
    for _ in range(ENDLESS // BLOCK):
        piece = os.read(descriptor, BLOCK)
        if (newline := piece.find(b"\n")) >= 0:
            return os.lseek(descriptor, newline + 1 - len(piece), os.SEEK_CUR)
    return -1


def _event(line: bytes) -> Event | None:
    event = decode_event(line)
    return decode_beginning(line) if event is None and len(line) >= HELD else event


def _hits(pattern: Pattern, text: str, hit: Hit) -> list[Hit]:
    """Return a hit for each line of a text with a match."""
    if not pattern.is_in(text):
        return []
    return [
        replace(hit, line=line, spans=spans)
        for whole in text.split("\n")
        if (matches := pattern.spans(whole))
        for line, spans in (_excerpt(whole, matches),)
    ]


def _excerpt(line: str, spans: tuple[Span, ...]) -> tuple[str, tuple[Span, ...]]:
    """Cut a long line around its first match, and whitespace from its ends."""
    begin = len(line) - len(line.lstrip())
    begin = min(begin, spans[0][0])
    lead = ""
    if len(line) - begin > EXCERPT and spans[0][0] - begin > BEFORE:
        begin, lead = spans[0][0] - BEFORE, "…"
    shown = line[begin : begin + EXCERPT]
    tail = "…" if len(line) > begin + EXCERPT else ""
    moved = tuple(
        (max(0, first - begin) + len(lead), min(last - begin, len(shown)) + len(lead))
        for first, last in spans
        if first - begin < len(shown)
    )
    return f"{lead}{shown if tail else shown.rstrip()}{tail}", moved


def _decoded(decode: Callable[[bytes], Record], content: bytes) -> Record | None:
    try:
        return decode(content)
    except UNDECODABLE:
        return None
