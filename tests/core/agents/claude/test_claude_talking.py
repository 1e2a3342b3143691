"""Messages to a working Claude Code, its requests, and the replies."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, strategies
from subdeck.core.agents.child import Start
from subdeck.core.agents.claude._conversation import ClaudeConversation
from subdeck.core.agents.claude.agent import AGENT
from subdeck.core.run.events import Decision, Event, Interrupted, Message, Notice, Request
from subdeck.core.run.model import MessageState, Permissions, RequestKind, RunReason, Verdict
from subdeck.core.run.outcome import decide

from tests.factories import make_meta

from .test_claude_stream import CASES, INIT, JSON, assistant, line, result, text

ABORTED = result("error_during_execution", is_error=True, terminal_reason="aborted_tools")


@pytest.fixture
def stream(tmp_path: Path) -> ClaudeConversation:
    """A stream in the middle of its first turn."""
    (tmp_path / "prompt.md").write_bytes(b"/do it \xff")
    stream = ClaudeConversation(Start(make_meta(talk=True), str(tmp_path)))
    (task,) = said(stream)
    assert "/do it \ufffd" == task["message"]["content"][0]["text"], "the task is passed on as it is"
    fed(stream, INIT, repeated(task))
    return stream


def fed(stream: ClaudeConversation, *lines: bytes) -> list[Event]:
    return [event for each in lines for event in stream.feed(each)]


def said(stream: ClaudeConversation) -> list[dict[str, Any]]:
    """Return the messages to the agent."""
    return [json.loads(each) for each in stream.replies().splitlines()]


def repeated(message: dict[str, Any]) -> bytes:
    return line(type="user", message=message["message"], uuid=message.get("uuid", "theirs"), isReplay=True)


def answer(request: dict[str, Any], subtype: str = "success", **response: Any) -> bytes:
    answered = {"subtype": subtype, "request_id": request["request_id"], "response": response}
    return line(type="control_response", response=answered)


def asks(tool: str = "Bash", number: str = "r1", **arguments: Any) -> bytes:
    wish = {"subtype": "can_use_tool", "tool_name": tool, "input": arguments, "tool_use_id": "t1"}
    return line(type="control_request", request_id=number, request=wish)


def is_over(stream: ClaudeConversation) -> bool:
    return stream.is_stdin_done and stream.finished_after == 0


def told(stream: ClaudeConversation, text: str = "More", message_id: str = "m1") -> dict[str, Any]:
    stream.tell(message_id, text)
    (message,) = said(stream)
    return message


def states(events: list[Event]) -> list[tuple[str, MessageState]]:
    return [(event.id, event.state) for event in events if isinstance(event, Message)]


@pytest.mark.parametrize(("version", "talks"), [("1.0.98", False), ("2.0.1", True), ("2.1.330", True), (None, True)])
def test_which_versions_are_talked_to(tmp_path: Path, version: str | None, talks: bool) -> None:
    """An unknown version, such as of a program outside a package, is treated as new."""
    program = tmp_path / "claude"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    if version:
        (tmp_path / "package.json").write_text(json.dumps({"name": "@anthropic-ai/claude-code", "version": version}))
    assert talks is AGENT.choose("claude", (str(program),), {}).talks


# --- messages ---


def test_it_is_over_with_the_first_result_after_the_last_message(stream: ClaudeConversation) -> None:
    """The result of a turn that had not read the message is not the last one."""
    message = told(stream)
    fed(stream, assistant(text("One.")), result(result="One."))
    assert (False, None) == (stream.is_stdin_done, stream.finished_after)
    events = fed(stream, INIT, repeated(message), assistant(text("Two."), message="m2"))
    assert [("m1", MessageState.DELIVERED)] == states(events)
    fed(stream, result(result="Two."))
    assert is_over(stream)
    assert (RunReason.DONE, "Two.") == (decide(stream.facts).reason, stream.facts.final_text)


def test_what_begins_with_a_slash_is_no_command(stream: ClaudeConversation) -> None:
    for written in ("/clear", "\n /srv/x is wrong"):
        assert f"Message: {written}" == told(stream, written)["message"]["content"][0]["text"]


def test_only_what_was_told_is_delivered(stream: ClaudeConversation) -> None:
    """The task, other people's messages and repeated messages are not reported as delivered."""
    message = told(stream)
    assert 1 == len(states(fed(stream, line(type="user", uuid="x", isReplay=True), *[repeated(message)] * 2)))


