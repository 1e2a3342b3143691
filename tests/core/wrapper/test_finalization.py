"""Finalization: an agent returns its result by a tool, or the same session is asked again."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from subdeck.core.engine import Engine
from subdeck.core.paths import Project
from subdeck.core.run import artifacts
from subdeck.core.run.events import ARGS_LIMIT, CONTENT_LIMIT, Retry, ToolCall
from subdeck.core.run.model import Finalized, FinalizeStatus, Usage
from subdeck.core.run.outcome import FINALIZE_TOOL, INSTRUCTION, InvalidPayload, feedback, read_payload
from subdeck.core.run.snapshot import Running
from subdeck.core.spec.request import RunRequest

from tests.factories import (
    PUPPET,
    end_of,
    events_of,
    make_meta,
    make_run,
    open_engine,
    result_of,
    run_dir,
    start,
    wait_for_end,
    write_settings,
)
from tests.waiting import wait_until

from ..conversing import (
    CONVERSING,
    ask,
    call,
    hand_over,
    parts,
    prompt,
    prompts_in,
    run,
    script,
    session_entries,
    starts,
    write_preset,
)

pytestmark = [pytest.mark.processes, pytest.mark.usefixtures("forked_wrappers")]

NOTHING = script("say I think I am done.", "finish")
"""An attempt that ends without the call."""


@pytest.fixture
def engine(project_dir: Path) -> Engine:
    write_preset(project_dir, "structured_result: true")
    return open_engine(project_dir, CONVERSING)


@pytest.mark.parametrize(
    ("payload", "expected"),
    [
        ({"status": "SUCCESS", "result": "All good."}, Finalized(FinalizeStatus.SUCCESS, "All good.")),
        ({"status": "SUCCESS", "result": "All good.", "error": " "}, Finalized(FinalizeStatus.SUCCESS, "All good.")),
        ({"status": "ERROR", "error": "No network."}, Finalized(FinalizeStatus.ERROR, None, "No network.")),
        ({"status": "ERROR", "error": "No.", "result": "Half."}, Finalized(FinalizeStatus.ERROR, "Half.", "No.")),
    ],
)
def test_a_valid_payload(payload: dict[str, Any], expected: Finalized) -> None:
    """SUCCESS requires a result and no error; ERROR requires an error and may include findings."""
    assert expected == read_payload(payload)


@pytest.mark.parametrize(
    ("payload", "problem"),
    [
        (None, "subagent_finalize was not called"),
        ({}, "the status must be SUCCESS or ERROR"),
        ({"status": "success", "result": "x"}, 'the status is "success", expected SUCCESS or ERROR'),
        ({"status": ["SUCCESS"], "result": "x"}, "the status must be SUCCESS or ERROR"),
        ({"status": "SUCCESS"}, "SUCCESS requires a non-empty result"),
        ({"status": "SUCCESS", "result": " \n\t"}, "SUCCESS requires a non-empty result"),
        ({"status": "SUCCESS", "result": 7}, "SUCCESS requires a non-empty result"),
        ({"status": "SUCCESS", "result": "x", "error": "y"}, "SUCCESS cannot have an error"),
        ({"status": "ERROR", "result": "x"}, "ERROR requires a non-empty error"),
        ({"status": "ERROR", "error": ""}, "ERROR requires a non-empty error"),
    ],
)
def test_an_invalid_payload(payload: dict[str, Any] | None, problem: str) -> None:
    """The fault of an invalid payload is named, for the agent's next attempt."""
    with pytest.raises(InvalidPayload, match=f"^{problem}$"):
        read_payload(payload)


def test_feedback_names_the_fault_and_the_call() -> None:
    """The feedback names the fault and the tool to call."""
    said = feedback("SUCCESS requires a non-empty result")

    assert "SUCCESS requires a non-empty result" in said
    assert FINALIZE_TOOL in said


def test_a_result_that_is_handed_over(engine: Engine) -> None:
    """SUCCESS with a result completes the run, and that result is the answer instead of the agent's text."""
    ended = run(engine, parts(script("ask-for-more Looking.", hand_over(status="SUCCESS", result="It is in a.py."))))
    result = result_of(engine, ended)

    assert ("completed", "finalized", None) == (ended.status, ended.reason, result.error_message)
    assert "It is in a.py." == result.final_text
    assert Finalized(FinalizeStatus.SUCCESS, "It is in a.py.") == result.finalized
    assert (1, "It is in a.py.") == (result.attempts, end_of(ended).message)


