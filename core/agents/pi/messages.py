"""Turn what pi keeps of a message into what a conversation says."""

from __future__ import annotations

from typing import Any

from ..conversation import Block, Message, Text, Thinking, ToolOutput, ToolUse
from .lines import items, mapping, string

_NOTES = frozenset({"custom", "hookMessage"})
"""Roles of what an extension said; version 2 had the second one."""


def message_of(entry: dict[str, Any]) -> Message:
    """Read a `message`, `custom_message` or `branch_summary` entry; what means nothing to a model has no blocks."""
    match entry.get("type"):
        case "custom_message":
            return Message("note", _blocks(entry.get("content")))
        case "branch_summary":
            return Message("branch summary", _blocks(entry.get("summary")))
        case _:
            return _spoken(mapping(entry.get("message")))


def with_content(entry: dict[str, Any], content: object) -> dict[str, Any]:
    """Return an entry as it is after a `context_edit` gave it other content."""
    if entry.get("type") == "message":
        return {**entry, "message": {**mapping(entry.get("message")), "content": content}}
    return {**entry, "content": content}


def _spoken(message: dict[str, Any]) -> Message:
    role, content = string(message.get("role")), message.get("content")
    if role == "toolResult":
        output = "\n".join(block.text for block in _blocks(content) if isinstance(block, Text))
        is_error = message.get("isError") is True
        return Message("tool", (ToolOutput(string(message.get("toolName")) or "tool", output, is_error),))
    if role == "bashExecution":
        return Message("user", _own_command(message))
    return Message("note" if role in _NOTES else role, _blocks(content))


def _own_command(message: dict[str, Any]) -> tuple[Block, ...]:
    """Return a command that the user ran from pi's prompt, unless it was kept from the model."""
    if message.get("excludeFromContext") is True:
        return ()
    failed = message.get("exitCode") not in (0, None)
    return (
        Text(f"Ran `{string(message.get('command'))}`"),
        ToolOutput("bash", string(message.get("output")), failed),
    )


def _blocks(content: object) -> tuple[Block, ...]:
    if isinstance(content, str):
        return (Text(content),)
    return tuple(block for item in items(content) if (block := _block(mapping(item))) is not None)


def _block(block: dict[str, Any]) -> Block | None:
    match block.get("type"):
        case "text":
            return Text(string(block.get("text")))
        case "thinking":
            return Thinking(string(block.get("thinking")))
        case "toolCall":
            return ToolUse(string(block.get("name")) or "tool", mapping(block.get("arguments")))
        case "image":
            return Text("[image]")
        case _:
            return None
