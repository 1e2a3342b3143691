"""Messages to real runs of the offline agent on the command line, also several at once."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest
from subdeck.core.engine import Engine
from subdeck.core.run.events import Decision, Event, Message, Request
from subdeck.core.run.model import MessageState
from subdeck.core.run.snapshot import RunSnapshot
from subdeck.core.spec.request import RunRequest

from tests.core.command_line import start, subdeck
from tests.core.offline_agent.offline_reader import SHOP, write_tree
from tests.factories import events_of, result_of, wait_for_end, write_settings
from tests.waiting import wait_until

pytestmark = [pytest.mark.processes, pytest.mark.usefixtures("forked_commands")]

ASKS = "Where is the token checked? Ask me which file."
FILES = ("src/app.py", "src/auth.py")


@pytest.fixture
def engine(project_dir: Path, monkeypatch: pytest.MonkeyPatch) -> Engine:
    monkeypatch.setenv("SUBDECK_OFFLINE_PACE", "0")
    write_tree(project_dir, SHOP)
    write_settings(agent="offline", agents={})
    return Engine.open(str(project_dir))


@pytest.fixture
def run(engine: Engine) -> RunSnapshot:
    """A run with a question."""
    return asking(engine)


def asking(engine: Engine) -> RunSnapshot:
    (launched,) = engine.launch([RunRequest(task=ASKS)], background=True)
    wait_until(lambda: any(isinstance(event, Request) for event in events_of(engine, launched)), "its request")
    return launched


def states(events: list[Event]) -> list[MessageState]:
    return [event.state for event in events if isinstance(event, Message)]


def test_two_answers_at_once_count_once(engine: Engine, project_dir: Path, run: RunSnapshot) -> None:
    """The first reply decides, and the other one gets an error with an exit code."""
    answers = {choice: start("reply", run.run_id, "q1", choice, cwd=project_dir) for choice in FILES}
    told = {choice: (*answer.communicate(timeout=30), answer.returncode) for choice, answer in answers.items()}
    (first,) = [choice for choice, (*_, code) in told.items() if code == 0]
    (other,) = set(FILES) - {first}
    out, err, code = told[other]
    assert code in (1, 2, 3)  # refused by the run, or nothing was pending
    assert any(words in out + err for words in (b"pending", b"has finished", b"too late"))
    ended = wait_for_end(engine, run.run_id)
    (decision,) = [event for event in events_of(engine, ended) if isinstance(event, Decision)]
    assert first == decision.text


def test_a_message_of_a_sender_that_was_killed_is_delivered_once(
    engine: Engine, project_dir: Path, run: RunSnapshot
) -> None:
    """Once it is in the inbox, its sender may exit."""
    sender = start("send", "--wait", run.run_id, "And where is `total`?", cwd=project_dir)
    wait_until(lambda: MessageState.ACCEPTED in states(events_of(engine, run)), "the message to be accepted")
    sender.send_signal(signal.SIGKILL)
    sender.communicate()
    assert 0 == subdeck("reply", run.run_id, "src/auth.py", cwd=project_dir).code
    ended = wait_for_end(engine, run.run_id)
    assert [MessageState.ACCEPTED, MessageState.DELIVERED] == states(events_of(engine, ended))
    assert "src/prices.py" in (result_of(engine, ended).final_text or "")


def test_interrupt_then_say_what_to_do(engine: Engine, project_dir: Path, run: RunSnapshot) -> None:
    """The turn ends, its question is withdrawn, and the run continues with the next message."""
    assert (0, f"{run.meta.short_id} interrupted\n") == subdeck(
        "stop", "--turn", "--wait", run.run_id, cwd=project_dir
    )[:2]
    assert "No pending requests.\n" == subdeck("requests", cwd=project_dir).out
    waiter = start("wait", run.run_id, cwd=project_dir)
    assert waiter.stderr
    assert b"is interrupted and waits" in waiter.stderr.readline()
    assert f"subdeck send {run.meta.short_id} TEXT".encode() in waiter.stderr.readline()
    sent = subdeck("send", "--wait", run.run_id, "Where is `total`?", cwd=project_dir)
    assert (0, f"{run.meta.short_id} delivered\n") == sent[:2]
    waiter.communicate(timeout=30)
    assert 0 == waiter.returncode
    log = subdeck("logs", run.run_id, cwd=project_dir).out
    said = ("? has a question\n", "Interrupted by the user", "▸ the user, queued: Where is `total`?\n", "▸ delivered\n")
    assert sorted(places := [log.index(text) for text in said]) == places
    late = subdeck("send", run.run_id, "one more", cwd=project_dir)
    assert 2 == late.code
    assert "has finished (done)" in late.err
    assert "--session-id" in late.err


def test_an_interrupt_counts_although_more_was_said_before(engine: Engine, project_dir: Path, run: RunSnapshot) -> None:
    """The turn ends, the earlier message starts the next one, and the interrupt is reported as done."""
    engine.send(run.run_id, "Where is `total`?")
    wait_until(lambda: MessageState.ACCEPTED in states(events_of(engine, run)), "the message to be accepted")
    assert (0, f"{run.meta.short_id} interrupted\n") == subdeck(
        "stop", "--turn", "--wait", run.run_id, cwd=project_dir
    )[:2]
    ended = wait_for_end(engine, run.run_id)
    assert [MessageState.ACCEPTED, MessageState.DELIVERED] == states(events_of(engine, ended))
    assert "src/prices.py" in (result_of(engine, ended).final_text or "")


def test_a_foreground_run_shows_what_it_asks(project_dir: Path, engine: Engine) -> None:
    """Its question is shown with the command that replies, beside the progress. Only the answer goes to stdout."""
    running = start("run", "--no-preset", ASKS, cwd=project_dir)
    assert running.stderr
    hint = next(line for line in iter(running.stderr.readline, b"") if b"subdeck reply" in line).decode()
    _, _, run_id, *named = hint.split()[:7]
    assert 0 == subdeck("reply", run_id, *named, "2", cwd=project_dir).code
    out, _ = running.communicate(timeout=30)
    assert 0 == running.returncode
    assert out.startswith(b"No model was used")


def test_a_queued_run_takes_what_it_is_told_into_its_prompt(engine: Engine, project_dir: Path) -> None:
    """It is delivered when the agent starts."""
    write_settings(agent="offline", agents={}, max_running=1)
    run = asking(engine)
    (queued,) = engine.launch([RunRequest(task="Where is the token checked?")], background=True)
    assert 0 == subdeck("send", queued.run_id, "And where is `total`?", cwd=project_dir).code
    subdeck("stop", "--kill", run.run_id, cwd=project_dir)
    ended = wait_for_end(engine, queued.run_id)
    assert [MessageState.ACCEPTED, MessageState.DELIVERED] == states(events_of(engine, ended))
    assert "src/prices.py" in (result_of(engine, ended).final_text or "")
