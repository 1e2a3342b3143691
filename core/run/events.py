"""Normalized child events, and the bytes of `events.jsonl`, of which each event is one line.

Durations and limits are never computed from `ts`: it is wall-clock time, for show. `seq` orders.
Annotations are evaluated here, as in `model`.
"""

import re
from collections.abc import Callable
from functools import cache
from typing import Any, cast, get_args

import msgspec
from msgspec import Struct

from ..system.line_file import LineTail
from ..text.decoding import UNDECODABLE, decoder
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
    """The wrapper's."""
    child_pid: Pid
    pid_started: Whole | None = None
    """Start time in clock ticks since boot, as in field 22 of `/proc/<pid>/stat`."""
    child_pid_started: Whole | None = None
    boot_id: str = ""
    """Of which boot these pids are; empty from earlier versions."""
    pid_namespace: str = ""
    attempt: Whole
    max_attempts: Whole


class SessionTold(_Event, frozen=True, kw_only=True, tag="session"):
    """The agent told by which id it keeps the conversation, where that was not known at launch."""

    id: str
    conversation: str | None = None
    """Where it keeps it; None where it does not say so."""


class Baseline(_Event, frozen=True, kw_only=True, tag="baseline"):
    """What the working tree was before the child did anything, in a git repository; to be shown: what is acted on is
    kept outside the checkout.
    """

    root: str = ""
    """Of the working tree; empty where that is not known."""
    prefix: str = ""
    """Where in it the run works, as `services/api`; empty for its root."""
    tree: str = ""
    """Its id; empty where there is none, `note` says why."""
    head: str = ""
    """The commit that was checked out; empty before the first one."""
    branch: str = ""
    note: str = ""


class AssistantText(_Event, frozen=True, kw_only=True, tag="assistant_text"):
    text: str
    partial: bool = False
    """True for what was being written when it was ended, or broke off by itself."""


class Thinking(_Event, frozen=True, kw_only=True, tag="thinking"):
    text: str


class ToolCall(_Event, frozen=True, kw_only=True, tag="tool_call"):
    tool_call_id: str
    tool_name: str
    args: dict[str, Any]
    """At most about `ARGS_LIMIT` characters; where one was cut it ends with `[…truncated…]`."""
    within: str = ""
    """The id of the call whose nested agent made this one."""


class ToolResult(_Event, frozen=True, kw_only=True, tag="tool_result"):
    tool_call_id: str
    tool_name: str
    is_error: bool
    content: str
    truncated: bool = False
    """True when `content` was cut at `CONTENT_LIMIT` characters."""
    exit_code: ExitCode | None = None
    duration_ms: Whole | None = None
    within: str = ""
    """As that of its call."""
    diff: str = ""
    """What an edit has changed, as the agent says it: a unified diff, or the numbered lines of pi before 1.0. At most
    `CONTENT_LIMIT` characters."""


class UsageReported(_Event, frozen=True, kw_only=True, tag="usage"):
    """Of one assistant message, or of what else was used; tokens, and cost in dollars."""

    input: Whole
    output: Whole
    cache_read: Whole
    cache_write: Whole
    cost: Cost
    model: str
    stop_reason: str
    priced: bool = True
    """False where the agent has told no price, or tells it later in a sum."""
    estimated: bool = False
    """Whether the cost is by the user's table, as the agent has told none."""
    counted: bool = True
    """False where the agent has not told all tokens that were used, or none at all."""


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
    """What somebody says to a run; an event for each state. Of an interrupt or a reply that came to nothing, too."""

    id: str
    state: MessageState
    text: str = ""
    """In the first event of a message alone, at most `CONTENT_LIMIT` characters."""
    by: str = ""
    """A session, or a parent agent in words."""
    reason: str = ""
    """Why it was refused, or came too late."""


class Field(Struct, frozen=True, rename="camel", omit_defaults=True):
    """One of a form."""

    name: str
    title: str = ""
    text: str = ""
    """What it is for."""
    choices: tuple[str, ...] = ()
    required: bool = False


class Request(_Event, frozen=True, kw_only=True, tag="request"):
    """What the child asks a person, and waits for; open until the `Decision` of this id, or the end of the attempt."""

    id: str
    """`q1`, `q2`, … in the records; a stream gives the agent's own."""
    kind: RequestKind
    title: str
    """One line, as `wants to run a command`."""
    tool_name: str = ""
    """In the one vocabulary of tools, where there is a word for it: `bash`, `edit`."""
    text: str = ""
    """What is asked, in the agent's words."""
    command: str = ""
    """Exactly as it would be run."""
    cwd: str = ""
    """Where that is not the run's directory."""
    paths: tuple[str, ...] = ()
    diff: str = ""
    """What an edit would change: a unified diff."""
    choices: tuple[str, ...] = ()
    fields: tuple[Field, ...] = ()
    tool_call_id: str = ""
    rule: str = ""
    """By which rule of the run's permissions it is asked; empty where the agent asks by itself."""
    run_rule: str = ""
    """What `ALLOW_RUN` would allow from then on, as a rule; empty where that cannot be had."""
    usual: Verdict | None = None
    """What holds where no rule mentions it: ALLOW for what is asked because of rules alone. None: a person says."""
    missing: int = 0
    """Characters of it that are not kept; then it cannot be allowed."""
    display: str = ""
    """All of it as lines in which every character can be seen; only in the records of one that is marked."""


