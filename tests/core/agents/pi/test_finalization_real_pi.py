"""Structured results from pi."""

from __future__ import annotations

import json

import pytest
from subdeck.core.agents.pi.program import FINALIZE_EXTENSION
from subdeck.core.run.events import ARGS_LIMIT, ToolCall, ToolResult
from subdeck.core.run.outcome import FINALIZE_TOOL, INSTRUCTION, feedback

from tests.factories import end_of, events_of, result_of, run_dir
from tests.real.lab import NEWER_PI, Lab
from tests.real.model_server import called, offered, said, texts

from ...conversing import starts

pytestmark = [pytest.mark.pi, NEWER_PI]

FOUND = (FINALIZE_TOOL, {"status": "SUCCESS", "result": "Found."})


@pytest.fixture
def pi(pi: Lab) -> Lab:
    (pi.project / "notes.md").write_text("A note.\n")
    return pi


def test_the_same_session_is_asked_again(pi: Lab) -> None:
    """If pi submits no structured result, it is asked again in the same session, with instructions."""
    pi.preset("structured_result: true", "tools: read", prompt="You look.")
    pi.script(said("I looked."), called(FOUND, text="Here."))
    ended = pi.run("Look for it.")
    result = result_of(pi.engine, ended)
    first, second = pi.requests

    assert ("finalized", "Found.", 2) == (result.reason, result.final_text, result.attempts)
    assert [(1, 3), (2, 3)] == starts(pi.engine, ended)
    again = feedback(f"{FINALIZE_TOOL} was not called")
    assert [["Look for it."], ["Look for it.", again]] == [texts(first), texts(second)]
    assert ["I looked."] == texts(second, "assistant")
    assert [{"read", FINALIZE_TOOL}] * 2 == [offered(first), offered(second)]
    assert [1, 1] == ["".join(texts(each, "system", "developer")).count(INSTRUCTION) for each in (first, second)]
    logged = (run_dir(pi.engine, ended) / "stdout.log").read_text().splitlines()
    sessions = [json.loads(line)["data"]["sessionId"] for line in logged if '"command":"get_state"' in line]
    assert [ended.meta.child_session_id] * len(starts(pi.engine, ended)) == list(dict.fromkeys(sessions)) * 2
    assert ended.meta.child_session_id == result.child_session_id


def test_a_call_that_the_tool_refuses(pi: Lab) -> None:
    """Invalid structured results are refused: an error with SUCCESS, no result, an unknown status. The model corrects
    them.
    """
    pi.preset("structured_result: true")
    wrong = (
        {"status": "SUCCESS", "result": "x", "error": "y"},
        {"status": "SUCCESS"},
        {"status": "DONE", "result": "x"},
    )
    turns = [called((FINALIZE_TOOL, payload)) for payload in wrong]
    error = (FINALIZE_TOOL, {"status": "ERROR", "error": "No network.", "result": "Half."})
    pi.script(*turns, called(error))
    ended = pi.run()
    result = result_of(pi.engine, ended)

    assert ("finalize_error", 1, "No network.", "Half.") == (
        result.reason, result.attempts, result.error_message, result.final_text,
    )  # fmt: skip
    answers = [event for event in events_of(pi.engine, ended) if isinstance(event, ToolResult)]
    assert [True, True, True, False] == [answer.is_error for answer in answers]
    assert ["SUCCESS cannot have an error", "SUCCESS requires a non-empty result"] == [
        answer.content.partition(":")[0] for answer in answers[:2]
    ]
    assert 4 == len(pi.requests)


def test_a_refused_call_is_fed_back(pi: Lab) -> None:
    """If the model stops after a refused structured result, it is asked again with the reason."""
    pi.preset("structured_result: true")
    pi.script(called((FINALIZE_TOOL, {"status": "DONE", "result": "x"})), said("I am done."), called(FOUND))
    ended = pi.run()

    fault = f'the call to {FINALIZE_TOOL} was refused: the status is "DONE", expected SUCCESS or ERROR'
    assert ("finalized", 2) == (ended.reason, result_of(pi.engine, ended).attempts)
    assert feedback(fault) == texts(pi.requests[2])[-1]


def test_a_call_beside_another_tool(pi: Lab) -> None:
    """If the structured result comes with another tool call, pi continues, and the last submitted result counts."""
    pi.preset("structured_result: true", "tools: read")
    early = (FINALIZE_TOOL, {"status": "SUCCESS", "result": "Early."})
    pi.script(called(early, ("read", {"path": "notes.md"})), said("Bye."))
    kept = pi.run()
    asked = len(pi.requests)
    pi.script(called(early, ("read", {"path": "notes.md"})), called(FOUND))
    replaced = pi.run()

    assert [("finalized", 1, "Early."), ("finalized", 1, "Found.")] == [
        (run.reason, end_of(run).attempt, result_of(pi.engine, run).final_text) for run in (kept, replaced)
    ]
    assert (2, 2) == (asked, len(pi.requests))


def test_two_calls_in_one_message(pi: Lab) -> None:
    """If one message submits two results, the last one counts, and the model gets no further request."""
    pi.preset("structured_result: true")
    pi.script(called((FINALIZE_TOOL, {"status": "ERROR", "error": "Hm."}), FOUND))
    ended = pi.run()

    assert ("finalized", "Found.", 1) == (ended.reason, result_of(pi.engine, ended).final_text, len(pi.requests))


def test_a_huge_result(pi: Lab) -> None:
    """A structured result of 2 MB arrives complete. The events keep its beginning, and mark the cut."""
    pi.preset("structured_result: true")
    huge = "x" * (2 * 1024**2)
    pi.script(called((FINALIZE_TOOL, {"status": "SUCCESS", "result": huge}), chunk_size=4 * 1024**2))
    ended = pi.run()
    (call,) = [event for event in events_of(pi.engine, ended) if isinstance(event, ToolCall)]

    assert ("finalized", True) == (ended.reason, huge == result_of(pi.engine, ended).final_text)
    assert call.args["result"].endswith("x[…truncated…]")
    assert (run_dir(pi.engine, ended) / "events.jsonl").stat().st_size < 2 * ARGS_LIMIT


@pytest.mark.parametrize(("status", "message"), [(401, "Invalid API key"), (500, "It broke")])
def test_a_provider_failure_is_not_asked_again(pi: Lab, status: int, message: str) -> None:
    """A provider error fails the run at its first attempt, with the provider's message."""
    pi.preset("structured_result: true")
    pi.script({"status": status, "body": {"error": {"message": message}}})
    ended = pi.run()
    result = result_of(pi.engine, ended)

    assert ("failed", "model_error", 1) == (result.status, result.reason, result.attempts)
    assert message in (result.error_message or "")
    assert [(1, 3)] == starts(pi.engine, ended)


def test_a_parent_has_no_such_tool(pi: Lab) -> None:
    """Only agents in runs get the tool for structured results, even if you load the extension yourself."""
    words = ("--mode", "json", "--model", "fake/test", "--no-session", "-e", FINALIZE_EXTENSION, "Look.")
    pi.by_hand(*words).check_returncode()
    pi.by_hand(*words, PI_SUBAGENTS_CHILD="1").check_returncode()
    parent, child = pi.requests

    assert {FINALIZE_TOOL} == offered(child) - offered(parent)
    assert FINALIZE_TOOL not in json.dumps(parent)