def test_an_error_that_is_handed_over(engine: Engine) -> None:
    """ERROR fails the run with the agent's message and keeps its findings."""
    ended = run(engine, parts(hand_over(status="ERROR", error="The file is locked.", result="Half of it.")))
    result = result_of(engine, ended)

    assert ("failed", "finalize_error", 1) == (ended.status, ended.reason, result.attempts)
    assert ("The file is locked.", "Half of it.") == (result.error_message, result.final_text)
    assert Finalized(FinalizeStatus.ERROR, "Half of it.", "The file is locked.") == result.finalized


def test_the_same_session_is_asked_again(engine: Engine) -> None:
    """An agent without a structured result is asked again in its own session; the task stays the user's."""
    task = parts(NOTHING, NOTHING, hand_over(status="SUCCESS", result="Found."))
    ended = run(engine, task)
    result = result_of(engine, ended)

    assert ("completed", "finalized", 3) == (result.status, result.reason, result.attempts)
    assert [(1, 3), (2, 3), (3, 3)] == starts(engine, ended)
    assert [task, feedback(f"{FINALIZE_TOOL} was not called")] == [prompt(engine, ended, n) for n in (1, 2)]
    assert prompt(engine, ended, 2) == prompt(engine, ended, 3)
    assert [prompt(engine, ended, n) for n in (1, 2, 3)] == prompts_in(ended.meta.session_path or "")
    assert (task, 3) == (ended.meta.task, end_of(ended).attempt)
    retries = [event for event in events_of(engine, ended) if isinstance(event, Retry)]
    assert [(2, 3), (3, 3)] == [(retry.attempt, retry.max_attempts) for retry in retries]
    log = (run_dir(engine, ended) / "transcript.log").read_text()
    assert "Retrying 2/3: no structured result: subagent_finalize was not called" in log


def test_an_attempt_is_seen_while_it_runs(engine: Engine, project_dir: Path) -> None:
    """A run on a later attempt shows its attempt number and the user's task."""
    gate = project_dir / "gate"
    later = script(f"wait-for {gate}", hand_over(status="SUCCESS", result="Found."))
    (launched,) = engine.launch([ask(parts(NOTHING, later))], background=True)

    def second() -> Any:
        (now,) = engine.snapshots([launched.run_id])
        return now if isinstance(now.state, Running) and now.state.attempt == 2 else None

    now = wait_until(second, "the second attempt")
    gate.touch()

    assert ("running", 3, launched.meta.task) == (now.status, now.meta.max_attempts, now.meta.task)
    assert "completed" == wait_for_end(engine, launched.run_id).status


@pytest.mark.parametrize(
    ("payload", "fault"),
    [
        ({"status": "DONE", "result": "x"}, 'the status is "DONE", expected SUCCESS or ERROR'),
        ({"status": "SUCCESS", "result": " "}, "SUCCESS requires a non-empty result"),
        ({"status": "SUCCESS", "result": "x", "error": "y"}, "SUCCESS cannot have an error"),
    ],
)
def test_a_refused_call_is_fed_back_as_what_it_was(engine: Engine, payload: dict[str, str], fault: str) -> None:
    """An agent that ends after a refused call gets the fault of that call, not "not called"."""
    refused = script(call(refused=True, **payload), "answer I am done.")
    ended = run(engine, parts(refused, hand_over(status="SUCCESS", result="Found.")))
    never = result_of(engine, run(engine, parts(refused)))

    said = f"the call to {FINALIZE_TOOL} was refused: {fault}"
    assert ("finalized", 2, feedback(said)) == (ended.reason, end_of(ended).attempt, prompt(engine, ended, 2))
    assert ("finalize_missing", f"the agent returned no structured result: {said}") == (
        never.reason,
        never.error_message,
    )


def test_nothing_is_ever_handed_over(engine: Engine) -> None:
    """Without a structured result the run fails after its last attempt, names the fault and keeps the agent's text."""
    ended = run(engine, parts(NOTHING))
    result = result_of(engine, ended)

    assert ("failed", "finalize_missing", 3) == (result.status, result.reason, result.attempts)
    assert "the agent returned no structured result: subagent_finalize was not called" == result.error_message
    assert ("I think I am done.", None) == (result.final_text, result.finalized)
    assert not (run_dir(engine, ended) / "prompt-4.md").exists()


