"""The records of an interactive run: the states of messages, and the agent's requests."""

from __future__ import annotations

from typing import Any

from subdeck.core.engine import Engine
from subdeck.core.run.events import Decision, Interrupted, Message, Request
from subdeck.core.run.model import MessageState
from subdeck.core.run.snapshot import RunSnapshot

from tests.factories import events_of
from tests.waiting import wait_until


def current(engine: Engine, run: RunSnapshot) -> RunSnapshot:
    """Return a fresh snapshot of a run."""
    (now,) = engine.snapshots([run.run_id])
    return now


def of(kind: type, engine: Engine, run: RunSnapshot) -> list[Any]:
    """Return the recorded events of one kind."""
    return [event for event in events_of(engine, run) if isinstance(event, kind)]


def reached(engine: Engine, run: RunSnapshot, message_id: str) -> list[MessageState]:
    """Return the states that a message has passed through."""
    return [event.state for event in of(Message, engine, run) if event.id == message_id]


def wait_for_request(engine: Engine, run: RunSnapshot, number: int = 1) -> Request:
    """Wait until the agent has made this number of requests, and return the last one, which is open."""
    wait_until(lambda: len(of(Request, engine, run)) >= number, f"request {number}")
    (request,) = current(engine, run).requests
    return request


def wait_until_interrupted(engine: Engine, run: RunSnapshot) -> Interrupted:
    wait_until(lambda: of(Interrupted, engine, run), "the turn to be interrupted")
    return of(Interrupted, engine, run)[-1]


def decisions(engine: Engine, run: RunSnapshot) -> list[Decision]:
    return of(Decision, engine, run)
