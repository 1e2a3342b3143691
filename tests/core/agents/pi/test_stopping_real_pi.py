"""Stopping pi."""

from __future__ import annotations

from pathlib import Path

import pytest
from subdeck.core.run.events import AssistantText, ToolCall

from tests.factories import end_of, events_of, lives, pid_in, result_of, started
from tests.real.lab import NEWER_PI, PATIENCE, Lab
from tests.real.model_server import called, said
from tests.waiting import wait_until

pytestmark = [pytest.mark.pi, NEWER_PI]

HANGING = {"steps": [{"text": "So far so go"}, {"hang": True}]}


@pytest.mark.parametrize("reason", ["stopped", "killed"])
def test_in_the_middle_of_a_shell(pi: Lab, tmp_path: Path, reason: str) -> None:
    """Stopping a run ends pi's shell and the processes that it left in the background."""
    pi.preset("tools: bash")
    note = tmp_path / "pid"
    shell = f"sleep 1000 & echo $! > {note}.part; mv {note}.part {note}; wait"
    pi.script(called(("bash", {"command": shell}), text="Working."), said("Never asked."))
    run = pi.start("Work.")
    sleeper = wait_until(lambda: note.exists() and pid_in(note), "the shell", PATIENCE)
    child = started(pi.engine, run).child_pid
    pi.engine.stop([run.run_id], force=reason == "killed")
    end = pi.wait(run)

    assert ("aborted", reason, f"{reason} by the user") == (end.status, end.reason, end_of(end).message)
    assert "Working." == result_of(pi.engine, end).final_text
    assert [False, False] == [lives(pid) for pid in (sleeper, child)]
    assert ["bash"] == [event.tool_name for event in events_of(pi.engine, end) if isinstance(event, ToolCall)]
    assert 1 == len(pi.requests)


@pytest.mark.parametrize("reason", ["stopped", "killed"])
def test_in_the_middle_of_a_sentence(pi: Lab, reason: str) -> None:
    """Stopping a run keeps the unfinished sentence as a partial answer."""
    pi.preset()
    pi.script(HANGING)
    run = pi.start("Say it.")
    wait_until(lambda: pi.engine.snapshots([run.run_id])[0].sentence == "So far so go", "the sentence", PATIENCE)
    pi.engine.stop([run.run_id], force=reason == "killed")
    end = pi.wait(run)
    result = result_of(pi.engine, end)

    assert ("aborted", reason, "So far so go", True) == (end.status, end.reason, result.final_text, result.partial)
    assert [("So far so go", True)] == [
        (event.text, event.partial) for event in events_of(pi.engine, end) if isinstance(event, AssistantText)
    ]


@pytest.mark.parametrize("limit", ["stall", "timeout"])
def test_a_limit(pi: Lab, limit: str) -> None:
    """A time limit or `stall` ends a run whose model is slow or silent, and keeps its text."""
    pi.preset(f"{limit}: {'6s' if limit == 'stall' else '8s'}")
    pi.script(HANGING)
    end = pi.wait(pi.start("Say it."))
    result = result_of(pi.engine, end)

    reason = {"stall": "stalled", "timeout": "timeout"}[limit]
    assert ("aborted", reason) == (end.status, end.reason)
    assert limit == "timeout" or ("So far so go", True) == (result.final_text, result.partial)
