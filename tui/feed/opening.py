"""What an opened line shows below itself, and the whole text of a line; pure."""

from __future__ import annotations

import msgspec

from ...core.run.events import AssistantText, Event, Thinking, ToolCall, ToolResult
from ...core.run.progress import ProgressFormatter, arguments_text
from ...core.text.plain import plain
from .lines import Entry, entry_of_line, event_of
from .views import View

BODY_LIMIT = 20_000
"""Characters of an opened line that are laid out."""


def body_of_line(view: str, line: bytes) -> str:
    """Answer what opening this line shows, cut at `BODY_LIMIT`."""
    body = _raw_body(line) if view == View.RAW else body_of(event_of(line))
    left = len(body) - BODY_LIMIT
    return body if left <= 0 else f"{body[:BODY_LIMIT]}\n[… {left} more characters, not shown here]"


def full_text(view: str, line: bytes, formatter: ProgressFormatter) -> str:
    """Answer all that a line says, whatever its length, as plain text to be taken elsewhere."""
    if view != View.READABLE:
        return plain(line.decode("utf-8", "replace"))
    event = event_of(line)
    if isinstance(event, AssistantText | Thinking):
        return plain(event.text).strip("\n")
    entry: Entry | None = entry_of_line(view, line, formatter)
    return "\n".join(filter(None, (entry.text.strip() if entry else "", body_of(event))))


def body_of(event: Event | None) -> str:
    """Answer all that opening an event may show."""
    match event:
        case Thinking(text=text):
            return plain(text).strip("\n")
        case ToolCall():
            return arguments_text(event)
        case ToolResult():
            return _result(event)
        case _:
            return ""


def _result(event: ToolResult) -> str:
    facts = [
        f"exit code {event.exit_code}" if event.exit_code is not None else "",
        f"{event.duration_ms} ms" if event.duration_ms is not None else "",
    ]
    told = " · ".join(filter(None, facts))
    content = plain(event.content).strip("\n").rstrip() or "(no output)"
    cut = "[the run kept no more of it]" if event.truncated else ""
    return "\n".join(filter(None, (told, content, cut)))


def _raw_body(line: bytes) -> str:
    try:
        return plain(msgspec.json.format(line, indent=2).decode("utf-8", "replace"))
    except (msgspec.DecodeError, RecursionError, UnicodeError):
        return plain(line.decode("utf-8", "replace"))
