"""pi's own UI on a run's conversation; and reading the messages from its session file."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from typing import Any

import msgspec
from msgspec.structs import replace

from ...run.events import CONTENT_LIMIT, Event, Message, ToolResult
from ...run.model import MessageState
from .._json_lines import decode, items, joined_text, mapping, string
from ..child import Command, Start
from ..interactive import Interactive, Said
from .program import child_command
from .stream import PiStream

_MODE = "--mode"
BY_HAND = "SUBDECK_BY_HAND"
"""The variable that shows subdeck's extension that the user is at the program."""


class PiInteractive:
    def command(self, start: Start) -> Command:
        command = child_command(start.meta, start.run_dir)
        argv = list(command.argv)
        if _MODE in argv:
            at = argv.index(_MODE)
            del argv[at : at + 2]
        return replace(command, argv=tuple(argv), env={**command.env, BY_HAND: "1"}, pipe=False)

    def conversation(self, start: Start) -> str | None:
        return os.path.join(start.run_dir, start.meta.session_path) if start.meta.session_path else None

    def read(self, lines: Iterable[bytes], by: str) -> Said:
        """Read entries of a session file, including abandoned branches."""
        stream = PiStream()
        events: list[Event] = []
        last = ""
        for line in lines:
            entry = decode(line) or {}
            message = mapping(entry.get("message")) if entry.get("type") == "message" else {}
            role = string(message.get("role"))
            if role == "user":
                text, _ = joined_text(message.get("content"), CONTENT_LIMIT)
                events.append(Message(id=string(entry.get("id")), state=MessageState.DELIVERED, text=text, by=by))
            for event in _in_stream(role, message):
                events += map(_untimed, stream.feed(msgspec.json.encode(event)))
            last = role or last
        facts = replace(stream.facts, finished=last == "assistant" and not stream.facts.wants_turn)
        return Said(tuple(events), facts)


def _in_stream(role: str, message: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield the lines that pi would write as an agent for a message of its session file."""
    match role:
        case "assistant":
            yield {"type": "message_end", "message": message}
            for block in map(mapping, items(message.get("content"))):
                if block.get("type") == "toolCall":
                    named = {"toolCallId": block.get("id"), "toolName": block.get("name")}
                    yield {"type": "tool_execution_start", **named, "args": block.get("arguments")}
        case "toolResult":
            result = {name: message[name] for name in ("content", "details", "structuredContent") if name in message}
            named = {"toolCallId": message.get("toolCallId"), "toolName": message.get("toolName")}
            yield {"type": "tool_execution_end", **named, "result": result, "isError": message.get("isError")}
        case _:
            return


def _untimed(event: Event) -> Event:
    """Drop a result's duration, which is not measured here."""
    return replace(event, duration_ms=None) if isinstance(event, ToolResult) else event


INTERACTIVE: Interactive = PiInteractive()