@pytest.mark.parametrize(("fields", "settings", "expected"), [
    (("max_attempts: 1",), {}, 1),
    (("max_attempts: 2",), {}, 2),
    ((), {"max_attempts": 2}, 2),
])  # fmt: skip
def test_how_often_is_asked(
    project_dir: Path, fields: tuple[str, ...], settings: dict[str, Any], expected: int
) -> None:
    """The preset sets the number of attempts, with the settings as default."""
    write_preset(project_dir, "structured_result: true", *fields)
    engine = open_engine(project_dir, CONVERSING, **settings)
    ended = run(engine, parts(NOTHING))

    assert ("finalize_missing", expected) == (ended.reason, result_of(engine, ended).attempts)
    assert expected == len(starts(engine, ended))


@pytest.mark.parametrize("error", ["401 Invalid API key", "500 Internal error"])
def test_a_provider_failure_is_not_asked_again(engine: Engine, error: str) -> None:
    """A provider failure is not retried by asking again."""
    ended = run(engine, parts(script(f"error {error}", "finish")))
    result = result_of(engine, ended)

    assert ("failed", "model_error", error, 1) == (
        result.status, result.reason, result.error_message, result.attempts,
    )  # fmt: skip


def test_a_provider_failure_at_the_second_attempt(engine: Engine) -> None:
    """A provider failure ends the attempts, and the text of the attempt before is kept."""
    result = result_of(engine, run(engine, parts(NOTHING, script("error 503 Overloaded", "finish"))))

    assert ("model_error", 2, "I think I am done.") == (result.reason, result.attempts, result.final_text)


def test_an_agent_that_dies_is_not_asked_again(engine: Engine) -> None:
    """Only an agent that finished is asked again for its structured result."""
    ended = run(engine, parts(script("say Half.", "leave 3")))

    assert ("agent_exit", 1, "Half.") == (ended.reason, end_of(ended).attempt, result_of(engine, ended).final_text)


def test_the_last_call_wins(engine: Engine) -> None:
    """If an agent calls the tool twice, the second result counts."""
    first = call(status="SUCCESS", result="First.")
    ended = run(engine, parts(script(first, hand_over(status="SUCCESS", result="Second."))))

    assert ("finalized", "Second.") == (ended.reason, result_of(engine, ended).final_text)


def test_a_refused_call_does_not_count(engine: Engine) -> None:
    """A refused call does not count, even after an accepted one."""
    good = call(status="SUCCESS", result="Good.")
    bad = call(refused=True, status="SUCCESS", result="Bad.", error="Both.")
    kept = run(engine, parts(script(good, bad, "say Done.", "finish")))
    missing = run(engine, parts(script(bad, "say Done.", "finish"), hand_over(status="SUCCESS", result="Now.")))

    assert ("finalized", "Good.") == (kept.reason, result_of(engine, kept).final_text)
    assert ("finalized", "Now.", 2) == (missing.reason, result_of(engine, missing).final_text, end_of(missing).attempt)


def test_a_call_beside_another_tool(engine: Engine) -> None:
    """A result counts even if another tool call in the same message makes the agent continue."""
    ended = run(engine, parts(script(call(status="SUCCESS", result="Found."), "tool read", "say Bye.", "finish")))

    assert ("finalized", "Found.", 1) == (ended.reason, result_of(engine, ended).final_text, end_of(ended).attempt)


def test_a_huge_result(engine: Engine) -> None:
    """A result of 2 MB is kept whole; the record of the call keeps its beginning, marked as cut."""
    huge = "x" * (2 * 1024**2)
    ended = run(engine, parts(hand_over(status="SUCCESS", result=huge)))
    (called,) = [event for event in events_of(engine, ended) if isinstance(event, ToolCall)]

    assert ("finalized", huge) == (ended.reason, result_of(engine, ended).final_text)
    assert called.args["result"].endswith("x[…truncated…]")
    assert ARGS_LIMIT - 100 < len(called.args["result"]) < ARGS_LIMIT + 100
    assert (run_dir(engine, ended) / "events.jsonl").stat().st_size < 2 * (ARGS_LIMIT + CONTENT_LIMIT)


@pytest.mark.parametrize("result", ["", " \n"])
def test_an_empty_result_is_none(engine: Engine, result: str) -> None:
    """An empty SUCCESS is asked for again, even if the tool accepted it."""
    empty = hand_over(status="SUCCESS", result=result)
    ended = run(engine, parts(empty, hand_over(status="SUCCESS", result="Now.")))

    assert ("finalized", 2) == (ended.reason, end_of(ended).attempt)
    assert feedback("SUCCESS requires a non-empty result") == prompt(engine, ended, 2)


