"""Messages to a working ACP agent, its requests, and the replies."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from subdeck.core.agents.acp._conversation import AcpConversation
from subdeck.core.run.events import Decision, Event, Interrupted, Message, Request, UsageReported
from subdeck.core.run.model import MessageState, RequestKind, RunReason, Verdict
from subdeck.core.run.outcome import FINALIZE_TOOL, decide

from ..codex.codex_lines import fed, line, said, start

READY = {"bridge": "ready"}


@pytest.fixture
def starting(tmp_path: Path) -> AcpConversation:
    """A stream whose agent has no session yet."""
    return AcpConversation(start(tmp_path, talk=True))


@pytest.fixture
def working(starting: AcpConversation) -> AcpConversation:
    """A stream in the middle of its first turn."""
    fed(starting, READY, prompted(2))
    said(starting)
    return starting


def prompted(number: int) -> dict[str, Any]:
    return {"sent": {"jsonrpc": "2.0", "id": number, "method": "session/prompt", "params": {"sessionId": "s"}}}


def ended(number: int, reason: str = "end_turn") -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": number, "result": {"stopReason": reason}}


def update(kind: str, **fields: Any) -> dict[str, Any]:
    return {"method": "session/update", "params": {"sessionId": "s", "update": {"sessionUpdate": kind, **fields}}}


def text(words: str, message: str = "m-1") -> dict[str, Any]:
    return update("agent_message_chunk", messageId=message, content={"type": "text", "text": words})


def states(events: list[Event]) -> list[tuple[str, MessageState]]:
    return [(event.id, event.state) for event in events if isinstance(event, Message)]


def is_over(stream: AcpConversation) -> bool:
    return stream.is_stdin_done and stream.finished_after == 0


# --- messages ---


def test_the_task_is_the_first_prompt(starting: AcpConversation) -> None:
    """It includes earlier messages, which count as delivered once the agent works on the prompt."""
    assert b"" == starting.replies()
    starting.tell("m", "And this.")
    assert b"" == starting.replies()
    fed(starting, READY)
    assert [{"prompt": ["Look.", "And this."]}] == said(starting)
    assert [] == states(fed(starting, text("of an earlier turn")))
    assert [("m", MessageState.DELIVERED)] == states(fed(starting, prompted(2), text("Looking")))
    fed(starting, ended(2))
    assert (True, "done") == (is_over(starting), decide(starting.facts).reason)


def test_a_message_cancels_the_turn_and_begins_the_next(working: AcpConversation) -> None:
    """Messages sent until then go together, and the text so far is kept."""
    fed(working, text("So far"))
    working.tell("m", "Rather this.")
    working.tell("n", "And that.")
    assert [{"cancel": True}] == said(working)
    fed(working, ended(2, "cancelled"))
    assert [{"prompt": ["Rather this.", "And that."]}] == said(working)
    assert (False, None, "So far") == (working.is_stdin_done, working.finished_after, working.facts.final_text)
    events = fed(working, prompted(3), text("Done.", "m-2"), ended(3))
    assert [("m", MessageState.DELIVERED), ("n", MessageState.DELIVERED)] == states(events)
    assert (True, "done", "Done.") == (is_over(working), decide(working.facts).reason, working.facts.final_text)


def test_an_answer_without_a_word_delivers_a_message(working: AcpConversation) -> None:
    working.tell("m", "Rather this.")
    fed(working, ended(2, "cancelled"), prompted(3))
    assert [("m", MessageState.DELIVERED)] == states(fed(working, ended(3)))


def test_an_error_of_the_agent_refuses_a_message(working: AcpConversation) -> None:
    """It is not known to have been read, and the run ends with the error."""
    working.tell("m", "Rather this.")
    fed(working, ended(2, "cancelled"), prompted(3))
    events = fed(working, {"jsonrpc": "2.0", "id": 3, "error": {"code": -32603, "message": "too busy"}})
    assert [("m", MessageState.REFUSED)] == states(events)
    assert (True, "model_error") == (is_over(working), decide(working.facts).reason)


def test_an_answer_that_stands_before_its_prompt(working: AcpConversation) -> None:
    """The bridge logs a prompt after sending it, so a fast agent's answer may come first."""
    working.tell("m", "Rather this.")
    fed(working, ended(2, "cancelled"), text("Done.", "m-2"), ended(3), prompted(3))
    assert (True, "done") == (is_over(working), decide(working.facts).reason)


