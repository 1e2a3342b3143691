"""Fold the events of one run into the entries of a timeline; each is final when it appears."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from typing import Any

from msgspec import Struct

from ..run.describe import moment
from ..run.events import AssistantText, ErrorReported, Event, RunEnded, RunStarted, Thinking, ToolCall, ToolResult

RECENT = 20
"""Entries that a report of progress carries."""

_CUT_OFF = "\n[…truncated…]"


class _Entry(Struct, frozen=True, kw_only=True, rename="camel", tag_field="kind", omit_defaults=True):
    ts: int
    """Milliseconds since the epoch; when it was final."""


class ToolEntry(_Entry, frozen=True, kw_only=True, tag="tool"):
    tool_name: str
    input: dict[str, Any]
    """Empty when the call itself was not seen."""
    output: str | None = None
    """None for a call whose result never came."""
    is_error: bool | None = None


class TextEntry(_Entry, frozen=True, kw_only=True, tag="text"):
    text: str


class ThinkingEntry(_Entry, frozen=True, kw_only=True, tag="thinking"):
    text: str


class ErrorEntry(_Entry, frozen=True, kw_only=True, tag="error"):
    text: str


Entry = ToolEntry | TextEntry | ThinkingEntry | ErrorEntry


class Timeline(Struct, frozen=True):
    """The entries of a run up to now."""

    entries: tuple[Entry, ...] = ()
    """All of them, or the last ones."""
    total: int = 0
    """How many there are in all."""
    tool_uses: int = 0
    """Tool calls that were completed."""


class EntryFold:
    """Takes the events of one run in their order; entries are only ever added.

    With `keep` it holds no more than that many, the last ones.
    """

    def __init__(self, keep: int | None = None) -> None:
        self._entries: deque[Entry] = deque(maxlen=keep)
        self._total = 0
        self._tool_uses = 0
        self._calls: dict[str, ToolCall] = {}
        """Those without a result, by their id, which an agent may use again later."""
        self._ts = 0

    @property
    def timeline(self) -> Timeline:
        return Timeline(tuple(self._entries), self._total, self._tool_uses)

    def apply(self, event: Event) -> None:
        self._ts = _milliseconds(event.ts) or self._ts
        match event:
            case ToolCall():
                self._give_up(event.tool_call_id)
                self._calls[event.tool_call_id] = event
            case ToolResult():
                self._complete(event)
            case AssistantText() if event.text.strip():
                self._add(TextEntry(text=event.text, ts=self._ts))
            case Thinking() if event.text.strip():
                self._add(ThinkingEntry(text=event.text, ts=self._ts))
            case ErrorReported():
                self._add(ErrorEntry(text=event.message, ts=self._ts))
            case RunStarted() | RunEnded():
                self.finish()
            case _:
                pass

    def finish(self) -> None:
        """Add the calls that no result will come for; for a run that ended without a word, too."""
        for call_id in tuple(self._calls):
            self._give_up(call_id)

    def _complete(self, result: ToolResult) -> None:
        call = self._calls.pop(result.tool_call_id, None)
        self._tool_uses += 1
        self._add(
            ToolEntry(
                tool_name=result.tool_name,
                input=call.args if call else {},
                output=result.content + _CUT_OFF if result.truncated else result.content,
                is_error=result.is_error,
                ts=self._ts,
            )
        )

    def _give_up(self, call_id: str) -> None:
        call = self._calls.pop(call_id, None)
        if call is not None:
            self._add(ToolEntry(tool_name=call.tool_name, input=call.args, ts=self._ts))

    def _add(self, entry: Entry) -> None:
        self._total += 1
        self._entries.append(entry)


def fold_entries(events: Iterable[Event], keep: int | None = None) -> Timeline:
    """Fold all events at once."""
    fold = EntryFold(keep)
    for event in events:
        fold.apply(event)
    return fold.timeline


def _milliseconds(iso: str) -> int:
    when = moment(iso)
    return 0 if when is None else round(when.timestamp() * 1000)