def test_stopped_at_the_second_attempt(engine: Engine) -> None:
    """A run can be stopped during a later attempt, and the agent's earlier text is kept."""
    (launched,) = engine.launch([ask(parts(NOTHING, "hang"))], background=True)
    wait_until(lambda: len(starts(engine, launched)) == 2, "the second attempt")
    engine.stop([launched.run_id])
    result = result_of(engine, wait_for_end(engine, launched.run_id))

    assert ("aborted", "stopped", 2, "I think I am done.") == (
        result.status, result.reason, result.attempts, result.final_text,
    )  # fmt: skip


def test_stopped_as_an_attempt_ends(engine: Engine) -> None:
    """A run stopped at the end of an attempt is not asked again."""
    (launched,) = engine.launch([ask(parts(script("say Hm.", "finish", "deaf", "hang")))], background=True)
    wait_until(lambda: "Hm." in str(events_of(engine, launched)), "the last word")
    engine.stop([launched.run_id])
    ended = wait_for_end(engine, launched.run_id)

    assert ("stopped", [(1, 3)], 1) == (ended.reason, starts(engine, ended), end_of(ended).attempt)


def test_a_signal_as_an_attempt_ends(engine: Engine) -> None:
    """A wrapper that gets a signal without a stop request starts no further attempt."""
    (launched,) = engine.launch([ask(parts(script("say Hm.", "finish", "deaf", "hang")))], background=True)
    wait_until(lambda: "Hm." in str(events_of(engine, launched)), "the last word")
    facts = artifacts.read_runner(str(run_dir(engine, launched)))
    assert facts is not None
    os.kill(facts.pid, 15)
    ended = wait_for_end(engine, launched.run_id)

    assert ("aborted", "signal", [(1, 3)]) == (ended.status, ended.reason, starts(engine, ended))


def test_usage_is_that_of_all_attempts(engine: Engine) -> None:
    """The sums of a run include all attempts."""
    ended = run(engine, parts(NOTHING, NOTHING, script("say Oh.", hand_over(status="SUCCESS", result="Found."))))
    usage = result_of(engine, ended).usage

    assert Usage(input=40, output=15, cache_read=6, cache_write=3, cost=1.5, turns=4, tool_uses=1, unpriced=10) == usage
    assert usage == ended.usage


@pytest.mark.parametrize(
    ("limit", "script_parts", "expected"),
    [
        ("max_turns: 2", (script("ask-for-more Hm.", NOTHING), "hang"), 1),
        ("max_turns: 3", (script("ask-for-more Hm.", NOTHING), script("ask-for-more Hm.", "hang")), 2),
    ],
)
def test_turns_go_over_all_attempts(
    project_dir: Path, limit: str, script_parts: tuple[str, ...], expected: int
) -> None:
    """All attempts share one limit of turns; without turns left the agent is not asked again."""
    write_preset(project_dir, "structured_result: true", limit)
    engine = open_engine(project_dir, CONVERSING)
    ended = run(engine, parts(*script_parts))
    result = result_of(engine, ended)

    assert ("aborted", "max_turns", expected) == (result.status, result.reason, len(starts(engine, ended)))
    assert result.final_text


def test_time_goes_over_all_attempts(project_dir: Path) -> None:
    """All attempts share one time limit, which ends the run although each attempt alone would have met it."""
    write_preset(project_dir, "structured_result: true", "timeout: 1")
    engine = open_engine(project_dir, CONVERSING)
    slow = hand_over(status="SUCCESS", result="Too late.")
    ended = run(engine, parts(script("say Hm.", "linger 0.6", "finish"), script("linger 0.6", slow)))

    assert ("aborted", "timeout", "Hm.") == (ended.status, ended.reason, result_of(engine, ended).final_text)


def test_the_last_turn_may_hand_over(project_dir: Path) -> None:
    """The last allowed turn may make the call, which is executed after the model's message."""
    write_preset(project_dir, "structured_result: true", "max_turns: 2")
    engine = open_engine(project_dir, CONVERSING)
    gate = project_dir / "gate"
    message, *rest = call(status="SUCCESS", result="Found.").splitlines()
    slow = script("ask-for-more Hm.", message, f"wait-for {gate}", *rest, "finish")
    (launched,) = engine.launch([ask(parts(slow))], background=True)
    wait_until(lambda: str(events_of(engine, launched)).count("UsageReported") == 2, "the second turn")
    gate.touch()
    ended = wait_for_end(engine, launched.run_id)

    assert ("completed", "finalized") == (ended.status, ended.reason)


