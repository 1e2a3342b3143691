"""Read the JSON mode of pi 0.73 to 1.5 as normalized events, and detect when the agent has finished.

No single line can make the readers raise.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from typing import Any

from msgspec import Struct

from ...run.events import (
    ARGS_LIMIT,
    CONTENT_LIMIT,
    AssistantText,
    ErrorReported,
    Event,
    Notice,
    Retry,
    Thinking,
    ToolCall,
    ToolResult,
    UsageReported,
    kept_args,
)
from ...run.model import NoticeLevel
from ...run.outcome import FINALIZE_TOOL, fault_of
from ...text.decoder import UNDECODABLE, decoder
from ...text.plain import one_line
from .._diffs import diff_of_pi
from .._figures import MOST_MS, MOST_TRIES, whole
from .._json_lines import decode, error_words, items, joined_text, mapping, string
from .._stream import AgentStream
from ..updates import BEGUN, Updates

_KIND = re.compile(rb'\{"type":"(\w{1,40})"(?:,"message":\{"role":"(\w{1,20})")?')
_UPDATE = b'"assistantMessageEvent":{"type":"'
"""Only the message's usage precedes it, some 300 bytes."""

UPDATES = Updates(
    (b'{"type":"message_update"', b'{"type":"tool_execution_update"'),
    _UPDATE,
    re.compile(
        _UPDATE + rb'text_(?:(?P<start>start)"|delta","contentIndex":\d{1,9},"delta":"' + BEGUN + rb")", re.DOTALL
    ),
)


class _Kind(Struct):
    type: Any = None
    message: Any = None


class _AgentEnd(Struct, rename="camel"):
    will_retry: Any = None


_decode_kind = decoder(_Kind)
_decode_end = decoder(_AgentEnd)


def kind(line: bytes) -> tuple[str, str] | None:
    """Return event type and message role of a line, both possibly empty; None if it is not a JSON object.

    pi writes keys in a fixed order, so the first bytes suffice; a line with another beginning is parsed.
    """
    match = _KIND.match(line)
    if match is not None:
        return match[1].decode(), (match[2] or b"").decode()
    try:
        header = _decode_kind(line)
    except UNDECODABLE:
        return None
    return string(header.type), string(mapping(header.message).get("role"))


def will_retry(line: bytes) -> bool | None:
    """Return whether an `agent_end` announces a retry; None before pi 0.75.4, which does not. Messages are skipped."""
    try:
        value = _decode_end(line).will_retry
    except UNDECODABLE:
        value = True if line.endswith(b'"willRetry":true}') else None
    return value if isinstance(value, bool) else None


# --- the stream ------------------------------------------------------------------------------------------------------

QUIET_AFTER_END = 1.0
"""Seconds. pi before 0.80.4 sends nothing after its last `agent_end`, but a retry or compaction follows at once."""

QUIET_BEFORE_SETTLED = 5.0
"""Seconds. Newer pi sends `agent_settled`; without it, the end counts after this time."""

_BROKEN_OFF = frozenset({"aborted", "error"})
"""Stop reasons of messages whose text was cut off."""

_OF_A_TURN = frozenset({"message_start", "message_end", "tool_execution_start", "tool_execution_end", "agent_end"})
"""Events between a turn's beginning and its end."""

_EXIT_CODE = r"Command exited with code (\d{1,10})\s*\Z"


