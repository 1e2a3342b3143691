"""A run opened in the agent: its owner, messages in between, and its continuation, whichever process dies."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import ClassVar

import pytest
from subdeck.core.budget.ledger import DayBook, local_day
from subdeck.core.engine import Engine
from subdeck.core.errors import SubdeckError
from subdeck.core.run import second_copy
from subdeck.core.run.events import HandedBack, Message, TakenOver
from subdeck.core.run.model import Verdict
from subdeck.core.run.snapshot import RunSnapshot
from subdeck.core.spec.request import RunRequest

from tests.factories import (
    CHILDREN,
    events_of,
    open_engine,
    result_of,
    run_dir,
    started,
    wait_for_end,
    wait_until_gone,
)
from tests.waiting import wait_until

from ..conversing import parts, write_preset

pytestmark = [pytest.mark.processes, pytest.mark.usefixtures("forked_wrappers")]

LONG = "say Begun.\nhang"


class Program:
    """The stand-in, with the agent's own program on its pipes."""

    started: ClassVar[list[Program]] = []

    def __init__(self, engine: Engine, run_id: str) -> None:
        self.process = subprocess.Popen(
            engine.take_over(run_id), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1
        )
        self.started.append(self)

    def read_until(self, words: str) -> None:
        assert self.process.stdout is not None
        lines: list[str] = []
        for line in self.process.stdout:
            if words in line:
                return
            lines.append(line)
        raise AssertionError(f"{words} was not written, but {lines}")

    def say(self, line: str) -> None:
        self.type(line)
        self.read_until("said")

    def type(self, line: str) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(f"{line}\n")

    def leave(self) -> None:
        self.type("leave")
        assert 0 == self.process.wait(10)


@pytest.fixture(autouse=True)
def ended() -> Iterator[None]:
    yield
    for program in Program.started:
        program.process.kill()
        program.process.communicate()
    Program.started.clear()


@pytest.fixture
def engine(project_dir: Path) -> Engine:
    write_preset(project_dir)
    return open_engine(project_dir, command=(sys.executable, "-I", "-S", str(CHILDREN / "interactive.py")))


def begin(engine: Engine, *scripts: str) -> RunSnapshot:
    (run,) = engine.launch([RunRequest(task=parts(*scripts), preset="scout")], background=True)
    wait_until(lambda: current(engine, run).usage.turns, "the child to begin")
    return run


def current(engine: Engine, run: RunSnapshot) -> RunSnapshot:
    (now,) = engine.snapshots([run.run_id])
    return now


def waits(engine: Engine, run: RunSnapshot) -> RunSnapshot:
    """Wait until the run is returned and asks how to continue."""
    wait_until(lambda: current(engine, run).is_waiting, "the question how it goes on")
    return current(engine, run)


@pytest.fixture
def taken(engine: Engine) -> Iterator[tuple[RunSnapshot, Program]]:
    """A run opened in the agent in the middle of a turn, and the agent's program."""
    run = begin(engine, LONG, "say Gone on.\nfinish")
    program = Program(engine, run.run_id)
    program.read_until(f"by hand {run.run_id}")
    yield run, program
    engine.stop([run.run_id], force=True)
    wait_for_end(engine, run.run_id)


Taken = tuple[RunSnapshot, Program]


def test_nobody_else_takes_it_over(engine: Engine, taken: Taken) -> None:
    """An open run shows its user and is running, and a second user gets the reason for the refusal."""
    run, program = taken
    now = current(engine, run)
    assert (True, "running", False) == (now.is_taken_over, now.status, now.is_waiting)
    assert ["operator"] == [event.by for event in events_of(engine, run) if isinstance(event, TakenOver)]
    with pytest.raises(SubdeckError, match="already open in the agent"):
        engine.take_over(run.run_id)
    with pytest.raises(SubdeckError, match="cannot be interrupted"):
        engine.interrupt(run.run_id)
    program.leave()


def test_limits_stand_still(project_dir: Path, engine: Engine) -> None:
    """Time in the agent's program does not count against the run's limits."""
    write_preset(project_dir, "timeout: 5")
    run = begin(engine, LONG, "say Gone on.\nfinish")
    began = time.monotonic()
    program = Program(engine, run.run_id)
    program.read_until("by hand")
    wait_until(lambda: time.monotonic() > began + 5, "more time than the run may take")
    program.leave()
    waits(engine, run)
    engine.reply(run.run_id, "", Verdict.REPLY, "continue")
    assert "done" == wait_for_end(engine, run.run_id).reason


def test_the_wrapper_is_killed_before_its_child_has_ended(engine: Engine) -> None:
    """A program waiting for a run whose wrapper was killed ends with an error, and the run is finished."""
    run = begin(engine, "deaf\nsay Begun.\nhang")
    os.kill(started(engine, run).pid, signal.SIGSTOP)
    program = Program(engine, run.run_id)
    program.read_until("when its turn ends")
    os.kill(started(engine, run).pid, signal.SIGKILL)
    program.read_until("has just finished")
    assert 2 == program.process.wait(60)
    assert "lost" == wait_for_end(engine, run.run_id).reason


def test_finishing_here(engine: Engine, taken: Taken) -> None:
    """A run returned and finished there is done, with the last whole answer as its text."""
    run, program = taken
    program.say("Why?")
    program.say("Tell me.")
    program.leave()
    waits(engine, run)
    engine.reply(run.run_id, "", Verdict.REPLY, "finish here")
    ended = wait_for_end(engine, run.run_id)
    assert ("done", "You said: Tell me.") == (ended.reason, result_of(engine, ended).final_text)
    told = [event for event in events_of(engine, ended) if isinstance(event, Message)]
    assert [("Why?", "operator", "delivered"), ("Tell me.", "operator", "delivered")] == [
        (event.text, event.by, event.state) for event in told
    ]


