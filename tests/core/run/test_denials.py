"""A denial ended the turn if no output of the model came after it."""

from __future__ import annotations

import pytest
from subdeck.core.run.events import AssistantText, Decision, Event, Interrupted, Message, Thinking, ToolCall, ToolResult
from subdeck.core.run.model import MessageState, RunReason, Verdict
from subdeck.core.run.outcome import ENDED_BY, UNANSWERED, ChildExit, Denials, StreamFacts, decide


def call(number: str) -> ToolCall:
    return ToolCall(tool_call_id=number, tool_name="bash", args={})


def result(number: str, *, is_error: bool = False) -> ToolResult:
    return ToolResult(tool_call_id=number, tool_name="bash", is_error=is_error, content="")


FAILED = result("1", is_error=True)
WENT_ON: dict[str, tuple[Event, ...]] = {
    "text": (FAILED, AssistantText(text="I may not.")),
    "thought": (FAILED, Thinking(text="Then otherwise.")),
    "another call": (FAILED, call("2"), result("2")),
    "a message of a person": (FAILED, Message(id="m", state=MessageState.DELIVERED)),
    "an interrupt": (FAILED, Interrupted(by="")),
}
ENDED: dict[str, tuple[Event, ...]] = {
    "nothing": (),
    "the denied call": (FAILED,),
    "a call that was made with it": (call("2"), FAILED, result("2")),
    "a call that failed too": (FAILED, call("2"), result("2", is_error=True)),
    "blanks": (FAILED, AssistantText(text=" \n")),
    "a message that did not come through": (FAILED, Message(id="m", state=MessageState.ACCEPTED)),
}


@pytest.mark.parametrize("events", WENT_ON.values(), ids=WENT_ON)
def test_an_agent_that_goes_on(events: tuple[Event, ...]) -> None:
    """A denial followed by text, thinking, another call or a user's message did not end the turn."""
    denials = Denials()
    denials.denied("bash ls")
    for event in events:
        denials.saw(event)
    assert "" == denials.words


@pytest.mark.parametrize("events", ENDED.values(), ids=ENDED)
def test_an_agent_that_ends(events: tuple[Event, ...]) -> None:
    """A denial ended the turn if the model wrote nothing after it."""
    denials = Denials()
    denials.saw(call("1"))
    denials.denied("bash ls")
    for event in events:
        denials.saw(event)
    assert f"{ENDED_BY}: bash ls" == denials.words


def test_a_second_denial() -> None:
    """An agent that continues after one denial may be ended by the next."""
    denials = Denials()
    denials.denied("bash ls")
    denials.saw(AssistantText(text="Then otherwise."))
    assert "" == denials.words
    denials.denied("edit a.md", is_reported=True)
    assert f"{ENDED_BY}: edit a.md" == denials.words


def test_a_request_without_an_answer() -> None:
    """A request still open when its turn ends was not answered."""
    denials = Denials()
    denials.saw(Decision(request="q1", verdict=Verdict.WITHDRAWN))
    assert UNANSWERED == denials.words


PREAMBLE = StreamFacts(finished=True, final_text="Let me look.", stop_reason="stop", denied=f"{ENDED_BY}: bash ls")


def test_a_denial_fails_the_run() -> None:
    """Text before a denial is not an answer."""
    outcome = decide(PREAMBLE, exit=ChildExit(code=0))
    assert (RunReason.DENIED, f"{ENDED_BY}: bash ls") == (outcome.reason, outcome.message)
    assert "failed" == outcome.status


def test_a_result_counts_after_a_denial() -> None:
    """A structured result still counts if a later call was denied."""
    facts = StreamFacts(finished=True, finalized={"status": "SUCCESS", "result": "All."}, denied=ENDED_BY)
    assert RunReason.FINALIZED is decide(facts, exit=ChildExit(code=0), finalize=True).reason