# --- interrupts ---


def test_an_interrupted_child_waits_for_what_is_said_next(working: AcpConversation) -> None:
    working.interrupt(stays=True)
    working.interrupt(stays=True)
    assert [{"cancel": True}] == said(working)
    events = fed(working, ended(2, "cancelled"))
    assert [UsageReported, Interrupted] == [type(event) for event in events]  # no usage was reported for that turn
    assert (True, False, None) == (working.is_waiting, working.is_stdin_done, working.finished_after)
    working.tell("m", "Go on.")
    assert ([{"prompt": ["Go on."]}], False) == (said(working), working.is_waiting)
    fed(working, prompted(3), text("All."), ended(3))
    assert (True, "done") == (is_over(working), decide(working.facts).reason)


def test_an_interrupted_child_to_which_nothing_is_said(working: AcpConversation) -> None:
    fed(working, text("So far."))
    working.interrupt(stays=True)
    fed(working, ended(2, "cancelled"))
    working.close()
    assert (True, RunReason.INTERRUPTED, "So far.") == (
        is_over(working),
        decide(working.facts).reason,
        working.facts.final_text,
    )


def test_an_interrupt_before_the_first_turn(starting: AcpConversation) -> None:
    """The task is not started. It is sent with the next message."""
    starting.interrupt(stays=True)
    assert [Interrupted] == [type(event) for event in fed(starting, READY)]
    assert (True, []) == (starting.is_waiting, said(starting))
    starting.tell("m", "Now.")
    assert [{"prompt": ["Look.", "Now."]}] == said(starting)


def test_a_turn_limit_of_the_agent(working: AcpConversation) -> None:
    """The limit is the reason of the outcome, not an interrupt."""
    fed(working, ended(2, "max_turn_requests"))
    assert ("aborted", "max_turns") == (decide(working.facts).status, decide(working.facts).reason)


def test_an_interrupt_that_comes_as_the_turn_ends(working: AcpConversation) -> None:
    """The turn was complete, so the run is done."""
    working.interrupt(stays=True)
    events = fed(working, text("Done."), ended(2))
    assert not any(isinstance(event, Interrupted) for event in events)
    assert (True, "done") == (is_over(working), decide(working.facts).reason)


@pytest.mark.parametrize("when", ["starting", "working", "interrupted"])
def test_a_soft_stop(starting: AcpConversation, when: str) -> None:
    if when != "starting":
        fed(starting, READY, prompted(2))
    if when == "interrupted":
        starting.interrupt(stays=True)
        fed(starting, ended(2, "cancelled"))
    said(starting)
    starting.interrupt(stays=False)
    if when == "working":
        starting.tell("m", "Too late.")
        assert [{"cancel": True}] == said(starting)
        fed(starting, ended(2, "cancelled"))
    assert (True, False, b"") == (is_over(starting), starting.is_waiting, starting.replies())
    assert RunReason.INTERRUPTED is decide(starting.facts).reason


# --- requests ---

OPTIONS = [
    {"kind": "allow_always", "optionId": "always", "name": "Always"},
    {"kind": "allow_once", "optionId": "yes", "name": "Allow"},
    {"kind": "reject_once", "optionId": "no", "name": "Reject"},
]


def question(options: object = OPTIONS, number: object = 0, **call: Any) -> dict[str, Any]:
    params = {"sessionId": "s", "options": options, "toolCall": {"toolCallId": "c-1", **call}}
    return {"jsonrpc": "2.0", "id": number, "method": "session/request_permission", "params": params}


