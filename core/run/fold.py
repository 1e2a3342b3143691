"""Fold the events of one run into how it stands and what it used; what reads files here only feeds the folds."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Iterator
from typing import Any

from msgspec.structs import replace

from ..paths import EVENTS
from ..system.line_file import LineTail
from ..text.plain import one_line
from .events import (
    AssistantText,
    Baseline,
    Check,
    Decision,
    ErrorReported,
    Event,
    HandedBack,
    Interrupted,
    KnownEvent,
    Message,
    Notice,
    Request,
    Retry,
    RunEnded,
    RunQueued,
    RunStarted,
    SessionTold,
    TakenOver,
    ToolCall,
    ToolResult,
    UnknownEvent,
    UsageReported,
    decode_event,
    line_prefix,
)
from .model import LARGEST, CheckState, MessageState, NoticeLevel, Usage, WaitsFor
from .outcome import FINALIZE_TOOL
from .progress import ProgressFormatter

ACTIVITY_LENGTH = 200
"""Characters of what a run does now."""
NESTED = "subagents"
"""Stands where a message says why it ended: for what nested agents used, in a sum. A price that it has is that of all
before it."""
UNCOUNTED_STOPS = frozenset({"error", "compaction", NESTED})
"""Stop reasons of messages that are paid for but are no turn: a failed try, a summary."""


def add_usage(total: Usage, event: UsageReported) -> Usage:
    """Add one assistant message to a run's sums; whoever folds events counts turns as the wrapper does."""
    tokens = event.input + event.output + event.cache_read + event.cache_write
    unknown = max(tokens * (not event.priced), int(not event.counted))
    unpriced = total.unpriced + unknown
    is_sum = event.priced and event.stop_reason == NESTED
    before = max(0.0, total.cost - total.estimated) if is_sum else total.cost
    return Usage(
        input=min(total.input + event.input, LARGEST),
        output=min(total.output + event.output, LARGEST),
        cache_read=min(total.cache_read + event.cache_read, LARGEST),
        cache_write=min(total.cache_write + event.cache_write, LARGEST),
        cost=min(before + event.cost, LARGEST),
        turns=total.turns + (event.stop_reason not in UNCOUNTED_STOPS),
        tool_uses=total.tool_uses,
        unpriced=0 if is_sum else min(unpriced, LARGEST),
        estimated=0.0 if is_sum else min(total.estimated + event.cost * event.estimated, LARGEST),
        uncounted=total.uncounted + (not event.counted),
    )


class Fold:
    """Takes events in their order; everything it has is as of the last one."""

    def __init__(self) -> None:
        self._formatter = ProgressFormatter()
        self.last_seq = 0
        self.last_event_at: str | None = None
        self.started_at: str | None = None
        """Of the first attempt."""
        self.child: RunStarted | None = None
        """Says which process the last attempt is."""
        self.attempt = 1
        self.session: SessionTold | None = None
        """Where the agent keeps the conversation, as it told last."""
        self.baseline: Baseline | None = None
        """What the working tree was before; None outside git, and as long as nobody has looked."""
        self.check: Check | None = None
        """How far the check of the run has come; None before, and where there is none."""
        self.waits_for: WaitsFor | None = None
        self.activity = ""
        self.is_retrying = False
        """Whether the last event is that something is tried again; `activity` says what."""
        self._texts: list[str] = []
        """Those of `final_text`, which are joined only where somebody asks for that."""
        self.partial: bool = False
        """Whether `final_text` breaks off."""
        self._goes_on = False
        """Whether another text would belong to the same message as `final_text`."""
        self.said_seq = 0
        """Of the last event that begins or ends a message: what is being written comes after it."""
        self.stop_reason: str | None = None
        self.error: str | None = None
        """Of the last message, as is `stop_reason`."""
        self.handed_over: dict[str, Any] | None = None
        """What the child handed to its last successful call of `FINALIZE_TOOL` in this attempt."""
        self._handing: ToolCall | None = None
        """Such a call, of which the result is not known yet."""
        self.usage = Usage()
        self.model = ""
        self.requests: dict[str, Request] = {}
        """What the child asks and nobody has replied to, by its id, oldest first."""
        self.interrupted = False
        """Whether its turn was ended and it has done nothing since."""
        self.hand: TakenOver | HandedBack | None = None
        """That a person has taken the run over, or has handed it back and not said yet how it goes on."""
        self.undelivered: dict[str, Message] = {}
        """Messages that the wrapper has and that the child has not shown, by their id, in their order."""
        self.warnings: tuple[str, ...] = ()
        self.ended: RunEnded | None = None

    def apply(self, event: Event) -> None:
        self.last_seq = event.seq
        self.last_event_at = event.ts
        self.is_retrying = isinstance(event, Retry)
        if isinstance(event, UnknownEvent):
            return
        if text := self._formatter.text(event):
            self.activity = one_line(text, ACTIVITY_LENGTH)
        match event:
            case RunQueued():
                self.waits_for = event.waits_for
            case RunStarted():
                self.started_at = self.started_at or event.ts
                self.child = event
                self.attempt = event.attempt
                self.handed_over = None
                self.requests.clear()
                self.interrupted = False
                self.hand = None
                self._begin_message(event.seq)
            case TakenOver() | HandedBack():
                self.started_at = self.started_at or event.ts
                self.interrupted = False
                self.hand = event
            case SessionTold():
                self.session = event
            case Baseline():
                self.baseline = event
            case Check():
                self.check = event
                self.requests.clear()
                self.interrupted = False
                self.hand = None
            case Notice(level=NoticeLevel.WARNING):
                self.warnings = (*self.warnings[-19:], event.text)
            case RunEnded():
                self.ended = event
                self.requests.clear()
                self.interrupted = False
                self.hand = None
            case Message() | Request() | Decision() | Interrupted():
                self._apply_talk(event)
            case _:
                self._apply_said(event)

    @property
    def final_text(self) -> str | None:
        """The last message of the agent that has text."""
        return "\n\n".join(self._texts) or None

    @property
    def checking(self) -> Check | None:
        """The check that is at work; None where none is."""
        return self.check if self.check and self.check.state is CheckState.STARTED and not self.ended else None

    def _apply_talk(self, event: Message | Request | Decision | Interrupted) -> None:
        match event:
            case Message(state=MessageState.ACCEPTED):
                self.undelivered[event.id] = event
            case Message():
                self.undelivered.pop(event.id, None)
                self.interrupted &= event.state is not MessageState.DELIVERED
            case Request():
                self.requests[event.id] = event
            case Decision():
                self.requests.pop(event.request, None)
            case Interrupted():
                self.interrupted = True

    def _apply_said(self, event: KnownEvent) -> None:
        """Take an event of the conversation."""
        self.interrupted &= isinstance(event, ErrorReported)
        match event:
            case AssistantText() if event.text.strip():
                if not (self._goes_on and event.partial == self.partial):
                    self._texts = []
                self._texts.append(event.text)
                self.partial, self._goes_on = event.partial, True
                self.said_seq = event.seq
            case ToolCall():
                self.usage = replace(self.usage, tool_uses=self.usage.tool_uses + 1)
                if event.tool_name == FINALIZE_TOOL:
                    self._handing = event
            case ToolResult(is_error=False) if self._handing and event.tool_call_id == self._handing.tool_call_id:
                self.handed_over = self._handing.args
            case ErrorReported():
                self.error = event.message
            case UsageReported():
                self.usage = add_usage(self.usage, event)
                self.model = event.model or self.model
                if event.stop_reason not in ("compaction", NESTED):
                    self.stop_reason, self.error = event.stop_reason or None, None
                self._begin_message(event.seq)
            case _:
                pass

    def _begin_message(self, seq: int) -> None:
        self._goes_on = False
        self.said_seq = seq