class PiStream(AgentStream):
    """The stream of one pi process, for one prompt.

    No output can make it raise: unreadable lines are counted, reported once, and skipped.
    """

    updates = UPDATES

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        super().__init__(clock)
        self._fault = ""
        """The error in the arguments of the last structured result call."""
        self._before_compaction: tuple[float | None, bool] | None = None
        self._readers: dict[str, Callable[[dict[str, Any]], list[Event]]] = {
            "session": self._session,
            "agent_start": self._agent_started,
            "agent_settled": self._agent_settled,
            "message_end": self._message_ended,
            "tool_execution_start": self._tool_started,
            "tool_execution_end": self._tool_ended,
            "auto_retry_start": self._retry_started,
            "compaction_start": self._compaction_started,
            "compaction_end": self._compaction_ended,
        }

    def take(self, line: bytes) -> list[Event]:
        name = kind(line)
        if name is None:
            return self.not_understood(line)
        event_type, role = name
        if self.turn_ended and event_type in _OF_A_TURN:
            return []
        if event_type in ("message_start", "message_end") and role not in ("assistant", ""):
            return self.user_said(line) if role == "user" and event_type == "message_end" else []
        if event_type == "agent_end":
            return self._agent_ended(will_retry(line))
        if event_type == "message_start":
            return self.broken_off()
        reader = self._readers.get(event_type)
        if reader is None:
            return []
        fields = decode(line)
        return self.not_understood(line) if fields is None else reader(fields)

    def user_said(self, line: bytes) -> list[Event]:
        """Handle a message of the user."""
        return []

    def _resume(self) -> None:
        self.finished_after = None
        self.turn_ended = False
        self.note(finished=False)

    def _session(self, fields: dict[str, Any]) -> list[Event]:
        self.note(session_id=string(fields.get("id")) or self.facts.session_id)
        return []

    def _agent_started(self, _fields: dict[str, Any]) -> list[Event]:
        self._resume()
        return []

    def _agent_ended(self, announced: bool | None) -> list[Event]:
        self._tools.clear()
        self.turn_ended = True
        events = self.broken_off()
        self.note(finished=announced is not True)
        if announced is None:
            self.finished_after = QUIET_AFTER_END
        else:
            self.finished_after = None if announced else QUIET_BEFORE_SETTLED
        return events

    def _agent_settled(self, fields: dict[str, Any]) -> list[Event]:
        self.finished_after = 0
        aborted = fields.get("aborted") is True
        self.note(finished=True, stop_reason="aborted" if aborted else self.facts.stop_reason)
        return []

    def _message_ended(self, fields: dict[str, Any]) -> list[Event]:
        message = mapping(fields.get("message"))
        if message.get("role") != "assistant":
            return []
        self.writing.clear()
        stop_reason = string(message.get("stopReason"))
        events = self._content(message.get("content"), partial=stop_reason in _BROKEN_OFF)
        model = "/".join(filter(None, (string(message.get("provider")), string(message.get("model")))))
        self.note(stop_reason=stop_reason or None, model=model, error_message=None)
        events += self._paid(message.get("usage"), stop_reason)
        if stop_reason == "error":
            problem = error_words(string(message.get("errorMessage"))) or "the model ended with an error"
            self.note(error_message=problem)
            events.append(ErrorReported(message=problem))
        return events

    def _content(self, content: object, *, partial: bool) -> list[Event]:
        """Read an assistant message's blocks in order, and keep its text if there is any."""
        events: list[Event] = []
        texts: list[str] = []
        called: set[str] = set()
        blocks = [{"type": "text", "text": content}] if isinstance(content, str) else items(content)
        for block in map(mapping, blocks):
            text, thought = string(block.get("text")), string(block.get("thinking"))
            if block.get("type") == "text" and text.strip():
                texts.append(text)
                events.append(AssistantText(text=text, partial=partial))
            elif block.get("type") == "thinking" and thought.strip():
                events.append(Thinking(text=thought))
            elif block.get("type") == "toolCall":
                called.add(string(block.get("name")))
        if texts:
            self.note(final_text="\n\n".join(texts), partial=partial)
        self.note(handing_over=called == {FINALIZE_TOOL})
        return events

    def _paid(self, usage: object, stop_reason: str) -> list[Event]:
        fields, tokens = mapping(usage), self.figures.tokens
        cost = mapping(fields.get("cost")).get("total")
        event = UsageReported(
            input=tokens(fields.get("input")),
            output=tokens(fields.get("output")),
            cache_read=tokens(fields.get("cacheRead")),
            cache_write=tokens(fields.get("cacheWrite")),
            cost=self.figures.dollars(cost),
            model=self.facts.model,
            stop_reason=stop_reason,
            priced=cost is not None,
        )
        return self.used(event)

    def _tool_started(self, fields: dict[str, Any]) -> list[Event]:
        call_id = string(fields.get("toolCallId"))
        self.tool_started(call_id)
        tool_name = string(fields.get("toolName"))
        if tool_name == FINALIZE_TOOL:
            self._fault = fault_of(mapping(fields.get("args")))
        args = kept_args(mapping(fields.get("args")), ARGS_LIMIT)
        return [ToolCall(tool_call_id=call_id, tool_name=tool_name, args=args)]

    def _tool_ended(self, fields: dict[str, Any]) -> list[Event]:
        call_id, tool_name = string(fields.get("toolCallId")), string(fields.get("toolName"))
        result = mapping(fields.get("result"))
        is_error = fields.get("isError") is True
        content, truncated = joined_text(result.get("content"), CONTENT_LIMIT)
        measured, reported = self.tool_ended(call_id), whole(fields.get("durationMs"), MOST_MS)
        duration = measured if reported is None else reported
        if tool_name == FINALIZE_TOOL:
            handed = None if is_error else mapping(result.get("details"))
            self.note(handing_over=self.facts.handing_over and not is_error, finalized=handed or self.facts.finalized)
            if is_error:
                self.note(refused=self._fault or one_line(content, 200) or "it failed")
        return [
            ToolResult(
                tool_call_id=call_id,
                tool_name=tool_name,
                is_error=is_error,
                content=content,
                truncated=truncated,
                exit_code=_exit_code(result, content),
                duration_ms=duration,
                diff=diff_of_pi(mapping(result.get("details"))),
            )
        ]

    def _retry_started(self, fields: dict[str, Any]) -> list[Event]:
        self._resume()
        return [
            Retry(
                attempt=whole(fields.get("attempt"), MOST_TRIES) or 0,
                max_attempts=whole(fields.get("maxAttempts"), MOST_TRIES) or 0,
                delay_ms=whole(fields.get("delayMs"), MOST_MS) or 0,
                reason=error_words(string(fields.get("errorMessage"))),
            )
        ]

    def _compaction_started(self, fields: dict[str, Any]) -> list[Event]:
        """Wait for the compaction; keep an existing answer, because pi 0.73.1 exits during a final compaction."""
        self._before_compaction = (self.finished_after, self.facts.finished)
        self.finished_after = None
        self.note(finished=self.facts.finished and self.facts.stop_reason != "error")
        return [Notice(level=NoticeLevel.INFO, text=f"compacting the conversation{_because(fields.get('reason'))}")]

    def _compaction_ended(self, fields: dict[str, Any]) -> list[Event]:
        if fields.get("willRetry") is True:
            self._resume()
        elif self._before_compaction is not None:
            self.finished_after = self._before_compaction[0]
            self.note(finished=self._before_compaction[1])
        self._before_compaction = None
        problem = error_words(string(fields.get("errorMessage")))
        if problem or fields.get("aborted") is True:
            return [Notice(level=NoticeLevel.WARNING, text=problem or "the compaction was aborted")]
        usage = mapping(fields.get("result")).get("usage")
        paid = self._paid(usage, "compaction") if usage else []
        return [*paid, Notice(level=NoticeLevel.INFO, text="the conversation was compacted")]


def _exit_code(result: dict[str, Any], content: str) -> int | None:
    code = mapping(result.get("structuredContent")).get("exit_code")
    if isinstance(code, int) and not isinstance(code, bool) and abs(code) < 2**31:
        return code
    match = re.search(_EXIT_CODE, content[-200:])
    return int(match[1]) if match else None


def _because(reason: object) -> str:
    word = one_line(string(reason), 40)
    return f" ({word})" if word else ""