def test_a_refused_last_turn(project_dir: Path) -> None:
    """A refused call needs another turn, so the turn limit ends the run."""
    write_preset(project_dir, "structured_result: true", "max_turns: 1")
    engine = open_engine(project_dir, CONVERSING)
    ended = run(engine, parts(script(call(refused=True, status="SUCCESS"), "hang")))

    assert ("aborted", "max_turns") == (ended.status, ended.reason)


def test_a_second_attempt_that_cannot_be_written(project_dir: Path) -> None:
    """If the second prompt cannot be written, the run keeps the result of the earlier attempts."""
    project = Project(str(project_dir))
    session = project_dir / "s.jsonl"
    session.write_text('{"type":"session","id":"s1"}\n')
    task = parts(NOTHING)
    meta, lock = make_run(
        project,
        make_meta(task=task, agent_command=CONVERSING, session_path=str(session), finalize=True, max_attempts=3),
    )
    directory = project.run_dir(meta.run_id)
    os.mkdir(os.path.join(directory, "prompt-2.md"))
    words = [
        sys.executable,
        "-P",
        "-E",
        "-m",
        "subdeck.core.wrapper",
        directory,
        os.path.join(project.active, meta.run_id),
    ]
    subprocess.run(words, check=True, timeout=30)
    os.close(lock)
    result = artifacts.read_result(directory)

    assert result is not None
    assert ("finalize_missing", 1) == (result.reason, result.attempts)
    assert ("prompt-2.md",) == tuple(trouble.partition(":")[0] for trouble in result.artifact_errors)


@pytest.mark.parametrize("fields", [("structured_result: true",), ("structured_result: true", "prompt_mode: replace")])
def test_one_line_in_the_system_prompt(project_dir: Path, fields: tuple[str, ...]) -> None:
    """The agent gets the instruction to return a result once, after the preset's prompt."""
    write_preset(project_dir, *fields, prompt="You look.")
    engine = open_engine(project_dir, CONVERSING)
    ended = run(engine, parts(hand_over(status="SUCCESS", result="x")))

    assert f"You look.\n\n{INSTRUCTION}" == (run_dir(engine, ended) / "system-prompt.md").read_text()
    assert "\n" not in INSTRUCTION


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        (("structured_result: true", "tools: read"), ("read", FINALIZE_TOOL)),
        (("structured_result: true", "tools: []"), (FINALIZE_TOOL,)),
        (("structured_result: true",), None),
        (("structured_result: false", "tools: read"), ("read",)),
        ((f"tools: read, {FINALIZE_TOOL}",), ("read",)),
    ],
)
def test_the_tool_is_allowed_exactly_where_it_is_needed(
    project_dir: Path, fields: tuple[str, ...], expected: tuple[str, ...] | None
) -> None:
    """An allowlist gets the finalization tool only if the preset requires a structured result."""
    write_preset(project_dir, *fields)
    engine = open_engine(project_dir, PUPPET)
    (launched,) = engine.launch([ask("answer ok")], background=True)
    wait_for_end(engine, launched.run_id)

    assert expected == launched.meta.tools.resolved


def test_without_finalization_nothing_is_asked(project_dir: Path) -> None:
    """A one-off run, or one whose preset requires no structured result, has one attempt and no mention of the tool."""
    write_preset(project_dir)
    engine = open_engine(project_dir, CONVERSING)
    ended = run(engine, parts(NOTHING))
    ad_hoc = wait_for_end(engine, start(engine, parts(NOTHING)).run_id)

    assert [("done", 1), ("done", 1)] == [(each.reason, each.meta.max_attempts) for each in (ended, ad_hoc)]
    assert "Look." == (run_dir(engine, ended) / "system-prompt.md").read_text()
    assert not (run_dir(engine, ad_hoc) / "system-prompt.md").exists()


def test_the_offline_agent_hands_over(project_dir: Path) -> None:
    """The built-in agent returns its answer by the same tool."""
    write_preset(project_dir, "structured_result: true", "tools: read, grep")
    (project_dir / "auth.py").write_text("def log_in(): ...\n")
    write_settings(agent="offline")
    engine = Engine.open(str(project_dir))
    (launched,) = engine.launch([RunRequest(task="where is log_in", preset="scout")], background=False)
    ended = wait_for_end(engine, launched.run_id)
    result = result_of(engine, ended)

    assert ("completed", "finalized", 1) == (result.status, result.reason, result.attempts)
    assert result.finalized == Finalized(FinalizeStatus.SUCCESS, result.final_text)
    assert "auth.py:1" in (result.final_text or "")
    assert launched.meta.child_session_id == session_entries(launched.meta.session_path or "")[0]["id"]