def test_a_message_whose_turn_ended_before_it_was_read(stream: ClaudeConversation) -> None:
    """It is refused, and the run is finished because no turn follows."""
    message = told(stream)
    fed(stream, result("error_max_budget_usd", is_error=True))
    assert not stream.is_stdin_done
    ended = line(type="command_lifecycle", command_uuid=message["uuid"], state="cancelled")
    assert [("m1", MessageState.REFUSED)] == states(fed(stream, ended))
    assert is_over(stream)


def test_a_shell_in_the_background_keeps_it_open(stream: ClaudeConversation) -> None:
    """While a background shell runs, messages are accepted. When it ends, another turn starts."""
    task = {"type": "system", "task_id": "b1", "is_backgrounded": True}
    fed(stream, line(**task, subtype="task_started"), assistant(text("It runs.")), result(result="It runs."))
    assert (False, None) == (stream.is_stdin_done, stream.finished_after)
    fed(stream, line(type="system", subtype="task_notification", task_id="b1"), INIT, result(result="It runs."))
    assert is_over(stream)


# --- interrupts ---


def test_interrupted_it_waits_for_what_is_said_next(stream: ClaudeConversation) -> None:
    stream.interrupt(stays=True)
    (wish,) = said(stream)
    assert {"subtype": "interrupt"} == wish["request"]
    own_words = line(type="user", message={"content": [text("[Request interrupted by user]")]})
    events = fed(stream, answer(wish, still_queued=[]), own_words, ABORTED)
    assert [Interrupted] == [type(event) for event in events]
    assert (True, False, None) == (stream.is_waiting, stream.is_stdin_done, stream.finished_after)

    message = told(stream)
    assert not stream.is_waiting
    fed(stream, INIT, repeated(message))
    assert stream.facts.ended is None, "the turn that follows may end otherwise"
    fed(stream, assistant(text("Yes.")), result(result="Yes."))
    assert is_over(stream) and RunReason.DONE == decide(stream.facts).reason


def test_left_alone_it_ends_as_interrupted(stream: ClaudeConversation) -> None:
    fed(stream, assistant(text("So far.")))
    stream.interrupt(stays=True)
    fed(stream, answer(*said(stream)), ABORTED)
    stream.close()
    assert is_over(stream)
    assert (RunReason.INTERRUPTED, "So far.") == (decide(stream.facts).reason, stream.facts.final_text)


def test_an_interrupt_after_the_end_of_the_turn_is_too_late(stream: ClaudeConversation) -> None:
    """The turn had already ended, so the run is done."""
    stream.interrupt(stays=True)
    events = fed(stream, assistant(text("Yes.")), result(result="Yes."), answer(*said(stream)))
    assert [] == [event for event in events if isinstance(event, Interrupted)]
    assert is_over(stream) and RunReason.DONE == decide(stream.facts).reason


def test_an_interrupt_between_turns(stream: ClaudeConversation) -> None:
    """With a background shell and no turn, there is nothing to interrupt, and the agent waits."""
    started = line(type="system", subtype="task_started", task_id="b1", is_backgrounded=True)
    fed(stream, started, assistant(text("It runs.")), result(result="It runs."))
    stream.interrupt(stays=True)
    assert [Interrupted] == [type(event) for event in fed(stream, answer(*said(stream)))]
    assert stream.is_waiting
    fed(stream, INIT)
    assert not stream.is_waiting, "the shell has ended, and the child goes on by itself"


def test_an_interrupt_that_hits_the_turn_of_a_message(stream: ClaudeConversation) -> None:
    """The turn before it had already ended."""
    message = told(stream)
    stream.interrupt(stays=True)
    (wish,) = said(stream)
    fed(stream, result(result="One."), INIT, repeated(message))
    events = fed(stream, answer(wish), ABORTED)
    assert [Interrupted] == [type(event) for event in events]
    assert stream.is_waiting and not stream.is_stdin_done


def test_a_refused_interrupt_is_told(stream: ClaudeConversation) -> None:
    stream.interrupt(stays=True)
    (notice,) = fed(stream, answer(*said(stream), subtype="error"))
    assert isinstance(notice, Notice)
    fed(stream, result(result="Yes."))
    assert is_over(stream)


