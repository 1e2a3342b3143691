"""The line that explains why a run is not done, and the evidence for it."""

from __future__ import annotations

import os
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from subdeck.core import paths
from subdeck.core.paths import Project
from subdeck.core.project.diagnosis import WINDOW, DiagnosisReader, Evidence, Process, ago, explain
from subdeck.core.run.artifacts import RunnerFacts
from subdeck.core.run.events import (
    AssistantText,
    Event,
    Retry,
    RunStarted,
    ToolCall,
    ToolResult,
    encode_event,
)
from subdeck.core.run.model import RunReason, StopRequest
from subdeck.core.run.outcome import REASONS
from subdeck.core.run.snapshot import RunSnapshot
from subdeck.core.system import processes

from tests.factories import (
    make_finished,
    make_meta,
    make_result,
    make_run,
    make_snapshot,
    open_engine,
    start,
    started,
    wait_for_end,
    write_runner,
)
from tests.waiting import wait_until

NOW = datetime(2026, 1, 1, 12, 0, 0, tzinfo=UTC)


def before(seconds: float) -> str:
    return (NOW - timedelta(seconds=seconds)).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def a_run(status: str, **fields: Any) -> RunSnapshot:
    known: dict[str, Any] = {"last_event_at": before(3)}
    if status == "running":
        known["started_at"] = before(67)
    return make_snapshot(make_meta(created_at=before(70)), status, **(known | fields))


def line(status: str, signs: Evidence | None = None, **fields: Any) -> str:
    return explain(a_run(status, **fields), signs or Evidence(), NOW)


def test_a_running_run() -> None:
    """A running run's line has the time, the living process, the age of the last event, and the open tool calls."""
    evidence = Evidence(
        wrapper=Process(4240, True), child=Process(4242, True), calls=("bash: pytest -q tests/parser", "read: a")
    )
    assert line("running", evidence) == (
        "running 1:07 · pid 4242 alive · last event 3 s ago · waiting for bash: pytest -q tests/parser and 1 more"
    )


@pytest.mark.parametrize(
    ("signs", "fields", "part"),
    [
        (Evidence(wrapper=Process(1, True)), {}, "wrapper pid 1 alive"),
        (Evidence(wrapper=Process(1, False), child=Process(2, True)), {}, "its wrapper, pid 1, has exited"),
        (Evidence(wrapper=Process(1, True), child=Process(2, False)), {}, "pid 2 exited, its result is being written"),
        (Evidence(), {"last_event_at": None}, "no event yet"),
        (Evidence(), {"last_event_at": "yesterday"}, "no event yet"),
        (Evidence(), {"attempt": 2}, "running 1:07 (attempt 2)"),
        (Evidence(), {"sentence": "I look"}, "· writing"),
        (Evidence(), {}, "no tool is running: waiting for the model"),
        (Evidence(retry="Retrying 1/3 in 4 s: 529"), {}, "· Retrying 1/3 in 4 s: 529"),
        (Evidence(stop=StopRequest(by="pi-1", force=False, at="")), {}, "asked to stop by pi-1"),
        (Evidence(stop=StopRequest(by="", force=True, at="")), {}, "to be killed"),
    ],
)
def test_what_a_running_run_waits_for(signs: Evidence, fields: dict[str, Any], part: str) -> None:
    """Each known state of a running run has its words."""
    assert part in line("running", signs, **fields)


@pytest.mark.parametrize(
    ("waits_for", "ahead", "expected"),
    [
        ("slot", 2, "queued 1:10 · waiting for a slot, 2 ahead"),
        ("slot", 0, "queued 1:10 · waiting for a slot, next in line"),
        ("session", 0, "queued 1:10 · waiting for its agent session, which another run is using"),
        ("", 0, "queued 1:10 · has not started yet"),
    ],
)
def test_a_queued_run(waits_for: str, ahead: int, expected: str) -> None:
    """A queued run shows what it waits for, and its position in the queue."""
    assert line("queued", waits_for=waits_for, ahead=ahead) == expected


