"""The tool `background_agent_send`: a parent messages and interrupts its own runs, but cannot answer requests."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
from subdeck.core.delegation import call as calls
from subdeck.core.engine import Engine
from subdeck.core.mcp._results import brief
from subdeck.core.run.events import Event, Interrupted, Message
from subdeck.core.run.inbox import EntryKind, InboxEntry
from subdeck.core.run.model import LaunchedBy, MessageState

from tests.core.delegation.delegating import SESSION, call, parent_engine
from tests.core.talking import answering, listening, permission
from tests.factories import make_finished, make_meta

OURS = LaunchedBy(SESSION, "pi")


@pytest.fixture
def engine(project_dir: Path) -> Engine:
    return parent_engine(project_dir)


def send(engine: Engine, run_id: str, message: str = "", **more: Any) -> Any:
    return call(engine, "background_agent_send", {"runId": run_id, "message": message, **more})


def deliver(entry: InboxEntry) -> Iterable[Event]:
    if entry.kind == EntryKind.INTERRUPT:
        yield Interrupted(by=entry.by, message=entry.id)
    else:
        yield Message(id=entry.id, state=MessageState.ACCEPTED, text=entry.text, by=entry.by)
        yield Message(id=entry.id, state=MessageState.DELIVERED)


def test_a_parent_tells_its_run_something(engine: Engine) -> None:
    """The result shows whether the agent got the message, with the run's state and the counts."""
    with listening(engine.project, launched_by=OURS) as run:
        with answering(run, deliver):
            answer = send(engine, run.short_id, "only the tokenizer")
        assert (False, "delivered", run.run_id, 1) == (
            answer.is_error, answer.structured["delivery"], answer.structured["runId"],
            answer.structured["counts"]["running"],
        )  # fmt: skip
        assert answer.text.startswith("Delivered")


def test_an_interrupt_comes_before_its_message(engine: Engine) -> None:
    """The interrupt ends the turn first, so the message starts a new one. Without a message, the agent waits."""
    with listening(engine.project, launched_by=OURS) as run:
        seen: list[EntryKind | str] = []
        with answering(run, lambda entry: [seen.append(entry.kind)][1:] or deliver(entry)):
            assert "delivered" == send(engine, run.run_id, "again", interrupt=True).structured["delivery"]
            assert [EntryKind.INTERRUPT, EntryKind.MESSAGE] == seen
    with listening(engine.project, launched_by=OURS) as run:
        with answering(run, deliver):
            send(engine, run.run_id, interrupt=True)
        (now,) = engine.snapshots((run.run_id,))
        assert now.is_interrupted


def test_what_is_not_delivered_yet_is_on_its_way(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    """A call does not wait for the agent's next turn. A refused message has its reason."""
    monkeypatch.setattr(calls, "DELIVERY_TIMEOUT_S", 0.2)
    with listening(engine.project, launched_by=OURS) as run:
        assert "accepted" == send(engine, run.run_id, "hello").structured["delivery"]
        with answering(run, lambda entry: [Message(id=entry.id, state=MessageState.REFUSED, reason="not now")]):
            answer = send(engine, run.run_id, "hello")
        assert (True, "refused", "not now") == (
            answer.is_error, answer.structured["delivery"], answer.structured["why"],
        )  # fmt: skip


def test_a_parent_reaches_its_own_runs_only(engine: Engine) -> None:
    """It cannot reach your own runs, runs of other sessions, or foreground runs."""
    with listening(engine.project) as theirs, listening(engine.project, launched_by=OURS, background=False) as waited:
        for run in (theirs, waited):
            answer = send(engine, run.run_id, "stop that", interrupt=True)
            assert (True, "runId") == (answer.is_error, answer.structured["error"]["field"])
            assert [] == run.take()


def test_a_run_that_has_ended_is_gone_on_with_in_another(engine: Engine) -> None:
    """The error names the call that continues the conversation."""
    ended = make_finished(
        engine.project, make_meta(background=True, launched_by=OURS, talk=True, child_session_id="s-1")
    )
    answer = send(engine, ended.run_id, "more")
    assert answer.is_error
    assert "background_agent with the same preset and sessionId s-1" in answer.structured["error"]["hint"]


@pytest.mark.parametrize(
    ("params", "field"),
    [
        ({"message": "x"}, "runId"),
        ({"runId": 7, "message": "x"}, "runId"),
        ({"runId": "abcdef"}, "message"),
        ({"runId": "abcdef", "message": ["x"]}, "message"),
        ({"runId": "abcdef", "interrupt": "yes"}, "interrupt"),
        ({"runId": "abcdef", "message": "x", "verdict": "allow"}, "verdict"),
    ],
)
def test_a_wrong_call_is_refused(engine: Engine, params: dict[str, Any], field: str) -> None:
    """The wrong field is named, and requests cannot be answered."""
    answer = call(engine, "background_agent_send", params)
    assert (True, field) == (answer.is_error, answer.structured["error"]["field"])


def test_a_parent_sees_what_its_run_asks(engine: Engine) -> None:
    """The request is in the status, in its text for a client's model, and in the counts."""
    with listening(engine.project, permission(), launched_by=OURS) as run:
        answer = call(engine, "background_agent_status", {})
        (row,) = answer.structured["runs"]
        line = "wants to run a command: rm -rf build"
        shown = {"display": line.replace(": ", "\n  "), "toolName": "bash", "command": "rm -rf build"}
        asked = [{"id": "q1", "kind": "permission", "asks": line, **shown}]
        assert asked == row["requests"]
        assert 1 == answer.structured["counts"]["waiting"]
        assert "bg: 1 running / 1 total (1 waiting, 0 completed" in answer.text
        assert "running, needs input from the user" in answer.text
        (shown,) = brief(answer.structured, 10_000, lambda *_: "")["runs"]
        assert (asked, run.run_id) == (shown["requests"], shown["runId"])
