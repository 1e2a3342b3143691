"""A run's file in one view as plain text, for a pager; used in threads."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from ...core.run.events import AssistantText
from ...core.run.progress import ProgressFormatter
from ...core.text.plain import plain
from ..feed.lines import entry_of, event_of
from ..feed.opening import body_of
from ..feed.views import View
from .search.scanner import blocks

if TYPE_CHECKING:
    from ...core.system.line_file import LineFile

TIME_WIDTH = 10
"""Cells of the time in front of a line."""

BODY_PREFIX = "  │ "
_REST = 1024 * 1024
"""Bytes of an unfinished last line that are shown."""


def text_of(file: LineFile, view: str) -> Iterator[str]:
    """Yield pieces of the text: every line that the view has, opened, and with no control character in it."""
    formatter = ProgressFormatter()
    end = 0
    for _, block, following in blocks(file, 0):
        end = following
        said = (text_of_line(view, line, formatter) for line in block.split(b"\n")[:-1])
        yield "".join(f"{text}\n" for text in said if text is not None)
    if view == View.STDERR and (rest := file.read(end, _REST)):
        yield f"{text_of_line(view, rest, formatter)}\n"


def text_of_line(view: str, line: bytes, formatter: ProgressFormatter) -> str | None:
    """Answer what a line says with all that opening it shows; None where the view leaves it out."""
    if view != View.READABLE:
        return plain(line.decode("utf-8", "replace")) if line or view == View.STDERR else None
    event = event_of(line)
    entry = None if event is None else entry_of(event, formatter)
    if entry is None:
        return None
    text = plain(event.text).strip("\n") if isinstance(event, AssistantText) else entry.text
    first, *more = text.split("\n")
    lines = [entry.time.ljust(TIME_WIDTH) + first, *(" " * TIME_WIDTH + line for line in more)]
    if entry.opens:
        lines += [" " * TIME_WIDTH + BODY_PREFIX + line for line in body_of(event).split("\n")]
    return "\n".join(line.rstrip() for line in lines)