def test_a_run_of_another_machine() -> None:
    """A run of another machine shows no processes, because they are not visible here."""
    said = line("running", Evidence(elsewhere="far\x1b[31m away"), elsewhere=True)
    assert said == (
        "running when last seen · another machine (far away) holds it: its processes are not visible here"
        " · last event 3 s ago"
    )


@pytest.mark.parametrize("reason", list(RunReason))
def test_every_end_has_words(reason: RunReason) -> None:
    """Every reason of the closed list has a sentence."""
    result = make_result("x", reason)
    said = explain(
        make_snapshot(make_meta(), result.status, reason=reason, duration_ms=3000), Evidence(result=result), NOW
    )
    assert said == f"{result.status} after 0:03 · {REASONS[reason]}"


def test_how_a_run_ended() -> None:
    """A message, exit code, signal and attempts follow the reason; a message of subdeck replaces it."""
    error = make_result("x", RunReason.MODEL_ERROR, exit_code=1, attempts=3)
    run = a_run("failed", message="401 [bold]no\x1b[2J key", duration_ms=3000)
    assert explain(run, Evidence(result=error), NOW) == (
        "failed after 0:03 · the model answered with an error: 401 [bold]no key · exit code 1 · 3 attempts"
    )
    killed = a_run("aborted", reason=RunReason.KILLED, message="killed by the user", duration_ms=61_000)
    result = make_result("x", RunReason.KILLED, signal="SIGKILL")
    assert explain(killed, Evidence(result=result), NOW) == "aborted after 1:01 · killed by the user · by SIGKILL"


@pytest.mark.parametrize(
    ("seconds", "words"), [(-5, "0 s"), (119.9, "119 s"), (120, "2 min"), (7200, "2 h"), (200_000, "2 days")]
)
def test_ages(seconds: float, words: str) -> None:
    """An age is one short figure, and never negative."""
    assert ago(seconds) == words


# --- evidence --------------------------------------------------------------------------------------------------------


@pytest.fixture
def project(project_dir: Path) -> Project:
    return Project(str(project_dir))


class Scene:
    """A running run without a wrapper, whose events a test writes."""

    def __init__(self, project: Project) -> None:
        self.meta, lock = make_run(project)
        os.close(lock)
        self.run_dir = project.run_dir(self.meta.run_id)
        self.run = make_snapshot(self.meta, "running")
        self.reader = DiagnosisReader(project, self.meta.run_id)
        self._seq = 0

    def write(self, *events: Event) -> None:
        with open(os.path.join(self.run_dir, paths.EVENTS), "ab") as file:
            for event in events:
                file.write(encode_event(event))

    def look(self) -> Evidence:
        return self.reader.read(self.run)


def call(number: int, **args: Any) -> ToolCall:
    return ToolCall(seq=number, tool_call_id=str(number), tool_name="bash", args=args)


def result(number: int, content: str = "") -> ToolResult:
    return ToolResult(seq=number, tool_call_id=str(number), tool_name="bash", is_error=False, content=content)


def begun(pid: int = 1, began: int | None = 1, attempt: int = 1) -> RunStarted:
    return RunStarted(pid=1, child_pid=pid, child_pid_started=began, attempt=attempt, max_attempts=3)


def test_calls_without_a_result_are_waited_for(project: Project) -> None:
    """A call is shown until its result comes; a new attempt drops the calls of the earlier one."""
    scene = Scene(project)
    assert scene.look() == Evidence()
    scene.write(begun(), call(1, command="pytest -q\n\x1b[31mtests"), call(2, timeout=3, note="x" * 500))
    looked = scene.look()
    assert looked.calls[0] == "bash: pytest -q tests"
    assert looked.calls[1].startswith("bash: xxx") and len(looked.calls[1]) < 120
    scene.write(result(1))
    assert len(scene.look().calls) == 1
    scene.write(begun(attempt=2), call(3), call(4, path=".", pattern="door"))
    assert scene.look().calls == ("bash", "bash: door")


