"""Shared by both streams of Codex: handling items, and counting tokens."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from ...run.events import AssistantText, ErrorReported, Event, Notice, Thinking, UsageReported
from ...run.model import NoticeLevel
from ...run.outcome import FINALIZE_TOOL, fault_of
from ...text.plain import one_line
from .._json_lines import mapping, string
from .._stream import AgentStream
from ._items import CUT_OFF, Tokens, fault_words, thought, tool_call, tool_result

_NEEDS_APPROVAL = "requires approval"
"""Part of Codex's message about a call that it denied because it cannot ask."""


class CodexStream(AgentStream):
    """Handles items with the app-server's names."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        super().__init__(clock)
        self._called: set[str] = set()
        """Tools called since the last token count, which means by one message of the model."""
        self._handed_over = False
        self._is_open = False
        """Whether the last message may still turn out to be cut off."""

    def item_started(self, item: dict[str, Any]) -> list[Event]:
        self._is_open = False
        if item.get("type") == "agentMessage":
            return self.broken_off()
        call = tool_call(item)
        if call is None:
            return []
        self.tool_started(call.tool_call_id)
        self._called.add(call.tool_name)
        return [call]

    def item_completed(self, item: dict[str, Any]) -> list[Event]:
        match item.get("type"):
            case "agentMessage":
                return self._message_ended(string(item.get("text")))
            case "reasoning":
                thinking = thought(item)
                return [Thinking(text=thinking)] if thinking.strip() else []
            case "error":
                return warning(string(item.get("message")))
            case "contextCompaction":
                return [Notice(level=NoticeLevel.INFO, text="the conversation was compacted")]
            case _:
                return self._tool_ended(item)

    def _message_ended(self, text: str) -> list[Event]:
        self.writing.clear()
        if not text.strip():
            return []
        self._is_open = True
        self.note(final_text=text, partial=False)
        return [AssistantText(text=text)]

    def _tool_ended(self, item: dict[str, Any]) -> list[Event]:
        call = tool_call(item)
        if call is None:
            return []
        started: list[Event] = [] if call.tool_call_id in self._tools else self.item_started(item)
        result = tool_result(item, call.tool_name, self.tool_ended(call.tool_call_id))
        if call.tool_name == FINALIZE_TOOL and item.get("type") == "dynamicToolCall":
            self._handed_in(mapping(item.get("arguments")), result.is_error)
        if not _was_denied(item, result.content):
            return [*started, result]
        self.denied(one_line(call.tool_name, 100), is_reported=True)
        return [*started, result, *warning(f"{call.tool_name} was denied: {result.content}")]

    def _handed_in(self, payload: dict[str, Any], is_error: bool) -> None:
        if is_error:
            self.note(refused=fault_of(payload) or "it failed")
        else:
            self.note(finalized=payload)
        self._handed_over = not is_error

    def paid(self, tokens: Tokens, *, is_nested: bool = False, is_counted: bool = True) -> list[Event]:
        """Report the usage of one message, maybe of an agent that Codex started; Codex reports no prices."""
        stop_reason = "toolUse" if self._called and not is_nested else "stop"
        event = UsageReported(
            input=tokens.uncached,
            output=tokens.output,
            cache_read=tokens.cached,
            cache_write=tokens.cache_write,
            cost=0.0,
            model=self.facts.model,
            stop_reason=stop_reason,
            priced=False,
            counted=is_counted,
        )
        events = self.used(event)
        if not is_nested and not self.turn_ended:
            self._is_open = False
            handing_over = self._handed_over and self._called == {FINALIZE_TOOL}
            self.note(stop_reason=stop_reason, handing_over=handing_over, calling=False)
            self._called.clear()
            self._handed_over = False
        return events

    def broke_off(self) -> None:
        """Mark the last message as partial, because the connection to the model broke."""
        if self._is_open:
            self.note(partial=True)
        self._is_open = False

    def failed(self, error: dict[str, Any], **changes: Any) -> ErrorReported:
        """Handle the error of a failed turn; an answer cut off by the length limit is kept."""
        words = fault_words(error)
        is_cut_off = CUT_OFF in words
        self.broke_off()
        partial = self.facts.partial or (is_cut_off and self.facts.final_text is not None)
        stop_reason = "length" if is_cut_off else "error"
        self.finished(stop_reason=stop_reason, error_message=words, partial=partial, **changes)
        return ErrorReported(message=words)

    def finished(self, **changes: Any) -> None:
        """Handle the end of Codex's turn."""
        self._tools.clear()
        self.turn_ended = True
        self.finished_after = 0
        self.is_stdin_done = True
        self.note(finished=True, **changes)


def warning(text: str) -> list[Event]:
    return [Notice(level=NoticeLevel.WARNING, text=one_line(text, 600))] if text.strip() else []


def _was_denied(item: dict[str, Any], content: str) -> bool:
    return item.get("type") == "mcpToolCall" and item.get("status") == "failed" and _NEEDS_APPROVAL in content
