"""What was said in an earlier conversation, which a child may inherit, whoever kept it."""

from __future__ import annotations

from collections.abc import Reversible
from typing import Any

from msgspec import Struct


class Text(Struct, frozen=True, tag=True):
    text: str


class Thinking(Struct, frozen=True, tag=True):
    text: str


class ToolUse(Struct, frozen=True, tag=True):
    name: str
    args: dict[str, Any]


class ToolOutput(Struct, frozen=True, tag=True):
    name: str
    text: str
    is_error: bool = False


Block = Text | Thinking | ToolUse | ToolOutput


class Message(Struct, frozen=True):
    role: str
    """Who speaks, as a reader sees it: `user`, `assistant`, `tool`, or what else came into the context (`note`,
    `branch summary`)."""
    blocks: tuple[Block, ...]


class Turn(Struct, frozen=True):
    """What a user said and everything up to the next time."""

    messages: Reversible[Message]
    """In order. May be read from a file one by one: who needs only some takes only those."""


class History(Struct, frozen=True):
    turns: tuple[Turn, ...]
    """The last ones, oldest first; the oldest may begin in the middle, after a summary."""
    summary: str = ""
    """What stands for the part that a compaction replaced; empty without one."""
    model: str = ""
    """`provider/id` in use at the end; empty when the conversation does not say."""
