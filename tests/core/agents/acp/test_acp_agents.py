"""Runs of ACP agents with a scripted model."""

from __future__ import annotations

import pytest
from subdeck.core.run.events import AssistantText, Notice, ToolCall, ToolResult
from subdeck.core.run.outcome import FINALIZE_TOOL

from tests.factories import events_of, lives, result_of, started
from tests.real.lab import PATIENCE, Lab
from tests.real.model_server import said, texts
from tests.real.programs import CLAUDE, Acp
from tests.waiting import wait_until

pytestmark = [pytest.mark.agents, pytest.mark.processes]


def test_an_answer(acp: Lab[Acp]) -> None:
    """A run returns the answer, the tokens and the id of the conversation."""
    acp.script(said("It says hello."))
    ended = acp.run()
    result = result_of(acp.engine, ended)
    assert ("completed", "done", "It says hello.") == (ended.status, ended.reason, result.final_text)
    assert result.child_session_id
    assert (100, 20) == (result.usage.input, result.usage.output)


def test_a_tool_that_nobody_allows(acp: Lab[Acp]) -> None:
    """In a non-interactive run, a permission request is denied with a warning, and the run continues."""
    acp.preset("interactive: false")
    target = acp.project / "made"
    acp.script(acp.shell(f"touch {target}; mkdir /proc/none"), said("I may not."))
    ended = acp.run()
    assert ("done", "I may not.") == (ended.reason, result_of(acp.engine, ended).final_text)
    assert 1 == len([event for event in events_of(acp.engine, ended) if isinstance(event, ToolCall)])
    if acp.agent.behind is CLAUDE:
        denied = [event.text for event in events_of(acp.engine, ended) if isinstance(event, Notice)]
        assert any(text.startswith("denied: Bash touch") for text in denied)
        assert not target.exists()


def test_a_conversation_goes_on(acp: Lab[Acp]) -> None:
    """A conversation is continued by its id, and only the new answer is in the new run."""
    acp.script(said("First answer."))
    first = acp.run()
    session = result_of(acp.engine, first).child_session_id
    acp.script(said("Second answer."))
    second = acp.run("And now?", child_session=session)
    assert ("done", session) == (second.reason, result_of(acp.engine, second).child_session_id)
    answers = [event.text for event in events_of(acp.engine, second) if isinstance(event, AssistantText)]
    assert ["Second answer."] == answers


@pytest.mark.parametrize("force", [False, True], ids=["stop", "kill"])
def test_in_the_middle_of_a_sentence(acp: Lab[Acp], force: bool) -> None:
    """Stopping a run keeps the unfinished sentence, and no process of the agent is left."""
    acp.script({"steps": [{"text": "So far so go"}, {"hang": True}]})
    run = acp.start()
    wait_until(lambda: "go" in acp.engine.snapshots([run.run_id])[0].sentence, "the sentence", PATIENCE)
    acp.engine.stop([run.run_id], force=force)
    ended = acp.wait(run)
    result = result_of(acp.engine, ended)
    assert ("aborted", "killed" if force else "stopped") == (ended.status, ended.reason)
    assert ("So far so go", True) == (result.final_text, result.partial)
    assert not lives(started(acp.engine, ended).child_pid)


def test_a_refusal_of_the_provider(acp: Lab[Acp]) -> None:
    """A provider error fails the run with the provider's message, without raw JSON."""
    acp.script({"status": 400})
    ended = acp.run()
    result = result_of(acp.engine, ended)
    assert ("failed", "model_error") == (ended.status, ended.reason)
    assert "scripted status 400" in (result.error_message or "")
    assert "{" not in (result.error_message or "")


def test_a_model_that_is_not_offered(acp: Lab[Acp]) -> None:
    """An unknown model is refused before any request, and the error lists the available models."""
    acp.script(said("Never."))
    ended = acp.run(model="nobody/nothing")
    result = result_of(acp.engine, ended)
    assert ("failed", "start_failed") == (ended.status, ended.reason)
    assert 'has no model "nobody/nothing"; it has ' in (result.error_message or "")


@pytest.mark.parametrize("tools", ["tools: [read, grep]", "denied_tools: [edit, write]"])
def test_only_readers(acp: Lab[Acp], tools: str) -> None:
    """A tool list that can only read starts the agent in its read-only or plan mode, where no file changes."""
    acp.preset(f"{tools}\ninteractive: false")
    acp.script(acp.shell(f"touch {acp.project}/made"), said("Looked."))
    ended = acp.run()
    assert ("done", False) == (ended.reason, (acp.project / "made").exists())


def test_the_prompt_goes_before_the_task(acp: Lab[Acp]) -> None:
    """The preset's prompt goes before the task, with a warning on the run."""
    acp.preset(prompt="You look.")
    acp.script(said("Seen."))
    ended = acp.run()
    assert any("put before the task" in warning for warning in ended.meta.all_warnings)
    assert any("You look.\n\nLook." in text for request in acp.requests for text in texts(request))


def test_a_result_is_handed_over(acp: Lab[Acp]) -> None:
    """The agent submits a structured result through subdeck's MCP server, without a permission request. If it doesn't,
    it is asked again. A call without a result is refused.
    """
    acp.preset("structured_result: true")
    finalize = acp.agent.finalize
    acp.script(said("I am done."), finalize(status="SUCCESS"), finalize(status="SUCCESS", result="42"), said("Over."))
    ended = acp.run()
    result = result_of(acp.engine, ended)
    assert ("completed", "finalized", "42", 2) == (ended.status, ended.reason, result.final_text, result.attempts)
    events = events_of(acp.engine, ended)
    assert [FINALIZE_TOOL] * 2 == [event.tool_name for event in events if isinstance(event, ToolCall)]
    refused, taken = (event for event in events if isinstance(event, ToolResult))
    assert (True, False) == (refused.is_error, taken.is_error)
    assert "Refused: SUCCESS requires a non-empty result" in refused.content
    assert "The result was received." == taken.content
    assert not any(isinstance(event, Notice) and "denied" in event.text for event in events)


def test_nothing_is_handed_over(acp: Lab[Acp]) -> None:
    """If the agent never submits a structured result, the run fails, even with a good answer."""
    acp.preset("structured_result: true\nmax_attempts: 1")
    acp.script(said("I am done."))
    assert ("failed", "finalize_missing") == ((ended := acp.run()).status, ended.reason)