def test_finishing_in_the_middle(engine: Engine, taken: Taken) -> None:
    """Without a whole last answer the run is aborted and keeps its text."""
    run, program = taken
    program.say("Why?")
    program.leave()
    waits(engine, run)
    engine.reply(run.run_id, "", Verdict.DENY)
    ended = wait_for_end(engine, run.run_id)
    assert ("aborted", "interrupted", "Begun.") == (ended.status, ended.reason, result_of(engine, ended).final_text)


def test_going_on(engine: Engine, taken: Taken) -> None:
    """A run that continues does so in its first attempt and in the same conversation."""
    run, program = taken
    program.leave()
    waits(engine, run)
    engine.reply(run.run_id, "", Verdict.REPLY, "continue")
    ended = wait_for_end(engine, run.run_id)
    result = result_of(engine, ended)
    assert ("done", "Gone on.", 1) == (ended.reason, result.final_text, result.attempts)


def test_what_is_spent_by_hand_counts(project_dir: Path, engine: Engine) -> None:
    """Spending in the agent's program counts against the run's budget and in the ledger of the day."""
    write_preset(project_dir, "budget: 1.0")
    run = begin(engine, LONG, "say Gone on.\nfinish")
    program = Program(engine, run.run_id)
    program.read_until("by hand")
    program.say("pay 0.75")
    program.leave()
    waits(engine, run)
    engine.reply(run.run_id, "", Verdict.REPLY, "continue")
    ended = wait_for_end(engine, run.run_id)
    result = result_of(engine, ended)
    assert ("aborted", "budget", "You said: pay 0.75") == (ended.status, ended.reason, result.final_text)
    assert ("the run reached its budget: spent $1.25 of $1.00", 1.25) == (result.error_message, result.usage.cost)
    today = DayBook(local_day())
    today.look()
    assert (1.25, 0.0) == (today.sum().spent, today.sum().held)


def test_a_message_meanwhile(engine: Engine, taken: Taken) -> None:
    """A message sent while a run is open in the agent continues the run once it is returned."""
    run, program = taken
    engine.send(run.run_id, "And then this.")
    program.leave()
    ended = wait_for_end(engine, run.run_id)
    assert ("done", "Gone on.") == (ended.reason, result_of(engine, ended).final_text)
    assert "And then this." in (run_dir(engine, run) / "child-session.jsonl").read_text()
    assert () == result_of(engine, ended).undelivered


def test_taken_over_again(engine: Engine, taken: Taken) -> None:
    """Opening a returned run again withdraws its question."""
    run, program = taken
    program.leave()
    waits(engine, run)
    again = Program(engine, run.run_id)
    again.read_until("by hand")
    assert not current(engine, run).is_waiting
    again.say("Say it.")
    again.leave()
    waits(engine, run)


@pytest.mark.parametrize("force", [False, True])
def test_stopping(engine: Engine, taken: Taken, force: bool) -> None:
    """An open run can be stopped and killed, and the agent's program ends with it."""
    run, program = taken
    engine.stop([run.run_id], force=force)
    ended = wait_for_end(engine, run.run_id)
    assert ("killed" if force else "stopped") == ended.reason
    assert 0 != program.process.wait(10)
    assert not (run_dir(engine, run) / ".invitation").exists()


def test_the_stand_in_is_killed(engine: Engine, taken: Taken) -> None:
    """If the starter of the agent's program is killed, the program ends and the run is returned."""
    run, program = taken
    program.say("Say it.")
    program.process.kill()
    waits(engine, run)
    assert any(isinstance(event, HandedBack) for event in events_of(engine, run))


def test_nobody_comes(engine: Engine) -> None:
    """If the requester is killed before the agent has ended, the run is returned at once."""
    run = begin(engine, "deaf\nsay Begun.\nhang")
    program = Program(engine, run.run_id)
    wait_until(
        lambda: os.listdir(f"{second_copy.trusted_directory(str(run_dir(engine, run)))}/inbox"), "the wish to be there"
    )
    program.process.kill()
    waits(engine, run)
    engine.reply(run.run_id, "", Verdict.DENY)
    wait_for_end(engine, run.run_id)


def test_the_wrapper_is_killed(engine: Engine, taken: Taken) -> None:
    """If the wrapper dies, the user keeps the open run, which is finished when they leave."""
    run, program = taken
    pid = started(engine, run).pid
    os.kill(pid, signal.SIGKILL)
    wait_until_gone(pid)
    program.say("Still here.")
    assert "running" == current(engine, run).status
    program.leave()
    ended = wait_for_end(engine, run.run_id)
    assert ("lost", "take-over") == (ended.reason, result_of(engine, ended).written_by)


def test_a_finished_run(engine: Engine) -> None:
    """A finished run continues in a new run with its whole conversation."""
    run = begin(engine, "say Begun.\nfinish")
    wait_for_end(engine, run.run_id)
    program = Program(engine, run.run_id)
    program.read_until("by hand")
    (newest,) = (now for now in engine.snapshots() if now.run_id != run.run_id)
    assert (run.run_id, True) == (newest.meta.origin.follow_up, newest.is_taken_over)
    program.say("Say it.")
    program.leave()
    waits(engine, newest)
    engine.reply(newest.run_id, "", Verdict.REPLY, "finish here")
    ended = wait_for_end(engine, newest.run_id)
    assert ("done", "You said: Say it.") == (ended.reason, result_of(engine, ended).final_text)
    assert "done" == current(engine, run).reason
