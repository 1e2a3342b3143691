"""The four channels on which other programs follow runs, as the README of pi-dashboard-subagents has them."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import msgspec
from msgspec import Struct

from ..engine import Engine
from ..project.follower import Update
from ..project.watch import Stop
from ..run.model import RunMeta, RunResult, RunStatus
from ..run.snapshot import RunSnapshot
from ..system.log import log_fault
from ..text.plain import one_line
from .live_run import LiveRun, PresetNames
from .report import AgentDetails

CREATED = "subagents:created"
STARTED = "subagents:started"
"""When it begins, and again for each progress."""
COMPLETED = "subagents:completed"
FAILED = "subagents:failed"
"""Failed or aborted."""


class Emission(Struct, frozen=True):
    channel: str
    payload: dict[str, Any]

    @property
    def is_end(self) -> bool:
        return self.channel in (COMPLETED, FAILED)


Subscriber = Callable[[Emission], None]


def created(details: AgentDetails) -> Emission:
    return _emission(CREATED, details, **_named(details))


def started(details: AgentDetails, *, first: bool) -> Emission:
    """Type and description go with the first emission of a run only."""
    return _emission(STARTED, details, **(_named(details) if first else {}))


def ended(status: RunStatus, details: AgentDetails, result: RunResult | None) -> Emission:
    """Report the end of a run on the channel that belongs to it."""
    figures = {"durationMs": details.duration_ms, "toolUses": details.tool_uses}
    if status is RunStatus.COMPLETED:
        answer = (result and result.final_text) or ""
        return _emission(COMPLETED, details, **figures, result=answer, tokens=details.tokens)
    return _emission(FAILED, details, **figures, error=details.error or status.value)


def _named(details: AgentDetails) -> dict[str, str]:
    return {"type": details.subagent_type, "description": details.description}


def _emission(channel: str, details: AgentDetails, **more: Any) -> Emission:
    return Emission(channel, {"id": details.agent_id, **more, "details": msgspec.to_builtins(details)})


class Channels:
    """Pass emissions on to subscribers; the source is followed from the first of them to the last."""

    def __init__(self, source: Callable[[threading.Event], Iterable[Emission]]) -> None:
        """`source` yields emissions until its event is set."""
        self._source = source
        self._subscribers: list[Subscriber] = []
        self._changing = threading.Lock()
        self._stop = threading.Event()
        self.fault = ""
        """What a subscriber or the source raised last, in one line."""

    def subscribe(self, subscriber: Subscriber) -> Callable[[], None]:
        """Call `subscriber` with each emission from now on; return a function that ends it."""
        with self._changing:
            self._subscribers.append(subscriber)
            if len(self._subscribers) == 1:
                self._stop = threading.Event()
                threading.Thread(target=self._feed, args=(self._stop,), name="channels", daemon=True).start()

        def unsubscribe() -> None:
            with self._changing:
                if subscriber in self._subscribers:
                    self._subscribers.remove(subscriber)
                if not self._subscribers:
                    self._stop.set()

        return unsubscribe

    def _feed(self, stop: threading.Event) -> None:
        try:
            for emission in self._source(stop):
                if stop.is_set():
                    return
                self._emit(emission)
        except Exception as fault:
            self._keep("following the runs of a session", fault)

    def _emit(self, emission: Emission) -> None:
        """Pass one on to all; what a subscriber raises disturbs nobody else."""
        for subscriber in tuple(self._subscribers):
            try:
                subscriber(emission)
            except Exception as fault:
                self._keep("passing an emission on", fault)

    def _keep(self, doing: str, fault: Exception) -> None:
        log_fault(doing, fault)
        self.fault = one_line(f"{type(fault).__name__}: {fault}", 400)


def emissions(
    engine: Engine, stop: Stop, *, wanted: Callable[[RunMeta], bool] | None = None, whole: bool = False
) -> Iterator[Emission]:
    """Yield one `started` for each active run, then all that happens until `stop` is set; blocks in between.

    `wanted` chooses runs; with `whole` progress carries all entries.
    """
    emitter = Emitter(engine, wanted=wanted, whole=whole)
    for update in engine.updates(stop):
        yield from emitter.take(update)


class Emitter:
    """Make emissions of updates; keeps what was emitted of the runs that have not ended, and nothing of the others."""

    def __init__(self, engine: Engine, *, wanted: Callable[[RunMeta], bool] | None = None, whole: bool = False) -> None:
        self._engine = engine
        self._wanted = wanted
        self._whole = whole
        self._names = PresetNames(engine)
        self._live: dict[str, LiveRun] = {}
        self._has_begun = False

    def take(self, update: Update) -> Iterator[Emission]:
        """Yield what an update gives rise to now; progress that comes too soon is left to a later one."""
        if update.presets_changed:
            self._names.forget()
        news = {run.run_id for run in update.ended}
        for run in reversed(update.runs):
            if self._wanted is None or self._wanted(run.meta):
                yield from self._take(run, is_news=run.run_id in news)
        for run_id in update.removed:
            self._live.pop(run_id, None)
        self._has_begun = True
        for live in tuple(self._live.values()):
            if live.is_due():
                yield self._progress(live)

    def _take(self, run: RunSnapshot, *, is_news: bool) -> Iterator[Emission]:
        live = self._live.get(run.run_id)
        if live is None:
            if run.has_ended and not is_news:
                return
            live = LiveRun(self._engine, run, display_name=self._names.of(run.meta), whole=self._whole)
            if self._has_begun:
                yield created(live.announce())
                live.is_pending = run.status is RunStatus.RUNNING
            if not run.has_ended:
                self._live[run.run_id] = live
        if run.has_ended:
            yield from self._end(live, run)
        elif run.status is RunStatus.RUNNING:
            live.see(run)

    def _end(self, live: LiveRun, run: RunSnapshot) -> Iterator[Emission]:
        known = self._live.pop(run.run_id, None)
        if known and (known.drain() or known.is_pending):
            yield self._progress(known)
        result = self._engine.result(run.run_id)
        yield ended(run.status, live.final(run, result), result)

    def _progress(self, live: LiveRun) -> Emission:
        first = not live.was_reported
        return started(live.report(), first=first)
