"""The lines of a run's files as the lines of a transcript; pure."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from typing import NamedTuple

from msgspec.structs import replace

from ...core import paths
from ...core.run.describe import GLYPHS
from ...core.run.edits import DiffLine, diff_of, diff_of_call, diff_to_decide, effort, margins, may_be_edit
from ...core.run.events import (
    AssistantText,
    Baseline,
    Check,
    Decision,
    ErrorReported,
    Event,
    Message,
    Notice,
    Request,
    Retry,
    RunEnded,
    RunQueued,
    RunStarted,
    SessionTold,
    Thinking,
    ToolCall,
    ToolResult,
    UnknownEvent,
    UsageReported,
    decode_beginning,
    decode_event,
)
from ...core.run.model import OPERATOR, SENDER, CheckState, MessageState, NoticeLevel, Verdict
from ...core.run.progress import ProgressFormatter, arguments_text
from ...core.run.requests import decision_line, message_text, request_line, request_text
from ...core.system.line_file import HELD
from ...core.text.decoder import UNDECODABLE, indented
from ...core.text.plain import one_line, plain
from ..text.format import local_time

TEXT_LIMIT = 200_000
"""Characters of one line that are laid out; its file has all of them."""
BODY_LIMIT = 20_000
"""The same for the body of an opened line."""

QUICK = 10_000
"""Pairs of lines that can be compared at once, in a few milliseconds."""

REQUEST_LIMIT = 300
"""Characters of a request's line."""

THINKING_LIMIT = 300
"""Characters of a folded thinking line."""

_STARTED = "started, attempt {} of {}"
_EXIT_CODE = "exit code {}"
_DURATION = "{} ms"
_NO_OUTPUT = "(no output)"
_KEPT_NO_MORE = "[the rest was not saved]"
_LEFT_OUT = "[… {} more characters, not shown here]"
LINE_TEXTS = (_STARTED, _EXIT_CODE, _DURATION, _NO_OUTPUT, _KEPT_NO_MORE)
"""Texts added to those of the progress formatter."""

_GLYPHS = {status.value: glyph for status, glyph in GLYPHS.items()}


class View(StrEnum):
    """A way to show a run."""

    READABLE = "readable"
    """The events in words."""
    RAW = "raw"
    """The events as stored in their file."""
    STDERR = "stderr"
    """The agent's stderr."""

    @property
    def file(self) -> str:
        return paths.STDERR if self is View.STDERR else paths.EVENTS

    @property
    def indent(self) -> int:
        """Cells in front of its lines: for the cursor and the time."""
        return 11 if self is View.READABLE else 2

    @property
    def counted(self) -> str:
        """The name of one of its lines."""
        return "line" if self is View.STDERR else "event"


class Kind(StrEnum):
    """The kind of a line, which sets its colour."""

    TEXT = "text"
    TOOL = "tool"
    RESULT = "result"
    NOTE = "note"
    """Of the run itself: started, retried."""
    WARNING = "warning"
    ERROR = "error"
    ENDED = "ended"
    MESSAGE = "message"
    """A message to the run."""
    REQUEST = "request"
    """A request of the agent."""
    THINKING = "thinking"
    LIVE = "live"
    """The sentence being written."""
    RAW = "raw"
    """A line of a file as it is."""


class TranscriptEntry(NamedTuple):
    time: str
    kind: Kind
    text: str
    opens: bool = False
    """Whether opening it shows more."""
    offset: int = 0
    """Offset of its line in the file."""
    body: Sequence[BodyLine] | None = None
    """The lines below it while it is open."""
    message: str = ""
    """Id of a message to the run."""
    said_at: str = ""
    """Its time, as in the event."""
    settles: str = ""
    """Id of the message whose outcome this line reports."""


class BodyLine(NamedTuple):
    """A line of an opened line's body."""

    text: str
    margin: str = ""
    """Number and sign of a diff line; not part of the text."""
    sign: str = ""
    """Only the sign."""


UNREADABLE = TranscriptEntry("", Kind.WARNING, "(unreadable line; the raw view shows it)")
"""Shown for a line that is not an event."""


