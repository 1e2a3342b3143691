"""Normalized agent events, and the bytes of `events.jsonl`, one line for each event.

Durations and limits are never computed from `ts`: it is wall-clock time, for display. `seq` orders. Annotations are
evaluated here, as in `model`.
"""

import re
from collections.abc import Callable
from functools import cache
from typing import Any, cast, get_args

import msgspec
from msgspec import Struct

from ..system.line_file import LineTail
from ..text.decoder import UNDECODABLE, decoder
from .changes import CheckResult
from .model import (
    CheckState,
    Cost,
    ExitCode,
    MessageState,
    NoticeLevel,
    Pid,
    RequestKind,
    RunReason,
    RunStatus,
    Verdict,
    WaitsFor,
    Whole,
)


class _Event(Struct, frozen=True, kw_only=True, rename="camel", tag_field="type", omit_defaults=True):
    seq: Whole = 0
    """Position in the run, from 1; 0 until the event is written."""
    ts: str = ""
    """ISO UTC with milliseconds."""


class RunQueued(_Event, frozen=True, kw_only=True, tag="queued"):
    waits_for: WaitsFor = msgspec.field(name="for")


class RunStarted(_Event, frozen=True, kw_only=True, tag="run_started"):
    pid: Pid
    """Pid of the wrapper."""
    child_pid: Pid
    pid_started: Whole | None = None
    """Start time in clock ticks since boot, as in field 22 of `/proc/<pid>/stat`."""
    child_pid_started: Whole | None = None
    boot_id: str = ""
    """The boot that these pids belong to; empty in events of earlier versions."""
    pid_namespace: str = ""
    attempt: Whole
    max_attempts: Whole


class SessionTold(_Event, frozen=True, kw_only=True, tag="session"):
    """The agent reported the id of its conversation, which was unknown at launch."""

    id: str
    conversation: str | None = None
    """Where it keeps the conversation; None if not reported."""


class Baseline(_Event, frozen=True, kw_only=True, tag="baseline"):
    """The working tree before the agent did anything, in a git repository. Only for display: the authoritative record
    is outside the checkout.
    """

    root: str = ""
    """Root of the working tree; empty if unknown."""
    prefix: str = ""
    """The run's directory inside it, such as `services/api`; empty for its root."""
    tree: str = ""
    """Id of the tree; if empty, `note` gives the reason."""
    head: str = ""
    """The checked-out commit; empty before the first one."""
    branch: str = ""
    note: str = ""


class AssistantText(_Event, frozen=True, kw_only=True, tag="assistant_text"):
    text: str
    partial: bool = False
    """Whether the text is incomplete: it was ended or broke off while being written."""


class Thinking(_Event, frozen=True, kw_only=True, tag="thinking"):
    text: str


class ToolCall(_Event, frozen=True, kw_only=True, tag="tool_call"):
    tool_call_id: str
    tool_name: str
    args: dict[str, Any]
    """At most about `ARGS_LIMIT` characters; a cut argument ends with `[…truncated…]`."""
    within: str = ""
    """Id of the call whose nested agent made this one."""


class ToolResult(_Event, frozen=True, kw_only=True, tag="tool_result"):
    tool_call_id: str
    tool_name: str
    is_error: bool
    content: str
    truncated: bool = False
    """Whether `content` was cut at `CONTENT_LIMIT` characters."""
    exit_code: ExitCode | None = None
    duration_ms: Whole | None = None
    within: str = ""
    """As in its call."""
    diff: str = ""
    """The change by an edit, as the agent reports it: a unified diff, or the numbered lines of pi before 1.0. At most
    `CONTENT_LIMIT` characters.
    """


class UsageReported(_Event, frozen=True, kw_only=True, tag="usage"):
    """Usage of one assistant message, or of other work; tokens, and cost in dollars."""

    input: Whole
    output: Whole
    cache_read: Whole
    cache_write: Whole
    cost: Cost
    model: str
    stop_reason: str
    priced: bool = True
    """False if the agent reported no price, or reports it later in a sum."""
    estimated: bool = False
    """Whether the cost comes from the user's table, because the agent reported none."""
    counted: bool = True
    """False if the agent did not report all used tokens, or none."""


class Retry(_Event, frozen=True, kw_only=True, tag="retry"):
    attempt: Whole
    max_attempts: Whole
    delay_ms: Whole
    reason: str


class Notice(_Event, frozen=True, kw_only=True, tag="notice"):
    level: NoticeLevel
    text: str


class ErrorReported(_Event, frozen=True, kw_only=True, tag="error"):
    message: str


class Message(_Event, frozen=True, kw_only=True, tag="message"):
    """A message to a run, an event for each state. Also for an interrupt or a reply that had no effect."""

    id: str
    state: MessageState
    text: str = ""
    """Only in the first event of a message, at most `CONTENT_LIMIT` characters."""
    by: str = ""
    """Its sender: a session, or a parent agent in words."""
    reason: str = ""
    """Why it was refused, or too late."""


