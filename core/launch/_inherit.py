"""Passes a parent's conversation to an agent: how much of it, and in what form.

Verbatim compaction, as in the README of pi-dashboard-subagents: no model is used and nothing is reworded. Content that
is too old or too long is replaced by a placeholder.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

from msgspec import Struct

from ..agents.history import Block, History, Message, Text, Thinking, ToolOutput, ToolUse, Turn
from ..config.settings import Inheritance
from ..text.decoder import encode_shown

TOOL_OUTPUT_OMITTED = "[…tool output omitted, see earlier message]"
THINKING_OMITTED = "[…thinking omitted…]"
TRUNCATED = "[…truncated…]"

LARGE_TEXT = 2 * 1024
"""Characters; a longer old text keeps its first `KEPT_TEXT`."""

KEPT_TEXT = 1536

_CUT = f"\n\n{TRUNCATED}\n\n"
_TAG = r"(?i)<(?=\s*/?\s*parent-context\b)"


class Inherited(Struct, frozen=True):
    text: str
    turns: int
    chars: int


def inherit_from(path: str, inheritance: Inheritance) -> Inherited:
    """Compact the conversation in a pi session file. Raises SessionFileError."""
    from ..agents.pi.session import open_history  # imports the session reader; most launches have no parent

    with open_history(path, inheritance.recent_turns) as conversation:
        return compact(conversation, inheritance)


def compact(conversation: History, inheritance: Inheritance) -> Inherited:
    """Keep the last turns, thin out turns beyond the tool-output window, and cut the middle if the text is still too
    long.

    The summary is not a turn: it comes first, in full, and only the cut can shorten it.
    """
    turns = conversation.turns[-inheritance.recent_turns :] if inheritance.recent_turns > 0 else ()
    parts = _Parts(conversation.summary, turns, inheritance.tool_output_window)
    text = _capped(parts, inheritance.max_chars)
    return Inherited(text, len(turns), len(text))


def prompt_with_context(inherited: Inherited, task: str) -> str:
    """Put the inherited text before the task, which is unchanged."""
    if not inherited.text:
        return task
    return f"<parent-context>\n{inherited.text}\n</parent-context>\n\n{task}"


class _Parts:
    """The texts of a conversation by message, readable from either end, so that a long middle is never read."""

    def __init__(self, summary: str, turns: Sequence[Turn], window: int) -> None:
        self._summary = [_kept_inside(f"[summary of the earlier conversation]\n{summary}")] if summary.strip() else []
        first_whole = len(turns) - max(0, window)
        self._turns = [(turn, index >= first_whole) for index, turn in enumerate(turns)]

    def __iter__(self) -> Iterator[str]:
        yield from self._summary
        for turn, whole in self._turns:
            yield from _rendered(turn.messages, whole)

    def __reversed__(self) -> Iterator[str]:
        for turn, whole in reversed(self._turns):
            yield from _rendered(reversed(turn.messages), whole)
        yield from self._summary


def _rendered(messages: Iterable[Message], whole: bool) -> Iterator[str]:
    for message in messages:
        if text := _message(message, whole):
            yield _kept_inside(text)


def _message(message: Message, whole: bool) -> str:
    texts = [text for text in (_block(block, whole) for block in message.blocks) if text.strip()]
    if not texts:
        return ""
    return "\n".join(texts) if message.role == "tool" else "\n".join((f"[{message.role}]", *texts))


def _block(block: Block, whole: bool) -> str:
    match block:
        case Text():
            return block.text if whole or len(block.text) <= LARGE_TEXT else block.text[:KEPT_TEXT] + TRUNCATED
        case Thinking() if whole:
            return f"[thinking] {block.text}" if block.text.strip() else ""
        case Thinking():
            return THINKING_OMITTED
        case ToolUse():
            arguments = f" {encode_shown(block.args)}" if whole else ""
            return f"[tool_use: {block.name}]{arguments}"
        case ToolOutput() if whole:
            return f"[tool_result: {block.name}{', error' if block.is_error else ''}]\n{block.text}"
        case ToolOutput():
            return TOOL_OUTPUT_OMITTED


def _kept_inside(text: str) -> str:
    """Escape tags that would close or open the parent context."""
    return re.sub(_TAG, r"<\\", text)


def _capped(parts: _Parts, limit: int) -> str:
    """Join the parts; beyond `limit` characters, keep the beginning and the end. The limit includes the mark between
    them.
    """
    beginning = "\n\n".join(_enough(parts, limit))
    if len(beginning) <= limit:
        return beginning
    kept = limit - len(_CUT)
    if kept < 2:
        return beginning[: max(0, limit)]
    ending = "\n\n".join(reversed([*_enough(reversed(parts), limit, from_end=True)]))
    return beginning[: kept - kept // 2] + _CUT + ending[-(kept // 2) :]


def _enough(parts: Iterable[str], limit: int, *, from_end: bool = False) -> Iterator[str]:
    """Yield parts until they exceed `limit` characters; a single longer part is shortened to just above it."""
    there = 0
    for part in parts:
        yield part[-limit - 1 :] if from_end else part[: limit + 1]
        there += len(part) + len("\n\n")
        if there > limit + len("\n\n"):
            return