def entry_of_line(view: str, line: bytes, formatter: ProgressFormatter) -> TranscriptEntry | None:
    """Return the entry of a line in a view; None if the view does not show it. Any thread may call it."""
    match view:
        case View.READABLE:
            event = event_of(line)
            if event is None:
                return UNREADABLE if line.strip() else None
            return entry_of(event, formatter)
        case View.RAW:
            shown = one_line(line.decode("utf-8", "replace"))
            return TranscriptEntry("", Kind.RAW, shown, opens=True) if shown else None
        case _:
            return TranscriptEntry("", Kind.RAW, plain(line.decode("utf-8", "replace").rpartition("\r")[2]))


def event_of(line: bytes) -> Event | None:
    """Decode a line, or the available beginning of a cut one."""
    event = decode_event(line)
    return decode_beginning(line) if event is None and len(line) >= HELD else event


def entry_of(event: Event, formatter: ProgressFormatter) -> TranscriptEntry | None:
    """Return an event as a line or a paragraph; None if it has no text for the user."""
    if isinstance(event, Thinking):
        return _thinking(event)
    if isinstance(event, Message | Request | Decision):
        return _talk(event, formatter)
    text = formatter.text(event) or _own_words(event)
    if not text or not (shown := text.strip("\n")):
        return None
    match event:
        case ToolResult(is_error=is_error):
            shown = f"  {'✗ ' if is_error else ''}{shown}"
        case RunEnded(status=status) if status in _GLYPHS:
            shown = f"{_GLYPHS[status]} {shown}"
        case ErrorReported():
            shown = f"✗ {shown}"
        case _:
            pass
    return TranscriptEntry(local_time(event.ts), _kind(event), shown, isinstance(event, ToolCall | ToolResult))


def _talk(event: Message | Request | Decision, formatter: ProgressFormatter) -> TranscriptEntry | None:
    time = local_time(event.ts)
    match event:
        case Message(state=MessageState.ACCEPTED):
            by = "you" if event.by == OPERATOR else one_line(event.by, SENDER) or "someone"
            text = plain(event.text).strip("\n")
            return TranscriptEntry(time, Kind.MESSAGE, f"▸ {by}: {text}", message=event.id, said_at=event.ts)
        case Message():
            kind = Kind.NOTE if event.state is MessageState.DELIVERED else Kind.WARNING
            return TranscriptEntry(time, kind, message_text(event), settles=event.id)
        case Request():
            asked = request_line(event, REQUEST_LIMIT, formatter.cwd() if event.paths else "")
            return TranscriptEntry(time, Kind.REQUEST, f"? {asked}", opens=True)
        case Decision():
            kind = Kind.WARNING if event.verdict is Verdict.DENY else Kind.NOTE
            text = decision_line(event)
            return TranscriptEntry(time, kind, text) if text else None


def _thinking(event: Thinking) -> TranscriptEntry | None:
    """Fold thinking to its first line."""
    text = event.text[:TEXT_LIMIT].strip()
    first, _, rest = text.partition("\n")
    if not (shown := one_line(first, THINKING_LIMIT)):
        return None
    count = event.text.strip().count("\n") + 1
    lines = f"({count} lines)" if rest else "(1 line)"
    return TranscriptEntry(local_time(event.ts), Kind.THINKING, f"▸ thinking {lines}  {shown}", opens=True)


def _own_words(event: Event) -> str:
    """Return the text of events that the progress text omits: about the run, not the agent's work."""
    match event:
        case RunStarted(attempt=attempt, max_attempts=most):
            return _STARTED.format(attempt, most) if most > 1 else "started"
        case SessionTold(id=session):
            return f"agent session {one_line(session, 60)}"
        case UnknownEvent(type=name):
            return f"({one_line(name, 60)})"
        case _:
            return ""


