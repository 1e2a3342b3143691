"""The lines of one chunk, decoded; what is before it is asked for what its first lines refer to."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from msgspec import Struct

from ...core.run.events import ToolCall, decode_event
from ...core.run.progress import ProgressFormatter
from .lines import Entry, entry_of_line
from .opening import body_of_line
from .views import View

if TYPE_CHECKING:
    from ...core.system.line_file import LineFile

PRIMED = 256 * 1024
"""Bytes before a chunk in which the calls of its first results are looked for."""

_CALL = b'"type":"tool_call"'
_RESULT = b'"type":"tool_result"'
_ID = b'"toolCallId":'


class Decoded(Struct, frozen=True):
    """What some lines say; those that say nothing are left out."""

    entries: list[Entry]
    offsets: list[int]
    """Where the line of each entry begins."""
    bodies: dict[int, str]
    """What the opened ones show below themselves, by their offsets."""


def decode_lines(
    lines: Sequence[tuple[int, bytes]],
    view: View,
    formatter: ProgressFormatter,
    opened: Callable[[int], bool] | None = None,
) -> Decoded:
    """Say lines in their order."""
    decoded = Decoded([], [], {})
    for offset, line in lines:
        entry = entry_of_line(view, line, formatter)
        if entry is None:
            continue
        decoded.entries.append(entry)
        decoded.offsets.append(offset)
        if entry.opens and opened is not None and opened(offset):
            decoded.bodies[offset] = body_of_line(view, line)
    return decoded


def load(
    file: LineFile,
    start: int,
    end: int,
    view: View,
    formatter: ProgressFormatter,
    opened: Callable[[int], bool] | None = None,
) -> Decoded:
    """Decode one chunk; a few milliseconds, so that it may be done while somebody scrolls."""
    lines = file.lines(start, end)
    if view is View.READABLE and start:
        prime(formatter, file, start, lines)
    return decode_lines(lines, view, formatter, opened)


def prime(formatter: ProgressFormatter, file: LineFile, start: int, lines: Sequence[tuple[int, bytes]]) -> None:
    """Tell the formatter the calls whose results come in these lines without them."""
    called: set[bytes] = set()
    missing: list[bytes] = []
    for _, line in lines:
        head = line[:400]
        if _CALL in head:
            called.add(_id_in(line))
        elif _RESULT in head and (call := _id_in(line)) not in called:
            missing.append(call)
    if not missing:
        return
    first = max(0, start - PRIMED)
    before = file.read(first, start - first)
    for call in missing:
        if call and (event := _call_in(before, call)):
            formatter.text(event)


def _id_in(line: bytes) -> bytes:
    """Answer the text by which a line names its call, with what is in front of it; empty where it names none."""
    begin = line.find(_ID)
    end = line.find(b'"', begin + len(_ID) + 1)
    return line[begin : end + 1] if 0 <= begin < end else b""


def _call_in(before: bytes, call: bytes) -> ToolCall | None:
    position = before.rfind(call)
    while position >= 0:
        begin = before.rfind(b"\n", 0, position) + 1
        event = decode_event(before[begin : before.find(b"\n", position)])
        if isinstance(event, ToolCall):
            return event
        position = before.rfind(call, 0, begin)
    return None