def test_stopped_it_takes_up_no_message_that_it_has(stream: ClaudeConversation) -> None:
    """A stop also ends the turn that an unread message starts."""
    message = told(stream)
    stream.interrupt(stays=False)
    first = said(stream)
    fed(stream, answer(*first), ABORTED, INIT)
    second = said(stream)
    assert 1 == len(first) == len(second)
    fed(stream, repeated(message), answer(*second), ABORTED)
    assert is_over(stream)
    stream.tell("m2", "too late")
    assert [] == said(stream)


def test_stopped_while_it_waits_it_goes_at_once(stream: ClaudeConversation) -> None:
    stream.interrupt(stays=True)
    fed(stream, answer(*said(stream)), ABORTED)
    stream.interrupt(stays=False)
    assert is_over(stream) and RunReason.INTERRUPTED == decide(stream.facts).reason


# --- its requests ---


@pytest.mark.parametrize(
    ("tool", "arguments", "expected"),
    [
        ("Bash", {"command": "rm x", "description": "Clear up"}, {"command": "rm x", "text": "Clear up"}),
        ("Edit", {"file_path": "/a", "old_string": "x", "new_string": "y"}, {"paths": ("/a",), "tool_name": "edit"}),
        ("Glob", {"pattern": "*.py", "path": "/b"}, {"paths": ("/b",), "text": "*.py", "tool_name": "find"}),
        ("WebFetch", {"url": "http://x", "prompt": "p"}, {"text": "http://x\n\np", "title": "wants to fetch a page"}),
        ("mcp__a__b", {"n": 1}, {"text": '{"n":1}', "title": "wants to use mcp__a__b", "tool_name": "mcp__a__b"}),
        ("mcp__a__b", {"path": "x", "content": "y"}, {"paths": ("x",), "text": '{"content":"y"}'}),
        (
            "Bash",
            {"command": "rm x", "dangerouslyDisableSandbox": True},
            {"command": "", "text": 'rm x\n\n{"dangerouslyDisableSandbox":true}'},
        ),
        ("ExitPlanMode", {"plan": "1. x"}, {"text": "1. x", "title": "wants to carry out its plan"}),
        ("", {}, {"title": "wants to use a tool"}),
    ],
)
def test_leave_for_a_call(
    stream: ClaudeConversation, tool: str, arguments: dict[str, Any], expected: dict[str, Any]
) -> None:
    """A request names the call's effect, with subdeck's names of tools."""
    (request,) = fed(stream, asks(tool, **arguments))
    assert isinstance(request, Request)
    assert {"kind": RequestKind.PERMISSION, "id": "r1", "tool_call_id": "t1", **expected} == {
        name: getattr(request, name) for name in ("kind", "id", "tool_call_id", *expected)
    }
    assert ("-x\n+y" in request.diff) == (tool == "Edit")


@pytest.mark.parametrize(
    ("verdict", "word", "expected"),
    [
        (Verdict.ALLOW, "", {"behavior": "allow", "updatedInput": {"command": "ls"}}),
        (Verdict.ALLOW_RUN, "", {"behavior": "allow", "updatedInput": {"command": "ls"}}),
        (Verdict.DENY, "No.", {"behavior": "deny", "message": "No."}),
        (Verdict.DENY, "", {"behavior": "deny", "message": "This call was denied."}),
        (Verdict.REPLY, "yes", {"behavior": "deny", "message": "yes"}),
    ],
)
def test_the_word_about_a_call(
    stream: ClaudeConversation, verdict: Verdict, word: str, expected: dict[str, Any]
) -> None:
    """The reply is sent once. A reply that doesn't fit is denied."""
    fed(stream, asks(command="ls"))
    for _ in range(2):
        stream.reply("r1", verdict, word)
    (response,) = said(stream)
    assert ("r1", expected) == (response["response"]["request_id"], response["response"]["response"])


SCHEMA = {"type": "object", "properties": {"n": {"type": "integer", "title": "Number"}}, "required": ["n"]}