class Decision(_Event, frozen=True, kw_only=True, tag="decision"):
    """What became of a request, or of a call that a rule decided before anybody was asked."""

    request: str = ""
    """Its id; empty where nobody was asked."""
    verdict: Verdict
    text: str = ""
    """The word that goes with a denial, or the reply."""
    by: str = ""
    """A session or a parent agent in words; `rule`, `timeout` or `agent`."""
    rule: str = ""
    tool_name: str = ""
    subject: str = ""
    """One line: the command, the path."""
    message: str = ""
    """The id of what somebody sent with this decision; empty where nobody did."""


class Interrupted(_Event, frozen=True, kw_only=True, tag="interrupted"):
    """The child's turn was ended; it waits for what is said next."""

    by: str = ""
    message: str = ""
    """The id of the interrupt that somebody sent."""


class TakenOver(_Event, frozen=True, kw_only=True, tag="taken_over"):
    """A person goes on with the conversation in the agent's own program; the child was ended for it."""

    by: str = ""
    message: str = ""
    """The id of the wish that somebody sent."""


class HandedBack(_Event, frozen=True, kw_only=True, tag="handed_back"):
    """The agent's own program has ended; what was said in it stands before this."""

    by: str = ""
    """Who had taken the run over."""


class Check(_Event, frozen=True, kw_only=True, tag="check"):
    """The operator's check of what the run left; what follows the state is known at its end."""

    name: str
    state: CheckState
    exit_code: ExitCode | None = None
    seconds: float = 0.0
    output: str = ""
    """Its end."""
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
"""Characters of a tool result's content that are kept."""

ARGS_LIMIT = 64 * 1024
"""Characters of a tool call's arguments that are kept, their names included."""

_encoder = msgspec.json.Encoder()
_KNOWN_TYPES = frozenset(str(kind.__struct_config__.tag) for kind in get_args(KnownEvent))


@cache
def _decoders() -> tuple[Callable[[bytes], KnownEvent], Callable[[bytes], UnknownEvent]]:
    """Prepare what reads events: half a millisecond that whoever only writes them does without."""
    return decoder(cast("Any", KnownEvent)), decoder(UnknownEvent)


def encode_event(event: Event) -> bytes:
    """Encode one event as a line, with its newline."""
    return _encoder.encode(event) + b"\n"


def decode_event(line: bytes) -> Event | None:
    """Decode one line; None when it is not an event: torn, not JSON, or a known type with a value that does not fit."""
    decode_known, decode_header = _decoders()
    try:
        return decode_known(line)
    except UNDECODABLE:
        pass  # not JSON, of a type that is not known here, or with a value that does not fit
    try:
        header = decode_header(line)
    except UNDECODABLE:
        return None
    return None if header.type in _KNOWN_TYPES else header


_LAST_ESCAPE = rb"(?s)\\(?:u[0-9a-fA-F]{0,4}|.?)$"
_ENDS = (b'[\xe2\x80\xa6]"}', b'[\xe2\x80\xa6]"}}', b'"]}}')
"""What closes a line that was cut within the text of an event, or within an argument of a call."""
_TRIES = 4
"""Escapes that are taken away from the cut end, until what is left is whole."""


def decode_beginning(line: bytes) -> Event | None:
    """Decode an event of which only the beginning is there; None where no text can be made of it."""
    text = line.decode("utf-8", "ignore").encode()
    for _ in range(_TRIES):
        for end in _ENDS:
            if event := decode_event(text + end):
                return event
        escape = re.search(_LAST_ESCAPE, text[-8:])
        text = text[: -len(escape[0])] if escape else text[:-1]
    return None


class EventTail(LineTail):
    """Hands out the events of one run as they are written."""

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
"""Bytes of a line within which its `seq`, its `ts` and the id of its call stand, in this order."""


def line_prefix(kind: type[KnownEvent]) -> bytes:
    """Return how the lines of such events begin, and how no other line does."""
    return b'{"type":"%b"' % str(kind.__struct_config__.tag).encode()


def seq_of_line(line: bytes) -> int:
    """Return an event's number without decoding it; 0 where the line has none."""
    return int(_in_head(rb'"seq":(\d{1,15})', line) or 0)


def ts_of_line(line: bytes) -> str:
    """Return an event's time without decoding it; empty where the line has none."""
    return _in_head(rb'"ts":"([^"\\]{1,40})"', line).decode("ascii", "replace")


def call_id_of_line(line: bytes) -> bytes:
    """Return the bytes by which a call and its result name the call; empty where there are none."""
    return _in_head(rb'("toolCallId":"(?:[^"\\]|\\.)*")', line)


def _in_head(pattern: bytes, line: bytes) -> bytes:
    # Compiled at its first use, by `re.search`: no wrapper and no list of runs looks at lines in this way.
    found = re.search(pattern, line[:_HEAD])
    return found[1] if found else b""


_ERROR_MARKS = (b'"isError":true', line_prefix(ErrorReported), line_prefix(RunEnded))


def may_report_error(lines: bytes) -> bool:
    """Return False where certainly none of these lines reports a failed tool, an error or an end."""
    return any(mark in lines for mark in _ERROR_MARKS)


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
