"""Events as the lines of a transcript; pure."""

from __future__ import annotations

from enum import IntEnum
from typing import NamedTuple

from ..core.describe import GLYPHS
from ..core.events import (
    ErrorReported,
    Event,
    Notice,
    Queued,
    Retry,
    RunEnded,
    RunStarted,
    Thinking,
    ToolCall,
    ToolResult,
    UnknownEvent,
    UsageReported,
)
from ..core.plain import one_line
from ..core.progress import ProgressFormatter
from .present import local_time

TEXT_LIMIT = 200_000
"""Characters of one event that are laid out; the whole is in events.jsonl."""

_GLYPHS = {status.value: glyph for status, glyph in GLYPHS.items()}


class Kind(IntEnum):
    """What a line is, and so how it is coloured."""

    TEXT = 0
    TOOL = 1
    RESULT = 2
    NOTE = 3
    """Of the run itself: started, retried."""
    WARNING = 4
    ERROR = 5
    ENDED = 6
    THINKING = 7
    LIVE = 8
    """The sentence being written."""


class Entry(NamedTuple):
    time: str
    kind: Kind
    text: str


def entry_of(event: Event, formatter: ProgressFormatter) -> Entry | None:
    """Say one event in a line or a paragraph; None when it says nothing to a person."""
    text = formatter.text(event) or _own_words(event)
    if not text or not (shown := text[:TEXT_LIMIT].strip("\n")):
        return None
    match event:
        case ToolResult():
            shown = f"  {shown}"
        case RunEnded(status=status) if status in _GLYPHS:
            shown = f"{_GLYPHS[status]} {shown}"
        case _:
            pass
    return Entry(local_time(event.ts), _kind(event), shown)


def _own_words(event: Event) -> str:
    """Say what the progress text leaves out: it is of the run, not of the child's work."""
    match event:
        case RunStarted(attempt=attempt, max_attempts=most):
            return f"started, attempt {attempt} of {most}" if most > 1 else "started"
        case UnknownEvent(type=name):
            return f"({one_line(name, 60)})"
        case _:
            return ""


def _kind(event: Event) -> Kind:
    match event:
        case ToolCall():
            return Kind.TOOL
        case ToolResult(is_error=is_error):
            return Kind.ERROR if is_error else Kind.RESULT
        case ErrorReported():
            return Kind.ERROR
        case Notice(level="warning") | Retry():
            return Kind.WARNING
        case Queued() | RunStarted() | Notice() | UsageReported() | UnknownEvent():
            return Kind.NOTE
        case RunEnded():
            return Kind.ENDED
        case Thinking():
            return Kind.THINKING
        case _:
            return Kind.TEXT