def _kind(event: Event) -> Kind:
    match event:
        case ToolCall():
            return Kind.TOOL
        case ToolResult(is_error=is_error):
            return Kind.ERROR if is_error else Kind.RESULT
        case ErrorReported():
            return Kind.ERROR
        case Notice(level=NoticeLevel.WARNING) | Retry():
            return Kind.WARNING
        case Check(state=CheckState.ENDED):
            return Kind.RESULT if event.result.passed else Kind.WARNING
        case (
            Check()
            | RunQueued()
            | RunStarted()
            | SessionTold()
            | Baseline()
            | Notice()
            | UsageReported()
            | UnknownEvent()
        ):
            return Kind.NOTE
        case RunEnded():
            return Kind.ENDED
        case _:
            return Kind.TEXT


def body_of_line(view: str, line: bytes, result: ToolResult | None = None) -> list[BodyLine]:
    """Return the body that opening a line shows; an edit uses its result, if known."""
    return text_body(_raw_body(line)) if view == View.RAW else body_of(event_of(line), result)


def is_laborious(line: bytes) -> bool:
    """Return whether the body of a line takes too long to make to wait for it."""
    return may_be_edit(line) and (event := event_of(line)) is not None and effort(event) > QUICK


def text_body(text: str) -> list[BodyLine]:
    return [BodyLine(line) for line in text.split("\n")]


def body_text(body: Sequence[BodyLine]) -> str:
    return "\n".join(f"{line.margin}{line.text}" for line in body)


def shortened_body(body: Sequence[BodyLine], limit: int) -> Sequence[BodyLine]:
    """Return at most `limit` characters of a body, with the number of omitted ones."""
    omitted = sum(len(line.text) + 1 for line in body) - 1 - limit
    if omitted <= 0:
        return body
    kept: list[BodyLine] = []
    for line in body:
        kept.append(line._replace(text=line.text[:limit]))
        limit -= len(line.text) + 1
        if limit < 0:
            break
    return [*kept, BodyLine(_LEFT_OUT.format(omitted))]


def shortened(text: str, limit: int) -> str:
    """Return at most `limit` characters of a text, with the number of omitted ones."""
    omitted = len(text) - limit
    return text if omitted <= 0 else f"{text[:limit]}\n{_LEFT_OUT.format(omitted)}"


def full_text(view: str, line: bytes, formatter: ProgressFormatter) -> str:
    """Return the whole text of a line and its body, of any length, as plain text."""
    event = event_of(line) if view == View.READABLE else None
    if event is None:
        return plain(line.decode("utf-8", "replace"))
    if isinstance(event, AssistantText | Thinking):
        return plain(event.text).strip("\n")
    entry = entry_of(event, formatter)
    return "\n".join(filter(None, (entry.text.strip(), body_text(body_of(event))))) if entry else ""


def body_of(event: Event | None, result: ToolResult | None = None) -> list[BodyLine]:
    """Return the body that opening an event shows."""
    match event:
        case Thinking(text=text):
            return text_body(plain(text).strip("\n"))
        case ToolCall():
            return numbered(diff_of_call(event, result)) or text_body(arguments_text(event))
        case ToolResult():
            return [*text_body(_result(event)), *numbered(diff_of(event))]
        case Request():
            return [*text_body(request_text(replace(event, diff=""))), *numbered(diff_to_decide(event.diff))]
        case _:
            return []


def numbered(diff: Sequence[DiffLine]) -> list[BodyLine]:
    """Add line numbers, if known, and signs to the lines of a diff."""
    return [BodyLine(line.text, margin, line.sign) for line, margin in zip(diff, margins(diff), strict=True)]


def _result(event: ToolResult) -> str:
    facts = [
        _EXIT_CODE.format(event.exit_code) if event.exit_code is not None else "",
        _DURATION.format(event.duration_ms) if event.duration_ms is not None else "",
    ]
    head = " · ".join(filter(None, facts))
    content = plain(event.content).strip("\n").rstrip() or _NO_OUTPUT
    cut = _KEPT_NO_MORE if event.truncated else ""
    return "\n".join(filter(None, (head, content, cut)))


def _raw_body(line: bytes) -> str:
    try:
        return plain(indented(line))
    except UNDECODABLE:
        return plain(line.decode("utf-8", "replace"))