class Field(Struct, frozen=True, rename="camel", omit_defaults=True):
    """A field of a form."""

    name: str
    title: str = ""
    text: str = ""
    """Its purpose."""
    choices: tuple[str, ...] = ()
    required: bool = False


class Request(_Event, frozen=True, kw_only=True, tag="request"):
    """A question or permission request that the agent waits on; open until the `Decision` of this id, or the end of the
    attempt.
    """

    id: str
    """`q1`, `q2`, … in the records; in a stream the agent's own id."""
    kind: RequestKind
    title: str
    """One line, such as `wants to run a command`."""
    tool_name: str = ""
    """In subdeck's vocabulary of tools, if it has a word for it: `bash`, `edit`."""
    text: str = ""
    """The request in the agent's words."""
    command: str = ""
    """Exactly as it would run."""
    cwd: str = ""
    """If it is not the run's directory."""
    paths: tuple[str, ...] = ()
    diff: str = ""
    """The change that an edit would make: a unified diff."""
    choices: tuple[str, ...] = ()
    fields: tuple[Field, ...] = ()
    tool_call_id: str = ""
    rule: str = ""
    """The rule of the run's permissions that requires it; empty if the agent asks on its own."""
    run_rule: str = ""
    """The rule that `ALLOW_RUN` would add; empty if it cannot."""
    usual: Verdict | None = None
    """The verdict if no rule matches: ALLOW for a request that exists only because of rules. None: the user decides."""
    missing: int = 0
    """Characters that were not kept; such a request cannot be allowed."""
    display: str = ""
    """The whole request as lines with every character visible; only recorded if the request is marked."""


class Decision(_Event, frozen=True, kw_only=True, tag="decision"):
    """The decision on a request, or on a call that a rule decided without a request."""

    request: str = ""
    """Id of the request; empty without one."""
    verdict: Verdict
    text: str = ""
    """The reason for a denial, or the reply."""
    by: str = ""
    """A session, a parent agent in words, `rule`, `timeout` or `agent`."""
    rule: str = ""
    tool_name: str = ""
    subject: str = ""
    """One line: the command, the path."""
    message: str = ""
    """Id of the message with this decision; empty if none was sent."""


class Interrupted(_Event, frozen=True, kw_only=True, tag="interrupted"):
    """The agent's turn was ended; it waits for a message."""

    by: str = ""
    message: str = ""
    """Id of the interrupt that was sent."""


class TakenOver(_Event, frozen=True, kw_only=True, tag="taken_over"):
    """The user continues the conversation in the agent's own UI; the agent process was ended for it."""

    by: str = ""
    message: str = ""
    """Id of the request that was sent for it."""


class HandedBack(_Event, frozen=True, kw_only=True, tag="handed_back"):
    """The agent's own UI has exited; its conversation precedes this event."""

    by: str = ""
    """Who had opened the run there."""


class Check(_Event, frozen=True, kw_only=True, tag="check"):
    """The user's check of a run's changes; the fields after the state are known at its end."""

    name: str
    state: CheckState
    exit_code: ExitCode | None = None
    seconds: float = 0.0
    output: str = ""
    """The end of its output."""
    note: str = ""
    """Why there is no exit code, in words."""

    @property
    def result(self) -> CheckResult:
        return CheckResult(self.name, self.exit_code, self.seconds, self.output, self.note)


class RunEnded(_Event, frozen=True, kw_only=True, tag="run_ended"):
    status: RunStatus
    reason: RunReason
    mark: str = ""
    """The user's signature of both, for this run."""


class UnknownEvent(Struct, frozen=True, kw_only=True):
    """An event of a type this version does not know."""

    type: str
    seq: Whole = 0
    ts: str = ""


KnownEvent = (
    RunQueued
    | RunStarted
    | SessionTold
    | Baseline
    | AssistantText
    | Thinking
    | ToolCall
    | ToolResult
    | UsageReported
    | Retry
    | Notice
    | ErrorReported
    | Message
    | Request
    | Decision
    | Interrupted
    | TakenOver
    | HandedBack
    | Check
    | RunEnded
)
Event = KnownEvent | UnknownEvent

CONTENT_LIMIT = 64 * 1024
"""Characters kept of a tool result's content."""

ARGS_LIMIT = 64 * 1024
"""Characters kept of a tool call's arguments, including their names."""

_encoder = msgspec.json.Encoder()
_KNOWN_TYPES = frozenset(str(kind.__struct_config__.tag) for kind in get_args(KnownEvent))


@cache
def _decoders() -> tuple[Callable[[bytes], KnownEvent], Callable[[bytes], UnknownEvent]]:
    """Create the decoders on first use: a process that only writes events saves half a millisecond."""
    return decoder(cast("Any", KnownEvent)), decoder(UnknownEvent)