@pytest.mark.parametrize(
    ("wish", "kind", "verdict", "word", "expected"),
    [
        ({"requested_schema": SCHEMA}, RequestKind.FORM, Verdict.REPLY, '{"n": "3"}', {"content": {"n": 3}}),
        ({"requested_schema": SCHEMA}, RequestKind.FORM, Verdict.DENY, "", {"action": "decline"}),
        ({"mode": "url", "url": "http://x"}, RequestKind.PERMISSION, Verdict.ALLOW, "", {"content": {}}),
        ({"mode": "url", "url": "http://x"}, RequestKind.PERMISSION, Verdict.DENY, "No.", {"action": "decline"}),
    ],
)
def test_what_a_server_asks(
    stream: ClaudeConversation,
    wish: dict[str, Any],
    kind: RequestKind,
    verdict: Verdict,
    word: str,
    expected: dict[str, Any],
) -> None:
    """A form or a page of an MCP server is shown and answered as such."""
    asked = {"subtype": "elicitation", "mcp_server_name": "shop", "message": "How many?", **wish}
    (request,) = fed(stream, line(type="control_request", request_id="r1", request=asked))
    assert isinstance(request, Request)
    assert (kind, "the server shop has a question") == (request.kind, request.title)
    assert "How many?" in request.text and wish.get("url", "") in request.text
    stream.reply("r1", verdict, word)
    (response,) = said(stream)
    assert {"action": "accept", **expected} == response["response"]["response"]


@pytest.mark.parametrize(("headers", "names"), [("ab", ("a", "b")), ("aa", ("1", "2"))])
def test_questions_are_answered_by_their_headers(
    stream: ClaudeConversation, headers: str, names: tuple[str, ...]
) -> None:
    """Fields are named by their headers, or by numbers if two headers are the same."""
    questions = [{"question": f"Q{number}?", "header": header} for number, header in enumerate(headers)]
    (request,) = fed(stream, asks("AskUserQuestion", questions=questions))
    assert names == tuple(field.name for field in getattr(request, "fields", ()))
    stream.reply("r1", Verdict.REPLY, "\n".join(f"{name}: {name}!" for name in names))
    (response,) = said(stream)
    answers = {f"Q{number}?": f"{name}!" for number, name in enumerate(names)}
    assert {"questions": questions, "answers": answers} == response["response"]["response"]["updatedInput"]


def test_what_it_takes_back(stream: ClaudeConversation) -> None:
    """Requests are withdrawn by the agent or by the end of the turn, and later replies are not sent."""
    fed(stream, asks(number="r1"), asks(number="r2"))
    events = fed(stream, line(type="control_cancel_request", request_id="r1"), ABORTED)
    assert [("r1", Verdict.WITHDRAWN), ("r2", Verdict.WITHDRAWN)] == [
        (event.request, event.verdict) for event in events if isinstance(event, Decision)
    ]
    stream.reply("r1", Verdict.ALLOW, "")
    assert [] == said(stream)


def test_an_absurd_question(stream: ClaudeConversation) -> None:
    """A question nested too deeply to be repeated in the answer is refused like an unknown request."""
    for depth in (200, 990, 993, 995, 5000):
        deep = b'{"x":' * depth + b"1" + b"}" * depth
        wish = b'{"subtype":"can_use_tool","tool_name":"Bash","input":' + deep + b"}"
        for event in fed(stream, b'{"type":"control_request","request_id":"r1","request":' + wish + b"}"):
            assert isinstance(event, Notice)
    assert {"error"} == {each["response"]["subtype"] for each in said(stream)}


def test_what_it_repeats_is_asked_once(stream: ClaudeConversation) -> None:
    assert [1, 0] == [len(fed(stream, asks())) for _ in range(2)]


def test_what_is_not_known_here_is_answered(stream: ClaudeConversation) -> None:
    """Without an answer to its request, the agent would wait forever."""
    assert [] == fed(stream, line(type="control_request", request_id="r1", request={"subtype": "new"}))
    (response,) = said(stream)
    assert ("error", "r1") == (response["response"]["subtype"], response["response"]["request_id"])


# --- rules of the run ---


@pytest.fixture
def ruled(tmp_path: Path) -> ClaudeConversation:
    """A stream of a run with rules and an early message."""
    (tmp_path / "prompt.md").write_text("Look.")
    rules = Permissions(allow=("read",), ask=("bash(git *)",), deny=("edit(x)",))
    stream = ClaudeConversation(Start(make_meta(talk=True, permissions=rules, cwd="/srv"), str(tmp_path)))
    stream.tell("m1", "More")
    return stream


def test_nothing_is_said_before_the_rules_are_kept_to(ruled: ClaudeConversation) -> None:
    (registration,) = said(ruled)
    assert "initialize" == registration["request"]["subtype"]
    assert [] == fed(ruled, answer(registration))
    assert ["Look.", "More"] == [each["message"]["content"][0]["text"] for each in said(ruled)]


