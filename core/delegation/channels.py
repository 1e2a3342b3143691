"""The channels on which other programs follow runs.

Four are as in the README of pi-dashboard-subagents. The others report what a person has to know: requests, replies, and
runs that are idle or have to wait.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Any

import msgspec
from msgspec import Struct

from ..engine import Engine
from ..paths import iso_time
from ..project.follower import Update
from ..run.describe import moment
from ..run.documents import request_document
from ..run.events import Decision, Request
from ..run.model import RunMeta, RunResult, RunStatus
from ..run.snapshot import Queued, RunSnapshot
from .report import AgentDetails, LiveRun, preset_names
from .results import harmless

CREATED = "subagents:created"
STARTED = "subagents:started"
"""At the start, and again for each progress report."""
COMPLETED = "subagents:completed"
FAILED = "subagents:failed"
"""Failed or aborted."""
QUEUED = "subagents:queued"
"""Its wrapper has to wait before it starts the agent; once per run."""
NEEDS_INPUT = "subagents:needs_input"
"""Its agent waits for a person; once per request."""
REPLIED = "subagents:replied"
"""A request was decided."""
IDLE = "subagents:idle"
"""Its agent has written nothing for longer than usual; once until it writes again."""


class Emission(Struct, frozen=True):
    channel: str
    payload: dict[str, Any]


def ended(status: RunStatus, details: AgentDetails, result: RunResult | None) -> Emission:
    """Return the emission for the end of a run."""
    figures = {"durationMs": details.duration_ms, "toolUses": details.tool_uses}
    if status is RunStatus.COMPLETED:
        answer = (result and result.final_text) or ""
        return _emission(COMPLETED, details, **figures, result=answer, tokens=details.tokens)
    return _emission(FAILED, details, **figures, error=details.error or status.value)


def _named(channel: str, details: AgentDetails) -> Emission:
    return _emission(channel, details, type=details.subagent_type, description=details.description)


def _emission(channel: str, details: AgentDetails, **more: Any) -> Emission:
    return Emission(channel, harmless({"id": details.agent_id, **more, "details": msgspec.to_builtins(details)}))


def needs_input(request: Request, live: LiveRun) -> Emission:
    """Return the emission for a request; its texts are exact, as in `subdeck requests --json`."""
    run = live.run
    emission = _emission(NEEDS_INPUT, live.details(), requestId=request.id, kind=request.kind.value)
    emission.payload.update(
        request=msgspec.to_builtins(request_document(request, run.run_id, run.meta.cwd)),
        deadline=_deadline(request, run.meta.answer_timeout),
        open=len({pending.id for pending in run.requests} | {request.id}),
    )
    return emission


def _deadline(request: Request, timeout: float | None) -> str | None:
    """Return when a request is denied without a reply; None for never."""
    asked = moment(request.ts)
    return None if asked is None or timeout is None else iso_time(asked.timestamp() + timeout)


def replied(decision: Decision, live: LiveRun) -> Emission:
    """Return the emission for the decision on a request."""
    decision_fields = {
        "verdict": decision.verdict.value,
        "text": decision.text,
        "by": decision.by,
        "rule": decision.rule,
    }
    still_open = {request.id for request in live.run.requests} - {decision.request}
    return _emission(REPLIED, live.details(), requestId=decision.request, **decision_fields, open=len(still_open))


class Emitter:
    """Converts updates to emissions; keeps state only for unfinished runs."""

    def __init__(self, engine: Engine, *, wanted: Callable[[RunMeta], bool] | None = None, whole: bool = False) -> None:
        """`wanted` selects runs; with `whole`, progress has all entries."""
        self._engine = engine
        self._wanted = wanted
        self._whole = whole
        self._names: dict[str, str] | None = None
        """Result of `preset_names`; None until it is needed again."""
        self._live: dict[str, LiveRun] = {}
        self._has_begun = False

    def take(self, update: Update) -> Iterator[Emission]:
        """Yield the emissions of an update; progress that is too soon waits for a later update.

        The first update yields one `started` for each active run.
        """
        if update.presets_changed:
            self._names = None
        news = {run.run_id for run in update.ended}
        for run in reversed(update.runs):
            if not run.foreign and (self._wanted is None or self._wanted(run.meta)):
                yield from self._take(run, is_news=run.run_id in news)
        for run_id in update.removed:
            self._live.pop(run_id, None)
        self._has_begun = True
        clock = time.monotonic()
        for live in tuple(self._live.values()):
            if live.is_due():
                yield self._progress(live)
            yield from self._attention(live, clock)

    def _take(self, run: RunSnapshot, *, is_news: bool) -> Iterator[Emission]:
        live = self._live.get(run.run_id)
        if live is None:
            if run.has_ended and not is_news:
                return
            name = self._display_name(run.meta)
            live = LiveRun(self._engine, run, name, whole=self._whole, is_late=not self._has_begun)
            if self._has_begun:
                yield _named(CREATED, live.details())
                live.is_pending = run.status is RunStatus.RUNNING
            if not run.has_ended:
                self._live[run.run_id] = live
        if run.has_ended:
            is_followed = self._live.pop(run.run_id, None) is not None
            has_news = is_followed and (live.drain() or live.is_pending)
            if has_news or (self._has_begun and live.reported_at is None and run.started_at):
                yield self._progress(live)
            yield from self._exchanges(live)
            result = self._engine.result(run.run_id)
            yield ended(run.status, live.final(run, result), result)
        elif run.status is RunStatus.RUNNING:
            live.see(run)
        else:
            live.run = run  # a wait is no progress

    def _attention(self, live: LiveRun, clock: float) -> Iterator[Emission]:
        """Yield what a person has to know about an unfinished run, each once."""
        state = live.run.state
        if isinstance(state, Queued):
            if state.waits_for is not None and live.begins_to_wait():
                queue_fields = {"waitsFor": state.waits_for.value, "ahead": state.ahead, "paused": state.held}
                yield _emission(QUEUED, live.details(), **queue_fields)
            return
        yield from self._exchanges(live)
        if (silence := live.new_silence(clock)) is not None:
            yield _emission(IDLE, live.details(), idleMs=round(silence * 1000))

    def _exchanges(self, live: LiveRun) -> Iterator[Emission]:
        for event in live.exchanges():
            yield needs_input(event, live) if isinstance(event, Request) else replied(event, live)

    def _display_name(self, meta: RunMeta) -> str:
        if not meta.preset_path:
            return ""
        if self._names is None:
            self._names = preset_names(self._engine)
        return self._names.get(meta.preset_path, "")

    def _progress(self, live: LiveRun) -> Emission:
        is_first = live.reported_at is None
        details = live.report()
        return _named(STARTED, details) if is_first else _emission(STARTED, details)
