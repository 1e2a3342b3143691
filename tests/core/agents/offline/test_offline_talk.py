"""Messages, interrupts and questions with the offline agent, in pi's rpc mode and without a key."""

from __future__ import annotations

from pathlib import Path

import pytest
from subdeck.core.engine import Engine
from subdeck.core.run.events import Decision, Event, Interrupted, Message, Request, ToolResult
from subdeck.core.run.model import MessageState, RequestKind, RunReason, Verdict
from subdeck.core.run.snapshot import RunSnapshot
from subdeck.core.spec.request import RunRequest

from tests.factories import events_of, result_of, wait_for_end, write_settings
from tests.waiting import wait_until

from ...conversing import write_preset
from ...offline_agent.offline_reader import SHOP, write_tree

pytestmark = pytest.mark.processes


@pytest.fixture
def engine(project_dir: Path, monkeypatch: pytest.MonkeyPatch) -> Engine:
    monkeypatch.setenv("SUBDECK_OFFLINE_PACE", "0")
    write_tree(project_dir, SHOP)
    write_settings(agent="offline", agents={})
    return Engine.open(str(project_dir), session="operator")


def start(engine: Engine, task: str) -> RunSnapshot:
    (run,) = engine.launch([RunRequest(task=task)], background=True)
    return run


def states(events: list[Event]) -> list[MessageState]:
    return [event.state for event in events if isinstance(event, Message)]


def asked(engine: Engine, run: RunSnapshot, number: int = 1) -> Request:
    """Wait for its request."""

    def request() -> Request | None:
        requests = [event for event in events_of(engine, run) if isinstance(event, Request)]
        return requests[number - 1] if len(requests) >= number else None

    return wait_until(request, "a request")


def seen(engine: Engine, run: RunSnapshot, kind: type[Event]) -> None:
    wait_until(lambda: any(isinstance(event, kind) for event in events_of(engine, run)), f"a {kind.__name__}")


ASKS = "Where is the token checked? Ask me which file."


def test_it_runs_to_its_end(engine: Engine) -> None:
    """An interactive run completes without a message."""
    ended = wait_for_end(engine, start(engine, "Where is the token checked?").run_id)
    result = result_of(engine, ended)
    assert (RunReason.DONE, 0) == (result.reason, result.exit_code)
    assert "src/auth.py" in (result.final_text or "")
    assert ended.meta.talk


def test_a_choice_and_a_message(engine: Engine) -> None:
    """It continues with the chosen file and with the message sent in between."""
    run = start(engine, ASKS)
    request = asked(engine, run)
    assert (RequestKind.CHOICE, "Which file shall I read?") == (request.kind, request.text)
    assert "src/app.py" in request.choices
    engine.send(run.run_id, "And what does `total` do?")
    engine.reply(run.run_id, request.id, Verdict.REPLY, "src/app.py")
    ended = wait_for_end(engine, run.run_id)
    events = events_of(engine, ended)
    assert [MessageState.ACCEPTED, MessageState.DELIVERED] == states(events)
    (decision,) = [event for event in events if isinstance(event, Decision)]
    assert (Verdict.REPLY, "src/app.py") == (decision.verdict, decision.text)
    answer = result_of(engine, ended).final_text or ""
    assert "The closest place is `src/app.py" in answer
    assert "src/prices.py" in answer


def test_interrupted_and_gone_on(engine: Engine) -> None:
    """Its turn ends, its question is withdrawn, and the same process answers the next message."""
    run = start(engine, ASKS)
    asked(engine, run)
    engine.interrupt(run.run_id)
    seen(engine, run, Interrupted)
    assert [Verdict.WITHDRAWN] == [event.verdict for event in events_of(engine, run) if isinstance(event, Decision)]
    engine.send(run.run_id, "Where is `total`?")
    ended = wait_for_end(engine, run.run_id)
    result = result_of(engine, ended)
    assert (RunReason.DONE, 1) == (result.reason, result.attempts)
    assert "src/prices.py" in (result.final_text or "")


def test_stopped_while_it_asks(engine: Engine) -> None:
    """A soft stop ends its turn through the protocol."""
    run = start(engine, ASKS)
    asked(engine, run)
    engine.stop([run.run_id])
    result = result_of(engine, wait_for_end(engine, run.run_id))
    assert (RunReason.STOPPED, 0, None) == (result.reason, result.exit_code, result.signal)


def test_it_asks_leave_by_the_rules_of_its_run(engine: Engine, project_dir: Path) -> None:
    """You are asked about calls that an `ask` rule covers, and the agent continues without a denied call."""
    write_preset(project_dir, "agent: offline", "permissions: {ask: [read]}")
    (run,) = engine.launch([RunRequest(task="Where is `check_token`?", preset="scout")], background=True)
    first = asked(engine, run)
    assert (RequestKind.PERMISSION, "read", ("src/app.py",)) == (first.kind, first.tool_name, first.paths)
    engine.reply(run.run_id, first.id, Verdict.DENY, "not that one")
    engine.reply(run.run_id, asked(engine, run, 2).id, Verdict.ALLOW)
    ended = wait_for_end(engine, run.run_id)
    results = [
        event for event in events_of(engine, ended) if isinstance(event, ToolResult) and event.tool_name == "read"
    ]
    assert ["Denied: not that one", False] == [results[0].content, results[1].is_error]
    assert RunReason.DONE == result_of(engine, ended).reason