def test_without_its_rules_there_is_no_run(ruled: ClaudeConversation) -> None:
    fed(ruled, answer(*said(ruled), subtype="error"))
    assert [] == said(ruled)
    end = decide(ruled.facts)
    assert is_over(ruled) and RunReason.START_FAILED == end.reason
    assert "enforce the rules of this run" in (end.message or "")


def test_stopped_before_it_began(ruled: ClaudeConversation) -> None:
    ruled.interrupt(stays=False)
    assert is_over(ruled)


@pytest.mark.parametrize(
    ("tool", "arguments", "asks_about_it"),
    [
        ("Bash", {"command": "git push"}, True),
        ("Bash", {"command": "make"}, False),
        ("Read", {"file_path": "/srv/a"}, True),
        ("NotebookEdit", {"notebook_path": "/srv/x"}, True),
        ("Edit", {"file_path": "/srv/y"}, False),
    ],
)
def test_it_is_made_to_ask_about_what_a_rule_mentions(
    ruled: ClaudeConversation, tool: str, arguments: dict[str, Any], asks_about_it: bool
) -> None:
    """It asks even about allowed calls, which are then recorded. The hook also gives the call's directory."""
    fed(ruled, answer(said(ruled)[0]))
    said(ruled)
    called = {"tool_name": tool, "tool_input": arguments, "tool_use_id": "t1", "cwd": "/srv/sub"}
    wish = {"subtype": "hook_callback", "callback_id": "hook", "input": called}
    fed(ruled, line(type="control_request", request_id="h1", request=wish))
    (response,) = said(ruled)
    decision = response["response"]["response"].get("hookSpecificOutput", {}).get("permissionDecision")
    assert ("ask" if asks_about_it else None) == decision
    (request,) = fed(ruled, asks(tool, **arguments))
    assert ("/srv/sub" if asks_about_it else "") == getattr(request, "cwd", None)


# --- recordings, and invalid output ---


def test_a_recorded_question_and_its_answer() -> None:
    """A replay shows the requests and the replies."""
    stream = ClaudeConversation()
    events = fed(stream, *(CASES / "ask-allow" / "stdout.jsonl").read_bytes().splitlines())
    told = [event for event in events if isinstance(event, Request | Decision)]
    assert ["write", Verdict.ALLOW] == [getattr(event, "verdict", "") or event.tool_name for event in told]
    assert b"" == stream.replies() and stream.finished_after == 0


KINDS = ("control_request", "control_response", "control_cancel_request", "command_lifecycle", "user", "result")
KEYS = ["request", "response", "request_id", "subtype", "state", "uuid", "isReplay", "command_uuid", "message"]
ASKING = ["subtype", "tool_name", "input", "tool_use_id", "questions", "options", "label", "file_path", "new_string"]


@pytest.mark.fuzz
@given(
    strategies.lists(strategies.dictionaries(strategies.sampled_from(KEYS), JSON, max_size=6), max_size=4),
    strategies.dictionaries(strategies.sampled_from(ASKING), JSON, max_size=6),
    strategies.sampled_from(("Edit", "Bash", "AskUserQuestion")),
)
def test_nothing_makes_it_raise(lines: list[dict[str, Any]], arguments: dict[str, Any], tool: str) -> None:
    """The reader continues with any values in the fields of a line, and with messages in between."""
    stream = ClaudeConversation()
    stream._is_recorded = stream.is_stdin_done = False
    stream.interrupt(stays=True)
    stream.tell("m1", "x")
    wish = {"subtype": "can_use_tool", "tool_name": tool, "input": arguments}
    questions = {"questions": [arguments, {"question": arguments, "options": [arguments]}]}
    for kind in KINDS:
        for fields in lines:
            stream.feed(json.dumps(fields | {"type": kind}).encode())
    of_server = {"subtype": "elicitation", "requested_schema": {"properties": arguments}, "message": arguments}
    for number, asked in enumerate((wish, wish | arguments, wish | {"input": questions}, of_server)):
        events = stream.feed(
            json.dumps({"type": "control_request", "request_id": f"{number}", "request": asked}).encode()
        )
        for event in events:
            stream.reply(getattr(event, "id", ""), Verdict.REPLY, json.dumps(arguments))
    stream.end()
