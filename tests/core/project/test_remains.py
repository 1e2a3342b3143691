"""The result of a run whose wrapper died is made from all files on the disk."""

from __future__ import annotations

import json
import os
import signal
from pathlib import Path
from typing import Any

import pytest
from subdeck.core import paths
from subdeck.core.engine import Engine
from subdeck.core.paths import Project
from subdeck.core.project.liveness import Proof, reconcile
from subdeck.core.run import artifacts
from subdeck.core.run.artifacts import ActivityRecord, RunnerFacts
from subdeck.core.run.events import (
    AssistantText,
    ErrorReported,
    Event,
    RunEnded,
    RunStarted,
    ToolCall,
    ToolResult,
    UsageReported,
    encode_event,
)
from subdeck.core.run.model import Finalized, RunResult
from subdeck.core.run.outcome import FINALIZE_TOOL
from subdeck.core.system import processes

from tests.factories import (
    events_of,
    make_meta,
    make_result,
    make_run,
    open_engine,
    result_of,
    run_dir,
    start,
    started,
    wait_for_end as wait_for_its_end,
    write_runner,
)
from tests.waiting import wait_until

BEGAN, LATER = "2026-01-01T00:00:00.000Z", "2026-01-01T00:00:02.500Z"
HERE = RunnerFacts("process", processes.host(), processes.boot_id(), processes.pid_namespace(), pid=1, pid_started=0)


@pytest.fixture
def project(project_dir: Path) -> Project:
    return Project(str(project_dir))


@pytest.fixture
def engine(project_dir: Path) -> Engine:
    return open_engine(project_dir)


def begun(**more: Any) -> RunStarted:
    return RunStarted(ts=BEGAN, pid=1, child_pid=1, attempt=1, max_attempts=1, **more)


def paid(stop_reason: str = "stop") -> UsageReported:
    return UsageReported(input=1, output=1, cache_read=0, cache_write=0, cost=0.0, model="m", stop_reason=stop_reason)


def abandoned(project: Project, *events: Event, writing: str = "", after: int = 0, **meta: Any) -> Path:
    """Make a run without a holder, with these events; `writing` is the text in progress after the event `after`."""
    run, lock = make_run(project, make_meta(**meta))
    directory = Path(project.run_dir(run.run_id))
    numbered = [type(event)(**{name: getattr(event, name) for name in event.__struct_fields__} | {"seq": number})
                for number, event in enumerate(events, 1)]  # fmt: skip
    (directory / paths.EVENTS).write_bytes(b"".join(map(encode_event, numbered)))
    (directory / paths.TRANSCRIPT).write_text("Run: …\n")
    write_runner(str(directory), HERE)
    if writing:
        middle = len(writing) // 2
        pieces = [json.dumps({"seq": after, "text": text}) for text in (writing[:middle], writing[middle:])]
        (directory / paths.WRITING).write_text("\n".join(pieces) + '\n{"seq":')
    os.close(lock)
    return directory


def finished(project: Project, directory: Path) -> RunResult:
    """Read an abandoned run; return its result."""
    assert Proof.FINISHED is reconcile(project, directory.name, by="test")
    result = artifacts.read_result(str(directory))
    assert result is not None
    return result


def texts(directory: Path) -> list[tuple[str, bool]]:
    events = map(json.loads, (directory / paths.EVENTS).read_text().splitlines())
    return [(event["text"], "partial" in event) for event in events if event["type"] == "assistant_text"]


@pytest.mark.processes
def test_what_a_killed_wrapper_was_told_is_kept(engine: Engine) -> None:
    """The sentence in progress when the wrapper was killed is the answer, marked as incomplete."""
    run = start(engine, "say Interim.", "update So far", 'update  "so" go', "hang")
    path = run_dir(engine, run) / paths.WRITING
    wait_until(lambda: path.exists() and "go" in path.read_text(), "the sentence to be on disk")
    os.kill(started(engine, run).pid, signal.SIGKILL)
    result = result_of(engine, wait_for_its_end(engine, run.run_id))
    assert ("lost", 'So far "so" go', True) == (result.reason, result.final_text, result.partial)
    assert [("Interim.", False), ('So far "so" go', True)] == texts(path.parent)
    assert "[incomplete: the text was cut off here]\nfailed: lost" in (path.parent / paths.TRANSCRIPT).read_text()
    assert list(range(1, len(events := events_of(engine, run)) + 1)) == [event.seq for event in events]
    assert [] == [name for name in os.listdir(path.parent) if name.startswith(".")]


@pytest.mark.processes
def test_a_run_that_ends_leaves_nothing_transient(engine: Engine) -> None:
    """The file of the text in progress is removed at the end of the run."""
    run = start(engine, "update So far", f"wait-for {engine.cwd}/go", "answer So far.")
    wait_until((run_dir(engine, run) / paths.WRITING).exists, "the sentence to be on disk")
    Path(engine.cwd, "go").touch()
    wait_for_its_end(engine, run.run_id)
    wait_until(lambda: not any(name.startswith(".") for name in os.listdir(run_dir(engine, run))), "no hidden file")


@pytest.mark.parametrize("over", [paid(), AssistantText(text="So far so good."), begun()])
def test_a_sentence_that_ended_is_not_taken_again(project: Project, over: Event) -> None:
    """Text in progress before the last message ended is not repeated: that message has it."""
    directory = abandoned(project, begun(), AssistantText(text="Said."), paid(), over, writing="So far", after=3)
    assert not finished(project, directory).partial
    assert ("So far", True) not in texts(directory)