def encode_event(event: Event) -> bytes:
    """Encode one event as a line, with its newline."""
    return _encoder.encode(event) + b"\n"


def decode_event(line: bytes) -> Event | None:
    """Decode one line; None if it is not an event: torn, not JSON, or a known type with an invalid value."""
    decode_known, decode_header = _decoders()
    try:
        return decode_known(line)
    except UNDECODABLE:
        pass  # not JSON, an unknown type, or an invalid value
    try:
        header = decode_header(line)
    except UNDECODABLE:
        return None
    return None if header.type in _KNOWN_TYPES else header


_LAST_ESCAPE = rb"(?s)\\(?:u[0-9a-fA-F]{0,4}|.?)$"
_ENDS = (b'[\xe2\x80\xa6]"}', b'[\xe2\x80\xa6]"}}', b'"]}}')
"""Endings that close a line cut within the text of an event, or within an argument of a call."""
_TRIES = 4
"""Escapes removed from the cut end until the rest is whole."""


def decode_beginning(line: bytes) -> Event | None:
    """Decode an event from its beginning; None if no text can be recovered."""
    text = line.decode("utf-8", "ignore").encode()
    for _ in range(_TRIES):
        for end in _ENDS:
            if event := decode_event(text + end):
                return event
        escape = re.search(_LAST_ESCAPE, text[-8:])
        text = text[: -len(escape[0])] if escape else text[:-1]
    return None


class EventTail(LineTail):
    """Reads the events of one run as they are written."""

    unreadable = 0
    """Lines so far that were not events."""

    def read(self, limit: int | None = None) -> list[Event]:
        """Return the events written since the last call, at most about `limit` bytes of them."""
        events: list[Event] = []
        for line in self.lines(limit):
            event = decode_event(line)
            if event is None:
                self.unreadable += bool(line.strip())
            else:
                events.append(event)
        return events


_HEAD = 4096
"""Bytes of a line that contain its `seq`, its `ts` and the id of its call, in this order."""


def line_prefix(kind: type[KnownEvent]) -> bytes:
    """Return the beginning of such events' lines, which no other line has."""
    return b'{"type":"%b"' % str(kind.__struct_config__.tag).encode()


def seq_of_line(line: bytes) -> int:
    """Return an event's number without decoding it; 0 if the line has none."""
    return int(_in_head(rb'"seq":(\d{1,15})', line) or 0)


def ts_of_line(line: bytes) -> str:
    """Return an event's time without decoding it; empty if the line has none."""
    return _in_head(rb'"ts":"([^"\\]{1,40})"', line).decode("ascii", "replace")


def call_id_of_line(line: bytes) -> bytes:
    """Return the bytes by which a call and its result name the call; empty if there are none."""
    return _in_head(rb'("toolCallId":"(?:[^"\\]|\\.)*")', line)


def _in_head(pattern: bytes, line: bytes) -> bytes:
    # `re.search` compiles the pattern at its first use: neither a wrapper nor a list of runs calls this.
    match = re.search(pattern, line[:_HEAD])
    return match[1] if match else b""


_ERROR_MARKS = (b'"isError":true', line_prefix(ErrorReported), line_prefix(RunEnded))


def may_report_error(lines: bytes) -> bool:
    """Return False if certainly none of these lines reports a failed tool, an error or an end."""
    return any(mark in lines for mark in _ERROR_MARKS)


CUT = "[…truncated…]"
"""Ends a text that was cut, and replaces the items omitted after it."""

_DEPTH = 32
"""Levels of nesting kept."""

_SCALAR = 8
"""Characters counted for a number, a truth value or an empty collection."""


def kept_args(args: dict[str, Any], limit: int) -> dict[str, Any]:
    """Return the arguments, in order, cut to about `limit` characters in all, names included."""
    kept, _ = _kept(args, limit, _DEPTH)
    return kept


def _kept(value: Any, room: int, depth: int) -> tuple[Any, int]:
    """Return the kept part of a value, and the room left after it."""
    if isinstance(value, str):
        return (value, room - len(value)) if len(value) <= room else (value[: max(0, room)] + CUT, 0)
    if not isinstance(value, dict | list):
        return value, room - _SCALAR
    if depth == 0:
        return CUT, room - len(CUT)
    is_list = isinstance(value, list)
    items = enumerate(cast("list[Any]", value)) if is_list else cast("dict[str, Any]", value).items()
    kept: dict[Any, Any] = {}
    room -= _SCALAR
    for name, item in items:
        room -= 0 if isinstance(name, int) else len(name)
        if room <= 0:
            kept["…"] = CUT
            break
        kept[name], room = _kept(item, room, depth - 1)
    return (list(kept.values()) if is_list else kept), room