@pytest.mark.parametrize("depth", [200, 5000, *range(850, 1000, 10)])
def test_an_absurd_call(working: AcpConversation, depth: int) -> None:
    """A request nested too deeply to be shown is denied, and nothing raises."""
    deep = b'{"x":' * depth + b"1" + b"}" * depth
    for message in (
        question(kind="other", rawInput={"x": "deep"}),
        update("tool_call_update", toolCallId="c-1", status="completed", rawOutput="deep"),
    ):
        events = working.feed(line(message).replace(b'"deep"', deep))
        assert [] == [event for event in events if isinstance(event, Request)]
    assert depth > 200 or [{"reply": {"id": 0, "answer": "no"}}] == said(working)


RUN = {"kind": "execute", "title": "rm x", "rawInput": {"command": "rm x"}}


def asked(stream: AcpConversation, message: dict[str, Any]) -> Request:
    (request,) = [event for event in fed(stream, message) if isinstance(event, Request)]
    return request


@pytest.mark.parametrize(
    ("verdict", "option"), [(Verdict.ALLOW, "yes"), (Verdict.ALLOW_RUN, "yes"), (Verdict.DENY, "no")]
)
def test_a_command_is_asked_for(working: AcpConversation, verdict: Verdict, option: str) -> None:
    """The agent's own "always" is never used. A permission for the run is a rule of subdeck."""
    request = asked(working, question(**RUN))
    assert (RequestKind.PERMISSION, "bash", "rm x", None, "c-1") == (
        request.kind,
        request.tool_name,
        request.command,
        request.usual,
        request.tool_call_id,
    )
    working.reply(request.id, verdict, "")
    working.reply(request.id, verdict, "")
    assert [{"reply": {"id": 0, "answer": option}}] == said(working)
    outcome = {"outcome": {"outcome": "selected", "optionId": option}}
    assert [] == fed(working, {"sent": {"jsonrpc": "2.0", "id": 0, "result": outcome}})


def test_an_agent_that_offers_nothing_for_once(working: AcpConversation) -> None:
    """If the agent can only allow a call for good, the request is cancelled."""
    request = asked(working, question(OPTIONS[:1], **RUN))
    working.reply(request.id, Verdict.ALLOW, "")
    assert [{"reply": {"id": 0, "answer": None}}] == said(working)


def test_an_edit_is_asked_for_with_its_diff(working: AcpConversation) -> None:
    edit = {"type": "diff", "path": "/srv/shop/a.md", "oldText": "hello", "newText": "bye"}
    request = asked(
        working,
        question(
            kind="edit", title="Edit a.md", content=[edit], locations=[{"path": "/srv/shop/a.md"}, {"path": "/b"}]
        ),
    )
    assert ("edit", ("/srv/shop/a.md", "/b")) == (request.tool_name, request.paths)
    assert "-hello\n+bye" in request.diff


@pytest.mark.parametrize("kind", ["read", "search"])
def test_a_look_goes_on_where_no_rule_is_about_it(working: AcpConversation, kind: str) -> None:
    assert Verdict.ALLOW is asked(working, question(kind=kind, rawInput={"path": "a"})).usual


def test_the_tool_that_hands_over_needs_nobodys_leave(working: AcpConversation) -> None:
    handing = {"server": "subdeck", "tool": FINALIZE_TOOL, "arguments": {"status": "SUCCESS", "result": "42"}}
    events = fed(working, question(rawInput=handing, title="x"))
    assert not any(isinstance(event, Request) for event in events)
    assert [{"reply": {"id": 0, "answer": "yes"}}] == said(working)


def test_what_the_agent_takes_back(working: AcpConversation) -> None:
    """A cancelled turn withdraws its permission requests, and the end of the turn withdraws the others."""
    first, second = asked(working, question(**RUN)), asked(working, question(number="0", **RUN))
    cancelled = {"jsonrpc": "2.0", "id": 0, "result": {"outcome": {"outcome": "cancelled"}}}
    taken = fed(working, {"sent": cancelled}, ended(2, "cancelled"))
    assert [first.id, second.id] == [event.request for event in taken if isinstance(event, Decision)]


def test_a_command_in_words(working: AcpConversation) -> None:
    """A command given as an argument list is shown as a shell command."""
    commands = (["/bin/bash", "-lc", "rm x; ls"], ["rm", "a b"], "rm x", 5, ["rm", 5])
    found = [
        asked(working, question(number=number, toolCallId=f"c-{number}", kind="execute", rawInput={"command": command}))
        for number, command in enumerate(commands)
    ]
    assert ["rm x; ls", "rm 'a b'", "rm x", "", "rm"] == [request.command for request in found]