def test_a_sentence_may_be_followed_by_other_events(project: Project) -> None:
    """An event that ends no message keeps the text in progress."""
    call = ToolCall(tool_call_id="1", tool_name="read", args={})
    directory = abandoned(project, begun(), call, writing="So far", after=1)
    assert ("So far", True) == (finished(project, directory).final_text, texts(directory)[-1][1])


def test_the_sentence_of_an_earlier_version(project: Project) -> None:
    """If an earlier version's wrapper kept the sentence only in `active/`, no more than its beginning is lost."""
    directory = abandoned(project, begun(), AssistantText(text="Said."), paid())
    record = ActivityRecord(seq=3, sentence="So far")
    Path(project.active, directory.name).write_text(json.dumps({"seq": record.seq, "sentence": record.sentence}))
    assert ("So far", True) == ((result := finished(project, directory)).final_text, result.partial)


def test_a_prepared_result_is_published(project: Project) -> None:
    """The prepared result of a killed wrapper is published unchanged."""
    directory = abandoned(project, begun(), AssistantText(text="Interim."), writing="So far", after=2)
    prepared = make_result(directory.name, exit_code=0, duration_ms=1234, final_text="42", stop_reason="stop")
    artifacts.prepare_result(str(directory), prepared)
    assert prepared == finished(project, directory)
    assert [("Interim.", False)] == texts(directory)
    assert "run_ended" in (directory / paths.EVENTS).read_text().splitlines()[-1]
    assert (directory / paths.TRANSCRIPT).read_text().endswith("completed: done\n")
    assert [] == [name for name in os.listdir(directory) if name.startswith(".")]


def test_a_prepared_result_after_the_last_event(project: Project) -> None:
    """An end that is already in the events is not written again."""
    directory = abandoned(project, begun(), RunEnded(status="completed", reason="done"))
    artifacts.prepare_result(str(directory), make_result(directory.name))
    finished(project, directory)
    assert 1 == (directory / paths.EVENTS).read_text().count("run_ended")


HANDED = {"status": "SUCCESS", "result": "Found."}


@pytest.mark.parametrize("end", [(), (RunEnded(status="completed", reason="finalized"),)])
def test_a_result_that_was_handed_over(project: Project, end: tuple[Event, ...]) -> None:
    """A structured result from before the wrapper died is the answer, even beside other text."""
    handing = (
        ToolCall(tool_call_id="1", tool_name=FINALIZE_TOOL, args=HANDED),
        ToolResult(tool_call_id="1", tool_name=FINALIZE_TOOL, is_error=False, content="ok"),
    )
    directory = abandoned(project, begun(), AssistantText(text="Done?"), paid("toolUse"), *handing, *end, finalize=True)
    result = finished(project, directory)
    assert ("Found.", Finalized("SUCCESS", "Found.")) == (result.final_text, result.finalized)
    assert ("finalized" if end else "lost") == result.reason


def test_a_refused_result_was_not_handed_over(project: Project) -> None:
    """A refused call gives no structured result."""
    call = ToolCall(tool_call_id="1", tool_name=FINALIZE_TOOL, args=HANDED)
    refused = ToolResult(tool_call_id="1", tool_name=FINALIZE_TOOL, is_error=True, content="no")
    result = finished(project, abandoned(project, begun(), AssistantText(text="Hm."), call, refused, finalize=True))
    assert ("Hm.", None) == (result.final_text, result.finalized)


def test_the_error_of_the_model(project: Project) -> None:
    """If a wrapper wrote its run's end, the result includes the model's error."""
    end = RunEnded(status="failed", reason="model_error")
    directory = abandoned(project, begun(), paid("error"), ErrorReported(message="429: too many"), end)
    result = finished(project, directory)
    assert "429: too many; its wrapper died after writing this result" == result.error_message
    assert "error" == result.stop_reason


def test_a_lost_run_says_the_last_error(project: Project) -> None:
    """An error that the agent was about to retry is shown with the loss; one that is over is not."""
    failing = (begun(), paid("error"), ErrorReported(message="500 boom"))
    assert "(last model error: 500 boom)" in (finished(project, abandoned(project, *failing)).error_message or "")
    over = finished(project, abandoned(project, *failing, AssistantText(text="Well."), paid()))
    assert "its wrapper died unexpectedly; its remaining processes were ended, where found" == over.error_message


def test_how_long_it_ran(project: Project) -> None:
    """A lost run lasted until its last sign of life, however late it is found."""
    result = finished(project, abandoned(project, begun(), AssistantText(text="Said.", ts=LATER)))
    assert (BEGAN, 2500) == (result.started_at, result.duration_ms)


def test_texts_of_one_message_are_one_answer(project: Project) -> None:
    """The answer has all blocks of the last message, as if the wrapper had written it."""
    said = (AssistantText(text="First."), paid(), AssistantText(text="One."), AssistantText(text="Two."), paid())
    assert "One.\n\nTwo." == finished(project, abandoned(project, begun(), *said)).final_text


def test_a_torn_line_stays_alone(project: Project) -> None:
    """After an incomplete line, added events begin on a new line."""
    directory = abandoned(project, begun())
    with (directory / paths.EVENTS).open("a") as file:
        file.write('{"type":"assist')
    finished(project, directory)
    assert '{"type":"run_ended"' == (directory / paths.EVENTS).read_text().splitlines()[-1][:19]


@pytest.mark.parametrize("events", [(), (begun(),)])
def test_a_wrapper_whose_error_found_no_room(project: Project, events: tuple[Any, ...]) -> None:
    """A wrapper with an empty error file, because of a full disk, counts as failed, with or without an agent."""
    directory = abandoned(project, *events)
    (Path(directory) / paths.FAULT).touch()
    result = finished(project, directory)
    assert ("lost", "the wrapper failed, and the error could not be written to disk") == (
        result.reason,
        result.error_message,
    )
