"""Fold the events of one run into how it stands; no I/O."""

from __future__ import annotations

from msgspec.structs import replace

from ..text.plain import one_line
from .events import AssistantText, Event, Notice, RunEnded, RunQueued, RunStarted, ToolCall, UnknownEvent, UsageReported
from .model import NoticeLevel, Usage, WaitsFor
from .progress import ProgressFormatter

ACTIVITY_LENGTH = 200
"""Characters."""


UNCOUNTED_STOPS = frozenset({"error", "compaction"})
"""Stop reasons of messages that are paid for but are no turn: a failed try, a summary."""


def add_usage(total: Usage, event: UsageReported) -> Usage:
    """Add one assistant message to a run's sums; whoever folds events counts turns as the wrapper does."""
    return Usage(
        input=total.input + event.input,
        output=total.output + event.output,
        cache_read=total.cache_read + event.cache_read,
        cache_write=total.cache_write + event.cache_write,
        cost=total.cost + event.cost,
        turns=total.turns + (event.stop_reason not in UNCOUNTED_STOPS),
        tool_uses=total.tool_uses,
    )


class Fold:
    """Takes events in their order; everything it answers is as of the last one."""

    def __init__(self) -> None:
        self._formatter = ProgressFormatter()
        self.last_seq = 0
        self.last_event_at: str | None = None
        self.started_at: str | None = None
        self.waits_for: WaitsFor | None = None
        self.attempt = 1
        self.activity = ""
        self.final_text: str | None = None
        self.usage = Usage()
        self.model = ""
        self.warnings: tuple[str, ...] = ()
        self.ended: RunEnded | None = None

    @property
    def has_started(self) -> bool:
        return self.started_at is not None

    def apply(self, event: Event) -> None:
        self.last_seq = event.seq
        self.last_event_at = event.ts
        if isinstance(event, UnknownEvent):
            return
        if text := self._formatter.text(event):
            self.activity = one_line(text, ACTIVITY_LENGTH)
        match event:
            case RunQueued():
                self.waits_for = event.waits_for
            case RunStarted():
                self.started_at = self.started_at or event.ts
                self.attempt = event.attempt
            case AssistantText() if event.text.strip():
                self.final_text = event.text
            case ToolCall():
                self.usage = replace(self.usage, tool_uses=self.usage.tool_uses + 1)
            case UsageReported():
                self.usage = add_usage(self.usage, event)
                self.model = event.model or self.model
            case Notice(level=NoticeLevel.WARNING):
                self.warnings = (*self.warnings[-19:], event.text)
            case RunEnded():
                self.ended = event
            case _:
                pass