def test_a_retry_is_told_until_something_else_happens(project: Project) -> None:
    """The last event decides whether a retry is in progress."""
    scene = Scene(project)
    scene.write(begun(), Retry(attempt=1, max_attempts=3, delay_ms=4000, reason="529 overloaded"))
    assert scene.look().retry == "Retrying 1/3 in 4 s: 529 overloaded"
    scene.write(AssistantText(text="here I am"))
    assert (scene.look().retry, scene.reader.text) == ("", "here I am")


def test_torn_and_foreign_lines_say_nothing(project: Project) -> None:
    """A line that is not an event, or has an unknown type, is skipped."""
    scene = Scene(project)
    with open(os.path.join(scene.run_dir, paths.EVENTS), "wb") as file:
        file.write(b'not json\n{"type":"from_the_future","seq":1}\n\xff\xfe\n')
    scene.write(call(1, command="make"))
    assert scene.look().calls == ("bash: make",)


def test_only_the_end_of_a_big_file_is_read(project: Project) -> None:
    """Only the last part of a long record is read, and its first lines for the agent's process."""
    scene = Scene(project)
    own = processes.start_time(os.getpid())
    old = [call(1000, command="old"), *(result(number, "x" * 4000) for number in range(400))]
    scene.write(begun(os.getpid(), own), *old, call(1, command="make"))
    assert os.path.getsize(os.path.join(scene.run_dir, paths.EVENTS)) > 2 * WINDOW
    write_runner(scene.run_dir, here(os.getpid(), own))
    looked = scene.look()
    assert looked.calls == ("bash: make",)
    assert looked.child == Process(os.getpid(), True)
    scene.write(result(1))
    assert scene.look().calls == ()


def here(pid: int, began: int | None) -> RunnerFacts:
    return RunnerFacts("process", processes.host(), processes.boot_id(), processes.pid_namespace(), pid, began)


def test_a_pid_alone_proves_nothing(project: Project) -> None:
    """A process counts only with its start time: a later process with the same pid is another one."""
    scene = Scene(project)
    own = processes.start_time(os.getpid())
    assert own is not None
    scene.write(begun(os.getpid(), None))
    write_runner(scene.run_dir, here(os.getpid(), own + 1))
    looked = scene.look()
    assert (looked.wrapper, looked.child) == (Process(os.getpid(), False), None)


def test_processes_of_another_machine_are_not_looked_for(project: Project) -> None:
    """If the pids belong to another host, only its name is shown."""
    scene = Scene(project)
    write_runner(scene.run_dir, RunnerFacts("process", "elsewhere", "b", "n", os.getpid(), 1))
    looked = scene.look()
    assert (looked.wrapper, looked.elsewhere) == (None, "elsewhere")


def test_a_finished_run_has_its_result(project: Project) -> None:
    """For a finished run only its result is read."""
    meta = make_finished(project, exit_code=0)
    looked = DiagnosisReader(project, meta.run_id).read(make_snapshot(meta))
    assert looked.result is not None and looked.result.exit_code == 0
    assert looked.calls == ()


@pytest.mark.processes
def test_a_real_run(project_dir: Path) -> None:
    """The line of a running run names the living agent, and reports when it was killed."""
    engine = open_engine(project_dir)
    run = start(engine, "hang")
    child = started(engine, run).child_pid
    reader = DiagnosisReader(engine.project, run.run_id)

    def said() -> str:
        (now,) = engine.snapshots([run.run_id])
        return explain(now, reader.read(now), datetime.now(UTC))

    wait_until(lambda: f"pid {child} alive" in said(), "the child to be told alive")
    engine.stop([run.run_id], force=True)
    wait_for_end(engine, run.run_id)
    assert said().startswith("aborted after 0:")
    assert "killed by" in said()
