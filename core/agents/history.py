"""An earlier conversation, of any agent, which a run may inherit."""

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
    """The speaker, as shown to a reader: `user`, `assistant`, `tool`, or another source of context (`note`, `branch
    summary`).
    """
    blocks: tuple[Block, ...]


class Turn(Struct, frozen=True):
    """A user's message and everything up to the next one."""

    messages: Reversible[Message]
    """In order. May be read lazily from a file, one by one."""


class History(Struct, frozen=True):
    turns: tuple[Turn, ...]
    """The last turns, oldest first; the oldest may begin in the middle, after a summary."""
    summary: str = ""
    """Replaces the part that a compaction removed; empty without one."""
    model: str = ""
    """`provider/id` in use at the end; empty if unknown."""
