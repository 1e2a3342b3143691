"""The wrapper of an interactive run: waiting for answers, and the death of the wrapper or its agent."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

import pytest
from subdeck.core import paths
from subdeck.core.engine import Engine
from subdeck.core.errors import SubdeckError
from subdeck.core.project.registry import count
from subdeck.core.run.events import Decision, Message, Request, RunStarted
from subdeck.core.run.model import MessageState, RunReason, Verdict
from subdeck.core.run.snapshot import RunSnapshot
from subdeck.core.spec.request import RunRequest

from tests.factories import events_of, result_of, run_dir, wait_for_end, wait_until_gone, write_settings
from tests.waiting import wait_until

from ..offline_agent.offline_reader import SHOP, write_tree

pytestmark = [pytest.mark.processes, pytest.mark.usefixtures("forked_wrappers")]

ASKS = "Where is the token checked? Ask me which file."
ANSWER = "src/auth.py"
RUNS = 100


@pytest.fixture
def project(project_dir: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("SUBDECK_OFFLINE_PACE", "0")
    write_tree(project_dir, SHOP)
    write_settings(agent="offline", agents={})
    return project_dir


@pytest.fixture
def engine(project: Path) -> Engine:
    return Engine.open(str(project))


def asking(engine: Engine) -> RunSnapshot:
    """Start a run and wait until its agent has a question."""
    (run,) = engine.launch([RunRequest(task=ASKS)], background=True)
    wait_until(lambda: any(isinstance(event, Request) for event in events_of(engine, run)), "its request")
    return run


def wrapper_of(engine: Engine, run: RunSnapshot) -> int:
    return next(event.pid for event in events_of(engine, run) if isinstance(event, RunStarted))


def states_of(engine: Engine, run: RunSnapshot, message_id: str) -> list[MessageState]:
    return [event.state for event in events_of(engine, run) if isinstance(event, Message) and event.id == message_id]


def test_a_killed_wrapper_leaves_no_message_untold(engine: Engine) -> None:
    """A message that never reached the agent is late in the records and in the result, and later ones are refused."""
    run = asking(engine)
    wrapper = wrapper_of(engine, run)
    accepted = engine.send(run.run_id, "taken by the wrapper")
    wait_until(lambda: states_of(engine, run, accepted.id), "the first message in the events")
    os.kill(wrapper, signal.SIGSTOP)
    unread = engine.send(run.run_id, "not even read")
    os.kill(wrapper, signal.SIGKILL)
    wait_until_gone(wrapper)
    ended = wait_for_end(engine, run.run_id)
    result = result_of(engine, ended)
    assert RunReason.LOST is result.reason
    left = {undelivered.id: undelivered.text for undelivered in result.undelivered}
    assert "not even read" == left[unread.id]
    delivered = MessageState.DELIVERED in states_of(engine, run, accepted.id)
    assert delivered == (accepted.id not in left)
    assert [MessageState.LATE] == states_of(engine, run, unread.id)
    assert not {paths.INBOX, paths.CLOSED_INBOX} & {*os.listdir(run_dir(engine, run))}
    with pytest.raises(SubdeckError):
        engine.send(run.run_id, "too late")


def test_a_message_to_a_child_that_ends_is_told_to_be_late(engine: Engine) -> None:
    """A message sent while the run is killed is neither lost nor reported as delivered."""
    run = asking(engine)
    wrapper = wrapper_of(engine, run)
    os.kill(wrapper, signal.SIGSTOP)
    engine.stop([run.run_id], force=True)  # this continues the wrapper
    try:
        sent = engine.send(run.run_id, "one more thing")
    except SubdeckError:
        return  # its inbox was closed by then
    ended = wait_for_end(engine, run.run_id)
    states = states_of(engine, ended, sent.id)
    assert MessageState.DELIVERED not in states
    assert MessageState.LATE is states[-1]
    assert ["one more thing"] == [undelivered.text for undelivered in result_of(engine, ended).undelivered]


def test_limits_stand_still_while_it_asks(project: Path) -> None:
    """A run that waits for the user is neither timed out nor stalled."""
    write_settings(agent="offline", agents={}, limits={"timeout": 2, "stall": 2})
    engine = Engine.open(str(project))
    run = asking(engine)
    over = time.monotonic() + 2.5
    wait_until(lambda: time.monotonic() > over, "its limits to be over")
    engine.reply(run.run_id, "q1", Verdict.REPLY, ANSWER)
    ended = wait_for_end(engine, run.run_id)
    assert RunReason.DONE is ended.reason
    assert 2500 <= (result_of(engine, ended).duration_ms or 0)


def test_a_hundred_runs_ask_at_once(engine: Engine, project: Path) -> None:
    """A hundred runs each wait for their own answer, are counted, and continue with it."""
    write_settings(agent="offline", agents={}, max_parallel=RUNS)
    runs = Engine.open(str(project)).launch([RunRequest(task=ASKS)] * RUNS, background=True)
    ids = [run.run_id for run in runs]
    wait_until(lambda: count(engine.snapshots(ids)).waiting == RUNS, "all of them to ask", timeout=120)
    for number, run_id in enumerate(ids):
        engine.reply(run_id, "q1", Verdict.REPLY, ("src/app.py", ANSWER)[number % 2])
    ended = engine.wait(ids, timeout=120)
    assert [RunReason.DONE] * RUNS == [run.reason for run in ended]
    for number, run in enumerate(ended):
        decisions = [event for event in events_of(engine, run) if isinstance(event, Decision)]
        assert [("src/app.py", ANSWER)[number % 2]] == [decision.text for decision in decisions]
