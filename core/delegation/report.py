"""A run's details for other programs, with a timeline of entries built from its events.

Names and values follow the field reference of pi-dashboard-subagents.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from enum import StrEnum
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from ..engine import Engine
from ..run.describe import activity, moment
from ..run.events import AssistantText, Decision, ErrorReported, Event, Request, Thinking, ToolResult
from ..run.fold import OpenCalls
from ..run.model import PresetSource, RunMeta, RunnerKind, RunReason, RunResult, RunStatus
from ..run.snapshot import Ended, Running, RunSnapshot
from ..text.plain import one_line

REPORT_INTERVAL_S = 0.25
"""Minimum seconds between two progress reports of a run."""

RECENT = 20
"""Entries in a progress report."""

DESCRIPTION_LENGTH = 80
"""Characters of the task that replace a missing description."""

LIMIT_REASONS = frozenset(
    {RunReason.TIMEOUT, RunReason.MAX_TURNS, RunReason.STALLED, RunReason.BUDGET, RunReason.LEASE}
)

_CUT_OFF = "\n[…truncated…]"

_SOURCES = {
    PresetSource.PROJECT: "project",
    PresetSource.DIR: "project",  # the reference's project tier, `.pi/agents`, is in `preset_dirs` here
    PresetSource.GLOBAL: "user",
    PresetSource.BUNDLED: "bundled",
}


class AgentStatus(StrEnum):
    QUEUED = "queued"
    RUNNING = "running"
    COMPLETED = "completed"
    ABORTED = "aborted"
    STOPPED = "stopped"
    """Ended by a limit."""
    ERROR = "error"


class _Entry(Struct, frozen=True, kw_only=True, rename="camel", tag_field="kind", omit_defaults=True):
    ts: int
    """Milliseconds since the epoch, at the time it was final."""


class ToolEntry(_Entry, frozen=True, kw_only=True, tag="tool"):
    tool_name: str
    input: dict[str, Any]
    """Empty if the call itself was not seen."""
    output: str | None = None
    """None for a call without a result."""
    is_error: bool | None = None


class TextEntry(_Entry, frozen=True, kw_only=True, tag="text"):
    text: str


class ThinkingEntry(_Entry, frozen=True, kw_only=True, tag="thinking"):
    text: str


class ErrorEntry(_Entry, frozen=True, kw_only=True, tag="error"):
    text: str


Entry = ToolEntry | TextEntry | ThinkingEntry | ErrorEntry


class Timeline(Struct, frozen=True):
    """A run's entries so far."""

    entries: tuple[Entry, ...] = ()
    """All entries, or the last ones."""
    total: int = 0
    """Number of all entries."""
    tool_uses: int = 0
    """Completed tool calls."""


class TokensUsage(Struct, frozen=True):
    input: int
    output: int
    total: int
    """Includes tokens read from and written to a cache, unlike `input`."""


