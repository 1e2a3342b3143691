"""The endings of runs with well and badly behaved agents, with real processes."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest
from subdeck.core.engine import Engine
from subdeck.core.errors import AgentUnavailable
from subdeck.core.run.events import AssistantText, Notice, RunEnded, RunStarted, ToolCall, UsageReported

from tests.factories import (
    PUPPET,
    end_of,
    events_of,
    lives,
    open_engine,
    pid_in,
    request,
    result_of,
    run_dir,
    run_to_end,
    start,
    started,
    wait_for_end,
    wait_until_gone,
)

pytestmark = [pytest.mark.processes, pytest.mark.usefixtures("forked_wrappers")]


@pytest.fixture
def engine(project_dir: Path) -> Engine:
    return open_engine(project_dir)


def ending(run) -> tuple[str, str]:
    return (run.status.value, run.reason.value)


def test_an_answer_completes_a_run(engine: Engine) -> None:
    """An answer and a positive end make `completed: done`, with text, usage, model and exit code in the result."""
    run = run_to_end(engine, "tool read", "answer All is well.")
    result = result_of(engine, run)
    assert ("completed", "done") == ending(run)
    assert ("All is well.", 0, None, "stop", "wrapper") == (
        result.final_text,
        result.exit_code,
        result.signal,
        result.stop_reason,
        result.written_by,
    )
    assert (10, 5, 2, 1, 0.5, 1, 1) == (
        result.usage.input,
        result.usage.output,
        result.usage.cache_read,
        result.usage.cache_write,
        result.usage.cost,
        result.usage.turns,
        result.usage.tool_uses,
    )
    assert ("fake/puppet", ()) == (result.resolved_model, result.artifact_errors)
    assert result.duration_ms is not None
    assert next(event.ts for event in events_of(engine, run) if isinstance(event, RunStarted)) == result.started_at


def test_events_are_numbered_from_one(engine: Engine) -> None:
    """The sequence numbers of a run's events have no gap, and the last event gives the outcome."""
    events = events_of(engine, run_to_end(engine, "tool read", "answer All is well."))
    assert list(range(1, len(events) + 1)) == [event.seq for event in events]
    end = events[-1]
    assert isinstance(end, RunEnded)
    assert (len(events), "completed", "done") == (end.seq, end.status, end.reason)


def test_the_files_of_a_finished_run(engine: Engine) -> None:
    """A finished run's records are readable only by its owner, and no activity, lock-step or temporary file is left."""
    run = run_to_end(engine, "complain a word on stderr", "answer All is well.")
    wait_until_gone(started(engine, run).pid)  # it cleans up after the result is published
    files = {file.name: file.stat().st_mode & 0o777 for file in run_dir(engine, run).iterdir()}
    names = ("child-session.jsonl", "events.jsonl", "lock", "meta.json", "prompt.md", "result.json", "runner.json")
    assert dict.fromkeys((*names, "stderr.log", "stdout.log", "transcript.log"), 0o600) == files
    assert 0o700 == run_dir(engine, run).stat().st_mode & 0o777
    assert [] == os.listdir(engine.project.active)


def test_the_transcript_is_for_people(engine: Engine) -> None:
    """The transcript has the run's overview, its task and the agent's actions in words, without control characters."""
    run = run_to_end(engine, "tool read", "answer Red \x1b[31mherring\x1b[0m.")
    transcript = (run_dir(engine, run) / "transcript.log").read_text()
    for part in (run.run_id, "fake/puppet", "tool read", "Reading a.py", "Red herring."):
        assert part in transcript
    assert "\x1b" not in transcript


def test_updates_are_not_kept(engine: Engine) -> None:
    """Lines that a later one repeats whole are left out of stdout.log; all others are kept unchanged."""
    run = run_to_end(engine, "update Hal", "update lo", "raw plain", "answer Hallo")
    kept = (run_dir(engine, run) / "stdout.log").read_text().splitlines()
    assert "message_update" not in "".join(kept)
    assert ["plain", '{"type":"agent_settled","aborted":false}'] == [kept[0], kept[-1]]