def elicitation(*, mode: object = "form", number: object = 7, **properties: Any) -> dict[str, Any]:
    schema = {"type": "object", "properties": properties, "required": list(properties)[:1]}
    params = {"mode": mode, "sessionId": "s", "message": "Which one?", "requestedSchema": schema}
    return {"jsonrpc": "2.0", "id": number, "method": "elicitation/create", "params": params}


def test_a_form(working: AcpConversation) -> None:
    """The values of a form have the types of its fields."""
    several = {"type": "array", "title": "Colours", "items": {"anyOf": [{"const": "red"}, {"const": "blue"}]}}
    request = asked(working, elicitation(colours=several, count={"type": "integer"}))
    assert (RequestKind.FORM, "Which one?") == (request.kind, request.text)
    assert [("colours", ("red", "blue"), True), ("count", (), False)] == [
        (field.name, field.choices, field.required) for field in request.fields
    ]
    working.reply(request.id, Verdict.REPLY, "Colours: red, blue\ncount: 2")
    assert [{"reply": {"id": 7, "answer": {"colours": ["red", "blue"], "count": 2}}}] == said(working)


def test_a_form_of_one_field_is_a_question(working: AcpConversation) -> None:
    one = {"type": "string", "title": "Colour", "oneOf": [{"const": "red", "title": "Red"}, {"const": "blue"}]}
    for verdict, answer in ((Verdict.REPLY, {"colour": "red"}), (Verdict.DENY, None)):
        request = asked(working, elicitation(colour=one))
        assert (RequestKind.QUESTION, ("red", "blue")) == (request.kind, request.choices)
        working.reply(request.id, verdict, "red")
        assert [{"reply": {"id": 7, "answer": answer}}] == said(working)


@pytest.mark.parametrize("bad", [elicitation(), elicitation(mode="url", x={"type": "string"}), elicitation(mode=[])])
def test_what_nobody_can_fill_in_is_declined(working: AcpConversation, bad: dict[str, Any]) -> None:
    """An empty form or a page to visit is declined, because only forms are supported."""
    assert [] == fed(working, bad)
    assert [{"reply": {"id": 7, "answer": None}}] == said(working)


HOSTILE = [
    elicitation(a=[], b={"type": [], "enum": 5, "items": {"oneOf": [1, {"const": {}}]}, "title": 1}),
    {"method": "elicitation/create", "id": {}, "params": {"mode": "form", "requestedSchema": {"properties": [1]}}},
    {"sent": 3},
    {"sent": {"method": "session/prompt", "id": []}},
    {"bridge": []},
    {"method": "session/request_permission", "id": 1},
    question(options=5, toolCallId=[]),
    question(options=[1, {"kind": [], "optionId": {}}], kind=[], title={}, rawInput=[1], locations=[2, {"path": 3}]),
    question(number=1.5, kind="execute", rawInput={"command": {"a": 1}, "cwd": 3}),
    question(kind="edit", content=[{"type": "diff", "path": [], "newText": "x", "oldText": 4}]),
    {"jsonrpc": "2.0", "id": [], "result": {"stopReason": []}},
    {"jsonrpc": "2.0", "id": 2, "error": 5},
    ended(99, "nonsense"),
]


@pytest.mark.parametrize("bad", HOSTILE)
def test_nothing_that_is_written_raises(tmp_path: Path, bad: dict[str, Any]) -> None:
    """A malformed message never raises: before the session, during a turn or after it."""
    for before in ((), (READY, prompted(2)), (READY, prompted(2), ended(2))):
        stream = AcpConversation(start(tmp_path, talk=True))
        fed(stream, *before)
        stream.tell("m", "Go on.")
        for event in fed(stream, bad, bad):
            if isinstance(event, Request):
                stream.reply(event.id, Verdict.ALLOW, "")
        json.dumps(said(stream))
        stream.end()