class OpenCalls:
    """The tool calls of a run that have no result yet."""

    def __init__(self) -> None:
        self._calls: dict[str, ToolCall] = {}
        """By their id, which an agent may use again later; oldest first."""

    def __bool__(self) -> bool:
        return bool(self._calls)

    def __iter__(self) -> Iterator[ToolCall]:
        return iter(self._calls.values())

    def apply(self, event: Event) -> list[ToolCall]:
        """Take the next event; return the calls that end with it, by their result or because none can come any more."""
        match event:
            case ToolCall(tool_call_id=call_id):
                ended = self._pop(call_id)
                self._calls[call_id] = event
                return ended
            case ToolResult(tool_call_id=call_id):
                return self._pop(call_id)
            case RunStarted() | RunEnded():
                ended = list(self)
                self._calls.clear()
                return ended
            case _:
                return []

    def _pop(self, call_id: str) -> list[ToolCall]:
        call = self._calls.pop(call_id, None)
        return [call] if call else []


KEPT = 5000
"""Messages that are kept, the newest ones; all others are in the sums."""
PIECE = 16 * 1024 * 1024
"""Bytes read at a time, so that whoever waits can be told how far it is."""
_USAGE, _CALL = line_prefix(UsageReported), line_prefix(ToolCall)


class UsageReader:
    """Reads what each message of a run used as its events grow: each byte once, decoding only what is about usage."""

    def __init__(self, run_dir: str) -> None:
        self._path = os.path.join(run_dir, EVENTS)
        self._tail = LineTail(self._path)
        self.newest: deque[UsageReported] = deque(maxlen=KEPT)
        self.messages = 0
        """All that were read, those that are not kept too."""
        self.total = Usage()

    def read(self) -> bool:
        """Take in the next piece; return whether there is more."""
        before, tool_uses = self._tail.offset, 0
        for line in self._tail.lines(PIECE):
            if line.startswith(_CALL):
                tool_uses += 1
            elif line.startswith(_USAGE) and isinstance(event := decode_event(line), UsageReported):
                self.messages += 1
                self.total = add_usage(self.total, event)
                self.newest.append(event)
        self.total = replace(self.total, tool_uses=self.total.tool_uses + tool_uses)
        return self._tail.offset - before >= PIECE

    @property
    def progress(self) -> float:
        """How much of the file was read, 0 to 1."""
        try:
            size = os.stat(self._path).st_size
        except OSError:
            return 1.0
        return min(1.0, self._tail.offset / size) if size else 1.0