class AgentDetails(Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """Optional fields without a value are omitted from the JSON."""

    agent_id: str
    display_name: str
    description: str
    subagent_type: str
    status: AgentStatus
    activity: str | None = None
    entries: tuple[Entry, ...] | None = None
    entries_total: int | None = None
    """Number of all entries, if `entries` has only the last ones."""
    tool_uses: int
    """Completed tool calls."""
    tokens: str
    tokens_usage: TokensUsage | None = None
    """Only for finished runs."""
    turn_count: int | None = None
    max_turns: int | None = None
    duration_ms: int
    """Since the launch, including the time in a queue."""
    model_name: str | None = None
    tags: tuple[str, ...] | None = None
    agent_md_path: str | None = None
    agent_md_source: str | None = None
    error: str | None = None
    """Only for runs that failed or were ended."""


def details_of(
    run: RunSnapshot,
    timeline: Timeline | None = None,
    result: RunResult | None = None,
    *,
    now: datetime,
    display_name: str = "",
) -> AgentDetails:
    """Return a run's details.

    Without a timeline there are no entries, and every tool call counts as completed. `result` has the whole error, the
    snapshot only one line of it. `now` only matters for unfinished runs. `display_name` is the preset's description;
    without one, the preset's name is used.
    """
    meta, usage = run.meta, run.usage if result is None else result.usage
    is_unknown = usage.uncounted > 0 and not usage.tokens
    return AgentDetails(
        agent_id=meta.run_id,
        display_name=one_line(display_name) or meta.stored_title,
        description=meta.description or one_line(meta.task, DESCRIPTION_LENGTH),
        subagent_type=meta.stored_title,
        status=status_of(run.status, run.reason),
        activity=activity(run) or None,
        entries=timeline and timeline.entries,
        entries_total=timeline.total if timeline and timeline.total > len(timeline.entries) else None,
        tool_uses=usage.tool_uses if timeline is None else timeline.tool_uses,
        tokens="?" if is_unknown else tokens_text(usage.tokens) + "+" * bool(usage.uncounted),
        tokens_usage=TokensUsage(usage.input, usage.output, usage.tokens) if run.has_ended and not is_unknown else None,
        turn_count=usage.turns,
        max_turns=meta.limits.max_turns,
        duration_ms=_duration_ms(run, now),
        model_name=model_name((result and result.resolved_model) or meta.resolved_model),
        tags=tuple(_tags(meta)) or None,
        agent_md_path=meta.preset_path,
        agent_md_source=_SOURCES.get(meta.preset_source) if meta.preset_path else None,
        error=_error(run, result),
    )


def status_of(status: RunStatus, reason: RunReason | None) -> AgentStatus:
    if status is RunStatus.FAILED:
        return AgentStatus.ERROR
    return AgentStatus.STOPPED if reason in LIMIT_REASONS else AgentStatus(status.value)


def tokens_text(count: int) -> str:
    """Format as `812`, `12.3k`, `1.2M`."""
    if count < 1000:
        return str(count)
    return f"{count / 1000:.1f}k" if count < 999_950 else f"{count / 1_000_000:.1f}M"


def model_name(resolved: str) -> str | None:
    """Return a model's id without its provider; an id may contain slashes."""
    return resolved.partition("/")[2] or resolved or None


def _duration_ms(run: RunSnapshot, now: datetime) -> int:
    """Return the wait by the wall clock plus the measured duration; never negative, even if the clock changed."""
    created = moment(run.meta.created_at)
    match run.state:
        case Ended(duration_ms=int() as duration_ms, started_at=started_at):
            return duration_ms + _between(created, moment(started_at or ""))
        case Ended(ended_at=ended_at):
            return _between(created, moment(ended_at) or created)
        case _:
            return _between(created, now)


def _between(begin: datetime | None, end: datetime | None) -> int:
    return 0 if begin is None or end is None else max(0, round((end - begin).total_seconds() * 1000))


def _tags(meta: RunMeta) -> Iterator[str]:
    if meta.thinking:
        yield f"thinking: {meta.thinking}"
    if meta.inherited:
        yield f"inherited turns: {meta.inherited.turns}"
    if meta.isolated:
        yield "isolated"
    if meta.finalize:
        yield "finalize"
    if meta.runner != RunnerKind.PROCESS:
        yield f"runner: {meta.runner}"


def _error(run: RunSnapshot, result: RunResult | None) -> str | None:
    end = run.end
    if end is None or end.status is RunStatus.COMPLETED:
        return None
    return (result.error_message if result else end.message) or end.reason.value


class EntryFold:
    """Builds entries from a run's events, applied in order; an entry never changes.

    With `keep`, only the last entries are kept, up to that number.
    """

    def __init__(self, keep: int | None = None) -> None:
        self._entries: deque[Entry] = deque(maxlen=keep)
        self._total = 0
        self._tool_uses = 0
        self._calls = OpenCalls()
        self._ts = 0

    @property
    def timeline(self) -> Timeline:
        return Timeline(tuple(self._entries), self._total, self._tool_uses)

    def apply(self, event: Event) -> None:
        if when := moment(event.ts):
            self._ts = round(when.timestamp() * 1000)
        ended = self._calls.apply(event)
        match event:
            case ToolResult():
                self._tool_uses += 1
                args = ended[0].args if ended else {}
                output = event.content + _CUT_OFF if event.truncated else event.content
                entry = ToolEntry(
                    tool_name=event.tool_name, input=args, output=output, is_error=event.is_error, ts=self._ts
                )
                self._add(entry)
            case AssistantText() if event.text.strip():
                self._add(TextEntry(text=event.text, ts=self._ts))
            case Thinking() if event.text.strip():
                self._add(ThinkingEntry(text=event.text, ts=self._ts))
            case ErrorReported():
                self._add(ErrorEntry(text=event.message, ts=self._ts))
            case _:
                for call in ended:
                    self._add(ToolEntry(tool_name=call.tool_name, input=call.args, ts=self._ts))

    def _add(self, entry: Entry) -> None:
        self._total += 1
        self._entries.append(entry)


def fold_entries(events: Iterable[Event], keep: int | None = None) -> Timeline:
    fold = EntryFold(keep)
    for event in events:
        fold.apply(event)
    return fold.timeline


class LiveRun:
    """A followed run and its due reports; events are read only for a report, and when its requests have changed."""

    def __init__(
        self, engine: Engine, run: RunSnapshot, display_name: str, *, whole: bool = False, is_late: bool = False
    ) -> None:
        """`whole`: reports have all entries, not only the last ones. `is_late`: of the requests and decisions until
        now, only open requests are news.
        """
        self.run = run
        """As last seen."""
        self._engine = engine
        self._display_name = display_name
        self._fold = EntryFold(None if whole else RECENT)
        self._tail = engine.events(run.run_id)
        self.reported_at: float | None = None
        """By the monotonic clock."""
        self.is_pending = True
        """Whether anything changed since the last report."""
        self._past = run.last_seq if is_late else 0
        """Number of the last event that is not news; open requests before it are."""
        self._late_requests = {request.seq for request in run.requests} if is_late else set[int]()
        self._exchanges: list[Request | Decision] = []
        """Read, and not yet returned."""
        self._requests: tuple[Request, ...] = ()
        """The open requests at the last look."""
        self._has_waited = False
        self._silent_since: float | None = None
        """Begin of the silence that was reported, as in `Running.heard_at`."""
        self._duration_ms = 0
        """The longest reported duration. A finished run's measured time excludes its changes and check, and uses
        another clock, so it could be shorter than an earlier report.
        """

    def see(self, run: RunSnapshot) -> None:
        self.is_pending = self.is_pending or run != self.run
        self.run = run

    def is_due(self) -> bool:
        """Whether there is news, and the last report is old enough."""
        return self.is_pending and (
            self.reported_at is None or time.monotonic() - self.reported_at >= REPORT_INTERVAL_S
        )

    def drain(self) -> bool:
        """Apply new events; return whether there were any."""
        events = self._tail.read()
        for event in events:
            self._fold.apply(event)
            match event:
                case Request(seq=seq) if seq > self._past or seq in self._late_requests:
                    self._exchanges.append(event)
                case Decision(request=str(request), seq=seq) if request and seq > self._past:
                    self._exchanges.append(event)
                case _:
                    pass
        return bool(events)

    def exchanges(self) -> list[Request | Decision]:
        """Return the requests, and the decisions on requests, that are news since the last call, oldest first."""
        if self.run.requests != self._requests:
            self._requests = self.run.requests
            self.is_pending = self.drain() or self.is_pending
        taken, self._exchanges = self._exchanges, []
        return taken

    def begins_to_wait(self) -> bool:
        """Return True at the first call."""
        has_waited, self._has_waited = self._has_waited, True
        return not has_waited

    def new_silence(self, clock: float) -> float | None:
        """Return how many seconds the run has been idle at this `time.monotonic`.

        None if it is not idle, and if its silence was returned before.
        """
        silence = self.run.silence(clock)
        if silence is None or not isinstance(self.run.state, Running):
            return None
        before, self._silent_since = self._silent_since, self.run.state.heard_at
        return silence if before != self._silent_since else None

    def report(self) -> AgentDetails:
        """Return its details with the entries so far."""
        self.drain()
        self.reported_at = time.monotonic()
        self.is_pending = False
        return self.details(self._fold.timeline)

    def final(self, run: RunSnapshot, result: RunResult | None) -> AgentDetails:
        """Return the final details, with the whole timeline."""
        self.run = run
        return self.details(fold_entries(self._engine.events(run.run_id).read()), result)

    def details(self, timeline: Timeline | None = None, result: RunResult | None = None) -> AgentDetails:
        details = details_of(self.run, timeline, result, now=datetime.now(UTC), display_name=self._display_name)
        self._duration_ms = max(self._duration_ms, details.duration_ms)
        return replace(details, duration_ms=self._duration_ms)


def preset_names(engine: Engine) -> dict[str, str]:
    """Return preset descriptions by file path."""
    return {preset.path: preset.description for preset in engine.presets().presets}