@pytest.mark.parametrize(
    ("script", "expected", "part"),
    [
        (("leave 0",), "agent_exit", "exited with code 0"),
        (("say I will look.", "leave 0"), "agent_exit", "exited with code 0"),
        (
            ("complain Error: no such model", "leave 3"),
            "agent_exit",
            "exited with code 3 before it finished: Error: no",
        ),
        (("die SIGKILL",), "agent_exit", "was killed by SIGKILL"),
        (("say I will look.", "die SIGSEGV"), "agent_exit", "was killed by SIGSEGV"),
        (("error 401 Invalid API key", "finish", "leave 0"), "model_error", "401 Invalid API key"),
        (("empty", "finish"), "empty_answer", "without writing any text"),
        (("garbage 3000", "leave 0"), "agent_exit", "exited with code 0"),
        (("close-stdout", "leave 0"), "agent_exit", "exited with code 0"),
        (("finish",), "empty_answer", "without writing any text"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else None,
)
def test_what_did_not_succeed_has_failed(engine: Engine, script: tuple[str, ...], expected: str, part: str) -> None:
    """An agent that crashes, errs or gives no answer has failed, with its reason, under any exit code."""
    run = run_to_end(engine, *script)
    assert ("failed", expected) == ending(run)
    assert part in end_of(run).message


def test_the_exit_of_a_killed_child(engine: Engine) -> None:
    """A killed agent is `failed: agent_exit` with the signal's name and no exit code."""
    run = start(engine, "say Working.", "hang")
    os.kill(started(engine, run).child_pid, signal.SIGKILL)
    run = wait_for_end(engine, run.run_id)
    result = result_of(engine, run)
    assert ("failed", "agent_exit", "SIGKILL", None) == (*ending(run), result.signal, result.exit_code)


def test_a_cut_answer_is_told(engine: Engine) -> None:
    """An answer cut by the model's length limit is `completed: truncated`."""
    assert ("completed", "truncated") == ending(run_to_end(engine, "cut-off The first half", "finish"))


def test_a_child_that_cannot_be_executed(project_dir: Path, tmp_path: Path) -> None:
    """A missing or non-executable program is reported before anything is written."""
    program = tmp_path / "agent"
    engine = open_engine(project_dir, [str(program)])
    for _ in ("missing", "not executable"):
        with pytest.raises(AgentUnavailable, match=str(program)):
            engine.launch([request("answer ok")], background=True)
        program.touch(0o600)
    assert [".git"] == os.listdir(project_dir)


@pytest.mark.parametrize(
    ("content", "reason"), [("#!/no/such/interpreter\n", "agent_missing"), ("no program at all", "start_failed")]
)
def test_a_program_that_will_not_start(project_dir: Path, tmp_path: Path, content: str, reason: str) -> None:
    """A program that fails only when started makes the run fail, and the result names it."""
    program = tmp_path / "agent"
    program.write_text(content)
    program.chmod(0o755)
    run = run_to_end(open_engine(project_dir, [str(program)]), "answer ok")
    assert ("failed", reason) == ending(run)
    assert str(program) in end_of(run).message


def test_a_program_that_vanishes_while_queued(project_dir: Path, tmp_path: Path) -> None:
    """A program removed between launch and start makes the run `failed: agent_missing`."""
    program, gate = tmp_path / "agent", tmp_path / "gate"
    program.write_text(f"#!/bin/sh\nexec {' '.join(PUPPET)}\n")
    program.chmod(0o755)
    engine = open_engine(project_dir, [str(program)], max_running=1)
    started(engine, start(engine, f"wait-for {gate}", "answer ok"))
    second = start(engine, "answer ok")
    program.unlink()
    gate.touch()
    assert ("failed", "agent_missing") == ending(wait_for_end(engine, second.run_id))


def test_a_directory_that_vanishes_while_queued(project_dir: Path, tmp_path: Path) -> None:
    """The result names a working directory that was removed between launch and start."""
    cwd, gate = tmp_path / "work", tmp_path / "gate"
    cwd.mkdir()
    engine = open_engine(project_dir, max_running=1)
    started(engine, start(engine, f"wait-for {gate}", "answer ok"))
    second = start(engine, "answer ok", cwd=str(cwd))
    cwd.rmdir()
    gate.touch()
    run = wait_for_end(engine, second.run_id)
    assert ("failed", "start_failed") == ending(run)
    assert str(cwd) in end_of(run).message


def test_garbage_is_told_once_and_survived(engine: Engine) -> None:
    """Bytes that are not events give one warning, are kept in stdout.log, and do not hide the answer after them."""
    run = run_to_end(engine, "garbage 5000", "raw not json", "garbage 5000", "answer All the same.")
    warnings = [event for event in events_of(engine, run) if isinstance(event, Notice)]
    assert (("completed", "done"), 1) == (ending(run), len(warnings))
    assert "All the same." == result_of(engine, run).final_text
    assert b"not json" in (run_dir(engine, run) / "stdout.log").read_bytes()


def test_very_long_lines(engine: Engine) -> None:
    """A line of 2 MB between others arrives whole."""
    run = run_to_end(engine, "say Before.", "say-big 2000000", "answer After.")
    texts = [event.text for event in events_of(engine, run) if isinstance(event, AssistantText)]
    assert ["Before.", "x" * 2_000_000, "After."] == texts


def test_line_separators_are_text(engine: Engine) -> None:
    """U+2028, U+0085 and similar characters inside a JSON string do not break a line."""
    said = "one\u2028two\u2029three\x85four\x0cfive"
    script = (
        "raw "
        + f'{{"type":"message_end","message":{{"role":"assistant","content":[{{"type":"text","text":"{said}"}}]}}}}'
    )
    encoded = script.encode("unicode_escape").decode()
    run = run_to_end(engine, encoded.replace("\\x0c", "\\\\f"), "finish")
    assert (("completed", "done"), "one\u2028two\u2029three\x85four\x0cfive") == (
        ending(run),
        result_of(engine, run).final_text,
    )


def test_stdout_closed_before_the_end(engine: Engine) -> None:
    """An agent that closes its stdout early is ended after the grace and has failed."""
    run = start(engine, "say Working.", "close-stdout", "hang")
    pid = started(engine, run).child_pid
    run = wait_for_end(engine, run.run_id)
    assert ("failed", "agent_exit") == ending(run)
    wait_until_gone(pid)


@pytest.mark.parametrize("finish", ["finish", "finish-old"])
@pytest.mark.parametrize(("ears", "ended_by"), [("deaf", "SIGKILL"), ("tool read", "SIGTERM")])
def test_a_child_that_stays_after_its_end(engine: Engine, finish: str, ears: str, ended_by: str) -> None:
    """A finished agent that does not exit gets TERM after the grace, then KILL, and has completed."""
    run = run_to_end(engine, ears, "say Done.", finish, "hang")
    assert (("completed", "done"), ended_by) == (ending(run), result_of(engine, run).signal)


def test_a_child_that_goes_on_after_an_end(project_dir: Path) -> None:
    """If the agent starts again after its end, the end no longer counts, and its grace ends without a TERM."""
    engine = open_engine(project_dir, grace_seconds=0.8)
    again = 'raw {"type":"agent_start"}'
    run = run_to_end(engine, "say First.", "finish", "linger 0.05", again, "linger 1", "answer Second.")
    assert (("completed", "done"), "Second.") == (ending(run), result_of(engine, run).final_text)


def test_what_a_child_leaves_behind_is_ended(engine: Engine, tmp_path: Path) -> None:
    """A process in its own session is ended with the run, with or without the run's mark."""
    run = run_to_end(engine, f"detach {tmp_path}/one", f"detach-unmarked {tmp_path}/two", "answer Done.")
    assert ("completed", "done") == ending(run)
    assert [False, False] == [lives(pid_in(tmp_path / name)) for name in ("one", "two")]


def test_usage_adds_up(engine: Engine) -> None:
    """Each assistant message is counted once, and the result has the sum."""
    run = run_to_end(engine, "say-many 30", "finish")
    paid = [event for event in events_of(engine, run) if isinstance(event, UsageReported)]
    assert (30, 300, 30) == (len(paid), result_of(engine, run).usage.input, run.usage.turns)


def test_tool_calls_are_events(engine: Engine) -> None:
    """A tool call has its name and arguments."""
    (call,) = [
        event
        for event in events_of(engine, run_to_end(engine, "tool grep", "answer ok"))
        if isinstance(event, ToolCall)
    ]
    assert ("c1", "grep", {"path": "a.py"}) == (call.tool_call_id, call.tool_name, call.args)
