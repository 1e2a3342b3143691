"""Claude Code's own UI on a run's conversation; and reading the messages from there."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import msgspec
from msgspec.structs import replace

from ...run.environment import own_variables
from ...run.events import CONTENT_LIMIT, Event, Message, ToolResult
from ...run.model import MessageState
from .._json_lines import decode, items, joined_text, mapping, string
from ..child import Command, Start
from ..interactive import Interactive, Said
from ._stream import ClaudeStream
from .program import child_command, conversation_file

_FOR_PROGRAMS = {
    "-p": 0,
    "--verbose": 0,
    "--include-partial-messages": 0,
    "--replay-user-messages": 0,
    "--output-format": 1,
    "--input-format": 1,
    "--permission-mode": 1,
    "--permission-prompt-tool": 1,
}
"""Flags to drop in its UI, each with the number of words that follow it. The user answers its questions there."""
_NEW, _RESUMED = "--session-id", "--resume"
_OWN_WORDS = ("<command-", "<local-command-", "[Request interrupted")
"""Prefixes of the program's own text in user messages."""


class ClaudeInteractive:
    def command(self, start: Start) -> Command:
        command = child_command(start)
        argv = _without(command.argv, _FOR_PROGRAMS)
        if rules := start.meta.permissions:  # the UI asks about these calls even if the preset lists the tools
            argv = _without(argv, {"--allowedTools": 1} if rules.ask or rules.deny else {})
        if _NEW in argv and self.conversation(start):  # the agent was ended before it reported its session
            argv[argv.index(_NEW)] = _RESUMED
        return replace(command, argv=tuple(argv), pipe=False)

    def conversation(self, start: Start) -> str | None:
        session_id = start.session_id or start.meta.child_session_id
        return conversation_file(session_id, {**os.environ, **own_variables(os.environ)}) if session_id else None

    def read(self, lines: Iterable[bytes], by: str) -> Said:
        stream = ClaudeStream()
        events: list[Event] = []
        last = ""
        for line in lines:
            entry = decode(line) or {}
            message = mapping(entry.get("message"))
            if entry.get("isSidechain") is True or entry.get("isMeta") is True:
                continue
            match entry.get("type"):
                case "assistant":
                    events += _fed(stream, {"type": "system", "subtype": "init", "model": message.get("model")})
                    events += _fed(stream, {"type": "assistant", "message": message})
                    last = "assistant"
                case "user":
                    text = _message_text(message.get("content"))
                    if text and not text.startswith(_OWN_WORDS):
                        message_id = string(entry.get("uuid"))
                        events.append(Message(id=message_id, state=MessageState.DELIVERED, text=text, by=by))
                    else:
                        seen = {"type": "user", "message": message, "tool_use_result": entry.get("toolUseResult")}
                        events += _fed(stream, seen)
                    last = "user"
                case "system" if entry.get("subtype") == "compact_boundary":
                    events += _fed(stream, {"type": "system", "subtype": "compact_boundary"})
                case _:
                    continue
        facts = replace(stream.facts, silent=False, finished=last == "assistant" and not stream.facts.wants_turn)
        return Said(tuple(events), facts)


def _without(argv: Sequence[str], flags: Mapping[str, int]) -> list[str]:
    """Return the words without these flags and the given number of words after each."""
    words = list(argv)
    kept: list[str] = []
    while words:
        word = words.pop(0)
        if word in flags:
            del words[: flags[word]]
        else:
            kept.append(word)
    return kept


def _message_text(content: object) -> str:
    """Return a user's message; empty if it is a call's result."""
    if any(mapping(block).get("type") == "tool_result" for block in items(content)):
        return ""
    return joined_text(content, CONTENT_LIMIT)[0].strip()


def _fed(stream: ClaudeStream, line: dict[str, Any]) -> list[Event]:
    """Return the events of a line in stream form, without durations, which the conversation does not record."""
    return [
        replace(event, duration_ms=None) if isinstance(event, ToolResult) else event
        for event in stream.feed(msgspec.json.encode(line))
    ]


INTERACTIVE: Interactive = ClaudeInteractive()
