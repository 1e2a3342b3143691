"""The four channels by which others follow runs, as the README of pi-dashboard-subagents has them.

Pure projections of a run's details, and a small place to subscribe to them.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from typing import Any

import msgspec
from msgspec import Struct

from ..run.model import RunResult, RunStatus
from ..text.plain import one_line
from .details import AgentDetails

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
    return Emission(CREATED, {"id": details.agent_id, **_named(details), "details": _plain(details)})


def started(details: AgentDetails, *, first: bool) -> Emission:
    """Type and description go with the first emission of a run only."""
    named = _named(details) if first else {}
    return Emission(STARTED, {"id": details.agent_id, **named, "details": _plain(details)})


def ended(status: RunStatus, details: AgentDetails, result: RunResult | None) -> Emission:
    """Tell the end of a run on the channel that belongs to it."""
    common = {"id": details.agent_id, "durationMs": details.duration_ms, "toolUses": details.tool_uses}
    if status is RunStatus.COMPLETED:
        answer = (result and result.final_text) or ""
        payload = {**common, "result": answer, "tokens": details.tokens, "details": _plain(details)}
        return Emission(COMPLETED, payload)
    return Emission(FAILED, {**common, "error": details.error or status.value, "details": _plain(details)})


def _named(details: AgentDetails) -> dict[str, str]:
    return {"type": details.subagent_type, "description": details.description}


def _plain(details: AgentDetails) -> dict[str, Any]:
    return msgspec.to_builtins(details)


class Channels:
    """Passes emissions on to subscribers; the source is opened for the first of them and left with the last."""

    def __init__(self, source: Callable[[threading.Event], Iterable[Emission]] | None = None) -> None:
        """`source` yields emissions until its event is set; without one `emit` is all that feeds the channels."""
        self._source = source
        self._subscribers: list[Subscriber] = []
        self._changing = threading.Lock()
        self._stop = threading.Event()
        self.fault = ""
        """What a subscriber, or the source, raised last."""

    def subscribe(self, subscriber: Subscriber) -> Callable[[], None]:
        """Call `subscriber` with each emission from now on; answer what ends that."""
        with self._changing:
            self._subscribers.append(subscriber)
            if self._source and len(self._subscribers) == 1:
                self._stop = threading.Event()
                threading.Thread(
                    target=self._feed, args=(self._source, self._stop), name="channels", daemon=True
                ).start()

        def unsubscribe() -> None:
            with self._changing:
                if subscriber in self._subscribers:
                    self._subscribers.remove(subscriber)
                if not self._subscribers:
                    self._stop.set()

        return unsubscribe

    def emit(self, emission: Emission) -> None:
        """Hand one over to all; what a subscriber raises is kept in `fault` and concerns nobody else."""
        for subscriber in tuple(self._subscribers):
            try:
                subscriber(emission)
            except Exception as fault:
                self.fault = one_line(f"{type(fault).__name__}: {fault}", 400)

    def _feed(self, source: Callable[[threading.Event], Iterable[Emission]], stop: threading.Event) -> None:
        try:
            for emission in source(stop):
                if stop.is_set():
                    return
                self.emit(emission)
        except Exception as fault:
            self.fault = one_line(f"{type(fault).__name__}: {fault}", 400)
