"""Stopping pi."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from subdeck.core.run.events import AssistantText, ToolCall
from subdeck.core.run.snapshot import RunSnapshot

from tests.factories import end_of, events_of, lives, pid_in, result_of, started
from tests.waiting import wait_until

from .real_pi import NEWER_PI, PATIENCE, RealPi, called, real_pi, said

pytestmark = [pytest.mark.pi, NEWER_PI]

HANGING = {"steps": [{"text": "So far so go"}, {"hang": True}]}


@pytest.fixture
def pi(project_dir: Path, home: Path, pi_executable: str) -> Iterator[RealPi]:
    with real_pi(project_dir, home, pi_executable) as ready:
        yield ready


def ended(pi: RealPi, run: RunSnapshot) -> RunSnapshot:
    (end,) = pi.engine.wait([run.run_id], timeout=PATIENCE)
    return end


@pytest.mark.parametrize("reason", ["stopped", "killed"])
def test_in_the_middle_of_a_shell(pi: RealPi, tmp_path: Path, reason: str) -> None:
    """Stopping a run ends pi's shell and the processes that it left in the background."""
    pi.preset("tools: bash")
    note = tmp_path / "pid"
    shell = f"sleep 1000 & echo $! > {note}.part; mv {note}.part {note}; wait"
    pi.script(called(("bash", {"command": shell}), text="Working."), said("Never asked."))
    run = pi.start("Work.")
    sleeper = wait_until(lambda: note.exists() and pid_in(note), "the shell", PATIENCE)
    child = started(pi.engine, run).child_pid
    pi.engine.stop([run.run_id], force=reason == "killed")
    end = ended(pi, run)

    assert ("aborted", reason, f"{reason} by the user") == (end.status, end.reason, end_of(end).message)
    assert "Working." == result_of(pi.engine, end).final_text
    assert [False, False] == [lives(pid) for pid in (sleeper, child)]
    assert ["bash"] == [event.tool_name for event in events_of(pi.engine, end) if isinstance(event, ToolCall)]
    assert 1 == len(pi.requests)


@pytest.mark.parametrize("reason", ["stopped", "killed"])
def test_in_the_middle_of_a_sentence(pi: RealPi, reason: str) -> None:
    """Stopping a run keeps the unfinished sentence as a partial answer."""
    pi.preset()
    pi.script(HANGING)
    run = pi.start("Say it.")
    wait_until(lambda: pi.engine.snapshots([run.run_id])[0].sentence == "So far so go", "the sentence", PATIENCE)
    pi.engine.stop([run.run_id], force=reason == "killed")
    end = ended(pi, run)
    result = result_of(pi.engine, end)

    assert ("aborted", reason, "So far so go", True) == (end.status, end.reason, result.final_text, result.partial)
    assert [("So far so go", True)] == [
        (event.text, event.partial) for event in events_of(pi.engine, end) if isinstance(event, AssistantText)
    ]


@pytest.mark.parametrize("limit", ["stall", "timeout"])
def test_a_limit(pi: RealPi, limit: str) -> None:
    """A time limit or `stall` ends a run whose model is slow or silent, and keeps its text."""
    pi.preset(f"{limit}: {'6s' if limit == 'stall' else '8s'}")
    pi.script(HANGING)
    end = ended(pi, pi.start("Say it."))
    result = result_of(pi.engine, end)

    reason = {"stall": "stalled", "timeout": "timeout"}[limit]
    assert ("aborted", reason) == (end.status, end.reason)
    assert limit == "timeout" or ("So far so go", True) == (result.final_text, result.partial)
