"""Fold the events of one run into its state and its usage; readers of files here only feed the folds."""

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
"""Characters of a run's current activity."""
NESTED = "subagents"
"""Stop reason of a sum of the usage of nested agents. Its price, if any, also covers all unpriced usage before it."""
UNCOUNTED_STOPS = frozenset({"error", "compaction", NESTED})
"""Stop reasons of messages that are paid for but are not turns: a failed attempt, a summary."""


def add_usage(total: Usage, event: UsageReported) -> Usage:
    """Add one assistant message to a run's sums; every fold counts turns as the wrapper does."""
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
    """Takes events in order; every attribute is as of the last one."""

    def __init__(self) -> None:
        self._formatter = ProgressFormatter()
        self.last_seq = 0
        self.last_event_at: str | None = None
        self.started_at: str | None = None
        """Of the first attempt."""
        self.child: RunStarted | None = None
        """Identifies the process of the last attempt."""
        self.attempt = 1
        self.session: SessionTold | None = None
        """Where the agent keeps the conversation, as last reported."""
        self.baseline: Baseline | None = None
        """The working tree before the run; None outside git, and until it was recorded."""
        self.check: Check | None = None
        """Progress of the run's check; None before it, and if there is none."""
        self.waits_for: WaitsFor | None = None
        self.activity = ""
        self.is_retrying = False
        """Whether the last event is a retry; `activity` describes it."""
        self._texts: list[str] = []
        """Parts of `final_text`, joined only on request."""
        self.partial: bool = False
        """Whether `final_text` is incomplete."""
        self._goes_on = False
        """Whether another text would belong to the same message as `final_text`."""
        self.said_seq = 0
        """Number of the last event that begins or ends a message: text being written comes after it."""
        self.stop_reason: str | None = None
        self.error: str | None = None
        """Of the last message, like `stop_reason`."""
        self.handed_over: dict[str, Any] | None = None
        """Arguments of the last successful call of `FINALIZE_TOOL` in this attempt."""
        self._handing: ToolCall | None = None
        """Such a call whose result is not known yet."""
        self.usage = Usage()
        self.model = ""
        self.requests: dict[str, Request] = {}
        """Unanswered requests of the agent by id, oldest first."""
        self.interrupted = False
        """Whether its turn was ended and the agent has done nothing since."""
        self.hand: TakenOver | HandedBack | None = None
        """Set while the run is open in the agent's UI, or returned from it and the user has not chosen how to
        continue.
        """
        self.undelivered: dict[str, Message] = {}
        """Messages that the wrapper has and the agent has not shown, by id, in order."""
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
                self._apply_to_conversation(event)

    @property
    def final_text(self) -> str | None:
        """The agent's last message with text."""
        return "\n\n".join(self._texts) or None

    @property
    def checking(self) -> Check | None:
        """The running check; None if none is running."""
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

    def _apply_to_conversation(self, event: KnownEvent) -> None:
        """Apply an event of the conversation."""
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
    """The tool calls of a run without a result yet."""

    def __init__(self) -> None:
        self._calls: dict[str, ToolCall] = {}
        """By id, which an agent may reuse later; oldest first."""

    def __bool__(self) -> bool:
        return bool(self._calls)

    def __iter__(self) -> Iterator[ToolCall]:
        return iter(self._calls.values())

    def apply(self, event: Event) -> list[ToolCall]:
        """Apply the next event; return the calls that end with it, by their result or because the attempt or run
        ends.
        """
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
"""Newest messages kept; all others are only in the sums."""
PIECE = 16 * 1024 * 1024
"""Bytes read at a time, so that progress can be shown."""
_USAGE, _CALL = line_prefix(UsageReported), line_prefix(ToolCall)


class UsageReader:
    """Reads the usage of each message as a run's events grow: each byte once, decoding only usage events."""

    def __init__(self, run_dir: str) -> None:
        self._path = os.path.join(run_dir, EVENTS)
        self._tail = LineTail(self._path)
        self.newest: deque[UsageReported] = deque(maxlen=KEPT)
        self.messages = 0
        """All messages read, including dropped ones."""
        self.total = Usage()

    def read(self) -> bool:
        """Read the next piece; return whether there is more."""
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
        """Share of the file that was read, 0 to 1."""
        try:
            size = os.stat(self._path).st_size
        except OSError:
            return 1.0
        return min(1.0, self._tail.offset / size) if size else 1.0
