"""Normalized child events and their JSONL codec; one event is one line of `events.jsonl`.

Durations and limits are never computed from `ts`: it is wall-clock time, for show. `seq` orders.
"""

from __future__ import annotations

from typing import Any, cast

import msgspec
from msgspec import Struct

from .model import NoticeLevel, RunReason, RunStatus, WaitsFor


class _Event(Struct, frozen=True, kw_only=True, rename="camel", tag_field="type", omit_defaults=True):
    seq: int = 0
    """Position in the run, from 1; 0 until the event is written."""
    ts: str = ""
    """ISO UTC with milliseconds."""


class RunQueued(_Event, frozen=True, kw_only=True, tag="queued"):
    waits_for: WaitsFor = msgspec.field(name="for")


class RunStarted(_Event, frozen=True, kw_only=True, tag="run_started"):
    pid: int
    """The wrapper's."""
    child_pid: int
    pid_started: int | None = None
    """Start time in clock ticks since boot, as in field 22 of `/proc/<pid>/stat`."""
    child_pid_started: int | None = None
    attempt: int
    max_attempts: int


class AssistantText(_Event, frozen=True, kw_only=True, tag="assistant_text"):
    text: str


class Thinking(_Event, frozen=True, kw_only=True, tag="thinking"):
    text: str


class ToolCall(_Event, frozen=True, kw_only=True, tag="tool_call"):
    tool_call_id: str
    tool_name: str
    args: dict[str, Any]
    """At most about `ARGS_LIMIT` characters; where one was cut it ends with `[…truncated…]`."""


class ToolResult(_Event, frozen=True, kw_only=True, tag="tool_result"):
    tool_call_id: str
    tool_name: str
    is_error: bool
    content: str
    truncated: bool = False
    """True when `content` was cut at `CONTENT_LIMIT` characters."""
    exit_code: int | None = None
    duration_ms: int | None = None


class UsageReported(_Event, frozen=True, kw_only=True, tag="usage"):
    """Of one assistant message; tokens, and cost in dollars."""

    input: int
    output: int
    cache_read: int
    cache_write: int
    cost: float
    model: str
    stop_reason: str


class Retry(_Event, frozen=True, kw_only=True, tag="retry"):
    attempt: int
    max_attempts: int
    delay_ms: int
    reason: str


class Notice(_Event, frozen=True, kw_only=True, tag="notice"):
    level: NoticeLevel
    text: str


class ErrorReported(_Event, frozen=True, kw_only=True, tag="error"):
    message: str


class RunEnded(_Event, frozen=True, kw_only=True, tag="run_ended"):
    status: RunStatus
    reason: RunReason


class UnknownEvent(Struct, frozen=True, kw_only=True):
    """An event of a type this version does not know."""

    type: str
    seq: int = 0
    ts: str = ""


KnownEvent = (
    RunQueued
    | RunStarted
    | AssistantText
    | Thinking
    | ToolCall
    | ToolResult
    | UsageReported
    | Retry
    | Notice
    | ErrorReported
    | RunEnded
)
Event = KnownEvent | UnknownEvent

CONTENT_LIMIT = 64 * 1024
"""Characters of a tool result's content that are kept."""

ARGS_LIMIT = 64 * 1024
"""Characters of a tool call's arguments that are kept, their names included."""

_encoder = msgspec.json.Encoder()
_decoder: msgspec.json.Decoder[KnownEvent] = msgspec.json.Decoder(KnownEvent)
_header_decoder = msgspec.json.Decoder(UnknownEvent)


def encode_event(event: Event) -> bytes:
    """Encode one event as a line, with its newline."""
    return _encoder.encode(event) + b"\n"


def decode_event(line: bytes) -> Event | None:
    """Decode one line; None when it is no event at all (torn, or not JSON)."""
    try:
        return _decoder.decode(line)
    except msgspec.ValidationError:
        try:
            return _header_decoder.decode(line)
        except msgspec.DecodeError:
            return None
    except (msgspec.DecodeError, RecursionError):
        return None


CUT = "[…truncated…]"
"""Stands at the end of a text that was cut, and for what was left out after it."""

_DEPTH = 32
"""Levels of nesting that are kept."""

_SCALAR = 8
"""Characters that a number, a truth value or an empty collection counts."""


def kept_args(args: dict[str, Any], limit: int) -> dict[str, Any]:
    """Return the arguments with at most about `limit` characters in all, names included; they are kept in order."""
    kept, _ = _kept(args, limit, _DEPTH)
    return kept


def _kept(value: Any, room: int, depth: int) -> tuple[Any, int]:
    """Return what is kept of a value, and the room that is left after it."""
    if isinstance(value, str):
        return (value, room - len(value)) if len(value) <= room else (value[: max(0, room)] + CUT, 0)
    if isinstance(value, dict | list) and depth == 0:
        return CUT, room - len(CUT)
    if isinstance(value, dict):
        return _kept_fields(cast("dict[str, Any]", value), room, depth)
    if isinstance(value, list):
        return _kept_items(cast("list[Any]", value), room, depth)
    return value, room - _SCALAR


def _kept_fields(fields: dict[str, Any], room: int, depth: int) -> tuple[dict[str, Any], int]:
    kept: dict[str, Any] = {}
    room -= _SCALAR
    for name, value in fields.items():
        room -= len(name)
        if room <= 0:
            kept["…"] = CUT
            break
        kept[name], room = _kept(value, room, depth - 1)
    return kept, room


def _kept_items(items: list[Any], room: int, depth: int) -> tuple[list[Any], int]:
    kept: list[Any] = []
    room -= _SCALAR
    for item in items:
        if room <= 0:
            kept.append(CUT)
            break
        value, room = _kept(item, room, depth - 1)
        kept.append(value)
    return kept, room
