"""The texts of an event that someone wrote, as a search or an index reads them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, cast

from ..run.events import (
    AssistantText,
    Decision,
    ErrorReported,
    Event,
    Message,
    Notice,
    Request,
    Retry,
    Thinking,
    ToolCall,
    ToolResult,
)
from ..run.progress import is_worded, tool_word
from ..run.requests import request_text
from ..text.plain import plain


def texts_of(event: Event) -> Iterator[str]:
    """Yield the sanitized texts of an event, without the names in its JSON and without subdeck's own words."""
    match event:
        case AssistantText(text=text) | Thinking(text=text) | Notice(text=text):
            yield plain(text)
        case ToolResult(content=text, diff=diff):
            yield plain(text)
            if diff:
                yield plain(diff)
        case ErrorReported(message=text) | Retry(reason=text):
            yield plain(text)
        case Message(text=text) | Decision(text=text):
            yield plain(text)
        case Request():
            yield request_text(event)
        case ToolCall(tool_name=name, args=args):
            if not is_worded(name):
                yield tool_word(name)
            yield from _leaves(args)
        case _:
            return


def _leaves(value: Any) -> Iterator[str]:
    """Yield the values in the arguments of a call, at any depth."""
    pending = [value]
    while pending:
        item = pending.pop()
        if isinstance(item, str):
            yield plain(item)
        elif isinstance(item, dict):
            pending.extend(reversed(cast("dict[str, Any]", item).values()))
        elif isinstance(item, list):
            pending.extend(reversed(cast("list[Any]", item)))
        elif isinstance(item, int | float) and not isinstance(item, bool):
            yield str(item)
