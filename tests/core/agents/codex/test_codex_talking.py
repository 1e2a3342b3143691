"""Messages to a working Codex, its requests, and the replies."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from subdeck.core.agents.codex._conversation import CodexConversation
from subdeck.core.agents.codex._talk import Talk
from subdeck.core.permissions.rules import Policy
from subdeck.core.run.events import Decision, Event, Interrupted, Message, Notice, Request
from subdeck.core.run.model import MessageState, Permissions, RequestKind, RunReason, Tools, Verdict
from subdeck.core.run.outcome import decide
from subdeck.core.run.requests import request_text

from .codex_lines import (
    INITIALIZED,
    OPENED,
    SETTINGS,
    THREAD,
    TURN,
    TURN_STARTED,
    ended,
    fed,
    item,
    line,
    said,
    start,
    told,
)

COMMAND = told("item/commandExecution/requestApproval", itemId="i-1", command="/bin/bash -lc 'rm x'", cwd="/srv/shop")


@pytest.fixture
def starting(tmp_path: Path) -> CodexConversation:
    """A stream whose agent is starting."""
    return CodexConversation(Talk(start(tmp_path, talk=True)))


@pytest.fixture
def working(starting: CodexConversation) -> CodexConversation:
    """A stream in the middle of its first turn."""
    fed(starting, INITIALIZED, SETTINGS, OPENED, TURN_STARTED)
    said(starting)
    return starting


def begins(turn: str) -> dict[str, Any]:
    return {"method": "turn/started", "params": {"threadId": THREAD, "turn": {"id": turn}}}


def shows(message: str) -> dict[str, Any]:
    """Return the line for a message that Codex added to its thread."""
    return item("started", "userMessage", clientId=message)


def answer(request: dict[str, Any], **result: Any) -> dict[str, Any]:
    return {"id": request["id"], "result": result}


def refusal(request: dict[str, Any], words: str) -> dict[str, Any]:
    return {"id": request["id"], "error": {"code": -32600, "message": words}}


def states(events: list[Event]) -> list[tuple[str, MessageState]]:
    return [(event.id, event.state) for event in events if isinstance(event, Message)]


def is_over(stream: CodexConversation) -> bool:
    return stream.is_stdin_done and stream.finished_after == 0


# --- messages ---


def test_a_message_is_told_to_the_turn_that_runs(working: CodexConversation) -> None:
    """It is delivered when it appears in the thread, not when Codex accepts it."""
    working.tell("m", "Say bananas.")
    (steer,) = said(working)
    assert ("turn/steer", THREAD, TURN, "Say bananas.", "m") == (
        steer["method"],
        steer["params"]["threadId"],
        steer["params"]["expectedTurnId"],
        steer["params"]["input"][0]["text"],
        steer["params"]["clientUserMessageId"],
    )
    assert [] == states(fed(working, answer(steer, turnId=TURN)))
    assert [("m", MessageState.DELIVERED)] == states(fed(working, shows("m"), shows("m")))
    fed(working, ended("completed"))
    assert is_over(working)


def test_a_message_waits_for_the_first_turn(starting: CodexConversation) -> None:
    """A message sent while Codex starts waits for the first turn."""
    starting.tell("m", "And this.")
    fed(starting, INITIALIZED, SETTINGS, OPENED)
    assert "turn/steer" not in [request["method"] for request in said(starting)]
    fed(starting, TURN_STARTED)
    assert ["turn/steer"] == [request["method"] for request in said(starting)]


def test_a_message_that_comes_as_the_turn_ends_gets_one_of_its_own(working: CodexConversation) -> None:
    """The run continues until the message had its turn."""
    working.tell("m", "One more thing.")
    (steer,) = said(working)
    fed(working, ended("completed"))
    assert not working.is_stdin_done and working.finished_after is None
    assert [] == states(fed(working, refusal(steer, "no active turn to steer")))
    (turn,) = said(working)
    assert ("turn/start", "One more thing.") == (turn["method"], turn["params"]["input"][0]["text"])
    events = fed(working, answer(turn, turn={"id": "u-2"}), begins("u-2"), shows("m"))
    assert [("m", MessageState.DELIVERED)] == states(events)
    fed(working, item("completed", "agentMessage", text="Done, too."), ended("completed", turn="u-2"))
    assert (True, "Done, too.") == (is_over(working), working.facts.final_text)


def test_a_message_that_was_taken_and_never_shown_is_told_again(working: CodexConversation) -> None:
    working.tell("m", "One more thing.")
    fed(working, answer(said(working)[0], turnId=TURN), ended("completed"))
    assert ["turn/start"] == [request["method"] for request in said(working)]
    assert not working.is_stdin_done


def test_a_turn_that_takes_no_messages(working: CodexConversation) -> None:
    """After a refusal, such as during compaction, later messages wait for the next turn, in their order."""
    working.tell("m", "First.")
    fed(working, refusal(said(working)[0], "cannot steer a compact turn"))
    working.tell("n", "Second.")
    assert [] == said(working)
    fed(working, ended("completed"))
    (turn,) = said(working)
    assert "First." == turn["params"]["input"][0]["text"]
    fed(working, answer(turn, turn={"id": "u-2"}), begins("u-2"))
    (steer,) = said(working)
    assert ("turn/steer", "u-2", "Second.") == (
        steer["method"],
        steer["params"]["expectedTurnId"],
        steer["params"]["input"][0]["text"],
    )


def test_a_message_that_codex_does_not_take_at_all(working: CodexConversation) -> None:
    """It is refused with Codex's reason, and the run's outcome stays the same."""
    working.tell("m", "x" * 9)
    steer = said(working)[0]
    fed(working, item("completed", "agentMessage", text="Done."), ended("completed"), refusal(steer, "too long"))
    events = fed(working, refusal(said(working)[0], "the input is too long"))
    assert [("m", MessageState.REFUSED)] == states(events)
    assert "the input is too long" in [event.reason for event in events if isinstance(event, Message)]
    assert (True, "done") == (is_over(working), decide(working.facts).reason)


# --- interrupts ---


def interrupted(stream: CodexConversation) -> list[Event]:
    stream.interrupt(stays=True)
    (request,) = said(stream)
    assert ("turn/interrupt", TURN) == (request["method"], request["params"]["turnId"])
    return fed(stream, answer(request), ended("interrupted"))


def test_an_interrupted_child_waits_for_what_is_said_next(working: CodexConversation) -> None:
    """Its text is kept. The next message starts a turn, and the end of that turn ends the run."""
    fed(working, item("completed", "agentMessage", text="So far."))
    events = interrupted(working)
    assert [Interrupted] == [type(event) for event in events]
    assert (True, False, None) == (working.is_waiting, working.is_stdin_done, working.finished_after)
    working.interrupt(stays=True)
    assert [] == said(working)
    working.tell("m", "Go on.")
    (turn,) = said(working)
    assert ("turn/start", False) == (turn["method"], working.is_waiting)
    fed(working, begins("u-2"), shows("m"), item("completed", "agentMessage", text="All."))
    fed(working, ended("completed", turn="u-2"))
    assert (True, "done", "All.") == (is_over(working), decide(working.facts).reason, working.facts.final_text)


def test_an_interrupted_child_to_which_nothing_is_said(working: CodexConversation) -> None:
    fed(working, item("completed", "agentMessage", text="So far."))
    interrupted(working)
    working.close()
    assert (True, False, RunReason.INTERRUPTED, "So far.") == (
        is_over(working),
        working.is_waiting,
        decide(working.facts).reason,
        working.facts.final_text,
    )


def test_what_was_told_before_an_interrupt_is_told_again(working: CodexConversation) -> None:
    """Codex drops messages that are not in its thread yet, so they start the next turn at once."""
    working.tell("m", "Rather this.")
    fed(working, answer(said(working)[0], turnId=TURN))
    events = interrupted(working)
    assert [Interrupted] == [type(event) for event in events]
    (turn,) = said(working)
    assert ("turn/start", "m") == (turn["method"], turn["params"]["clientUserMessageId"])
    assert not working.is_waiting


def test_what_is_said_while_a_turn_is_being_interrupted(working: CodexConversation) -> None:
    """It is not sent to the turn that is about to end."""
    working.interrupt(stays=True)
    said(working)
    working.tell("m", "Rather this.")
    assert [] == said(working)
    fed(working, ended("interrupted"))
    assert ["turn/start"] == [request["method"] for request in said(working)]


def test_an_interrupt_before_the_first_turn(starting: CodexConversation) -> None:
    """The interrupt is sent as soon as a turn starts."""
    starting.interrupt(stays=True)
    fed(starting, INITIALIZED, SETTINGS, OPENED)
    said(starting)
    fed(starting, TURN_STARTED)
    assert ["turn/interrupt"] == [request["method"] for request in said(starting)]
    fed(starting, ended("interrupted"))
    assert starting.is_waiting


def test_an_interrupt_that_comes_as_the_turn_ends(working: CodexConversation) -> None:
    """The turn was complete: the run is done, and the refused request is not reported."""
    working.interrupt(stays=True)
    (request,) = said(working)
    fed(working, item("completed", "agentMessage", text="Done."))
    events = fed(working, ended("completed"), refusal(request, "no active turn"))
    assert ([], True, "done") == (events, is_over(working), decide(working.facts).reason)


def test_an_interrupt_that_is_refused(working: CodexConversation) -> None:
    """The turn continues and accepts messages again."""
    working.interrupt(stays=True)
    (request,) = said(working)
    working.tell("m", "Rather this.")
    (notice,) = fed(working, refusal(request, "not now"))
    assert isinstance(notice, Notice) and "not now" in notice.text
    assert ["turn/steer"] == [request["method"] for request in said(working)]


@pytest.mark.parametrize("when", ["starting", "working", "interrupted"])
def test_a_soft_stop(starting: CodexConversation, when: str) -> None:
    """The turn ends through Codex's protocol. Then the agent has nothing left to do."""
    if when != "starting":
        fed(starting, INITIALIZED, SETTINGS, OPENED, TURN_STARTED)
        said(starting)
    if when == "interrupted":
        interrupted(starting)
    starting.interrupt(stays=False)
    if when == "working":
        starting.tell("m", "Too late.")
        assert ["turn/interrupt"] == [request["method"] for request in said(starting)]
        assert [] == fed(starting, ended("interrupted"))
    assert (True, False) == (is_over(starting), starting.is_waiting)
    assert RunReason.INTERRUPTED is decide(starting.facts).reason


# --- requests ---


def with_id(message: dict[str, Any], id_: object = 0) -> dict[str, Any]:
    """Turn a notification into a request."""
    return {"method": message["method"], "id": id_, "params": message["params"]}


def asked(stream: CodexConversation, message: dict[str, Any], id_: object = 0) -> Request:
    (request,) = fed(stream, with_id(message, id_))
    assert isinstance(request, Request)
    assert [] == said(stream)
    return request


@pytest.mark.parametrize(
    ("verdict", "decision"),
    [(Verdict.ALLOW, "accept"), (Verdict.ALLOW_RUN, "accept"), (Verdict.DENY, "decline")],
)
def test_a_command_is_asked_for(working: CodexConversation, verdict: Verdict, decision: str) -> None:
    """The request shows the exact command and its directory."""
    request = asked(working, COMMAND)
    assert (RequestKind.PERMISSION, "bash", "rm x", "/srv/shop", "i-1") == (
        request.kind,
        request.tool_name,
        request.command,
        request.cwd,
        request.tool_call_id,
    )
    working.reply(request.id, verdict, "")
    assert [{"id": 0, "result": {"decision": decision}}] == said(working)
    working.reply(request.id, Verdict.ALLOW, "")
    assert [] == said(working), "one answer to one question"


def test_the_word_of_a_denial_reaches_the_model(working: CodexConversation) -> None:
    """The protocol has no field for the reason, so a message to the turn is sent before the denial."""
    request = asked(working, COMMAND)
    working.reply(request.id, Verdict.DENY, "use git rm")
    steer, denial = said(working)
    assert ("turn/steer", "Denied (rm x): use git rm") == (steer["method"], steer["params"]["input"][0]["text"])
    assert {"decision": "decline"} == denial["result"]
    assert [] == fed(working, answer(steer, turnId=TURN), item("started", "userMessage"), ended("completed"))
    assert is_over(working)


def test_an_edit_is_asked_for_with_its_diff(working: CodexConversation) -> None:
    """The diff comes from the item, because the request doesn't have it."""
    changes = [
        {"path": "/srv/shop/new.py", "kind": {"type": "add"}, "diff": "a\nb\n"},
        {"path": "/srv/shop/old.py", "kind": {"type": "update", "move_path": None}, "diff": "@@ -1 +1 @@\n-a\n+b\n"},
    ]
    fed(working, item("started", "fileChange", changes=changes, status="inProgress"))
    request = asked(working, told("item/fileChange/requestApproval", itemId="i-1", reason="outside"))
    assert ("edit", ("/srv/shop/new.py", "/srv/shop/old.py"), "outside") == (
        request.tool_name,
        request.paths,
        request.text,
    )
    assert "+++ /srv/shop/new.py\n@@ -0,0 +1,2 @@\n+a\n+b" in request.diff
    assert "+++ /srv/shop/old.py\n@@ -1 +1 @@\n-a\n+b" in request.diff
    working.reply(request.id, Verdict.ALLOW, "")
    assert [{"id": 0, "result": {"decision": "accept"}}] == said(working)


def test_an_edit_is_asked_for_with_all_that_it_touches(working: CodexConversation) -> None:
    """The paths include a move's target and the directory to be allowed, so rules check them."""
    changes = [{"path": "/srv/shop/a.py", "kind": {"type": "update", "move_path": "/srv/b.py"}, "diff": "@@"}]
    fed(working, item("started", "fileChange", changes=changes, status="inProgress"))
    request = asked(working, told("item/fileChange/requestApproval", itemId="i-1", grantRoot="/srv"))
    assert ("/srv/shop/a.py", "/srv/b.py", "/srv") == request.paths


def test_a_command_that_wants_more_is_allowed_by_no_rule(working: CodexConversation) -> None:
    """Additional permissions are shown in the request, and a rule for the command does not cover them."""
    more = {"network": {"enabled": True}}
    request = asked(
        working, told("item/commandExecution/requestApproval", command="git fetch", additionalPermissions=more)
    )
    assert "git fetch" in request.text and '"enabled":true' in request.text
    policy = Policy(Permissions(allow=("bash(git *)",)), "/srv/shop")
    assert (None, "") == policy.decide(request)


def test_further_permissions_are_given_as_they_were_asked_for(working: CodexConversation) -> None:
    wanted = {"fileSystem": {"write": ["/srv/data"]}, "network": {"enabled": True}}
    for verdict, result in (
        (Verdict.ALLOW, {"permissions": wanted, "scope": "turn"}),
        (Verdict.DENY, {"permissions": {}}),
    ):
        request = asked(working, told("item/permissions/requestApproval", permissions=wanted, cwd="/srv/shop"))
        assert ("/srv/data",) == request.paths
        assert '"enabled":true' in request.text
        working.reply(request.id, verdict, "")
        assert [{"id": 0, "result": result}] == said(working)


OPTIONS = [{"label": "Red", "description": "warm"}, {"label": "Blue", "description": ""}]
COLOUR = {"id": "c", "header": "Colour", "question": "Which one?", "options": OPTIONS}
NAME = {"id": "n", "header": "Name", "question": "What name?", "options": None}


@pytest.mark.parametrize(
    ("questions", "kind", "text", "answers"),
    [
        ([COLOUR], RequestKind.CHOICE, "Blue", {"c": {"answers": ["Blue"]}}),
        ([{**COLOUR, "isOther": True}], RequestKind.QUESTION, "a: green", {"c": {"answers": ["a: green"]}}),
        ([NAME], RequestKind.QUESTION, "Ada", {"n": {"answers": ["Ada"]}}),
        (
            [COLOUR, NAME],
            RequestKind.FORM,
            "colour: Red\nname: Ada",
            {"c": {"answers": ["Red"]}, "n": {"answers": ["Ada"]}},
        ),
        ([COLOUR, NAME], RequestKind.FORM, '{"c": "Red"}', {"c": {"answers": ["Red"]}}),
        ([COLOUR, NAME], RequestKind.FORM, "whatever", {}),
    ],
)
def test_questions(
    working: CodexConversation, questions: list[dict[str, Any]], kind: RequestKind, text: str, answers: object
) -> None:
    """One question is answered by text, several by a form."""
    request = asked(working, told("item/tool/requestUserInput", itemId="i", questions=questions))
    assert kind is request.kind
    if kind is RequestKind.FORM:
        assert [("c", "Which one?\n\nRed: warm"), ("n", "What name?")] == [
            (field.name, field.text) for field in request.fields
        ]
    else:
        assert request.text.startswith(questions[0]["question"])
    working.reply(request.id, Verdict.REPLY, text)
    assert [{"id": 0, "result": {"answers": answers}}] == said(working)


def test_a_secret_is_not_asked_for(working: CodexConversation) -> None:
    """It would be stored in the run's log."""
    question = told("item/tool/requestUserInput", questions=[{**NAME, "isSecret": True}])
    (notice,) = fed(working, with_id(question))
    assert isinstance(notice, Notice)
    assert [{"id": 0, "result": {"answers": {}}}] == said(working)


def test_a_form_of_a_server(working: CodexConversation) -> None:
    """The values have the types of the server's schema."""
    schema = {
        "type": "object",
        "properties": {"count": {"type": "integer"}, "sure": {"type": "boolean"}, "name": {"type": "string"}},
        "required": ["name"],
    }
    form = told("mcpServer/elicitation/request", serverName="shop", mode="form", message="How?", requestedSchema=schema)
    request = asked(working, form, "x")
    assert [("count", False), ("sure", False), ("name", True)] == [
        (field.name, field.required) for field in request.fields
    ]
    assert ("true", "false") == request.fields[1].choices
    working.reply(request.id, Verdict.REPLY, "count: 3\nsure: true\nname: Ada")
    content = {"count": 3, "sure": True, "name": "Ada"}
    assert [{"id": "x", "result": {"action": "accept", "content": content}}] == said(working)


def test_a_call_of_a_server(working: CodexConversation) -> None:
    """Codex sends a form without fields, and the call's arguments are shown."""
    call = told(
        "mcpServer/elicitation/request",
        serverName="shop",
        mode="form",
        message="Allow shop to sell?",
        requestedSchema={"type": "object", "properties": {}},
        _meta={"persist": ["session", "always"], "tool_params": {"a": 1}},
    )
    for verdict, action in ((Verdict.ALLOW, "accept"), (Verdict.DENY, "decline")):
        request = asked(working, call)
        assert (RequestKind.PERMISSION, "mcp__shop") == (request.kind, request.tool_name)
        assert '{"a":1}' in request.text
        working.reply(request.id, verdict, "")
        assert action == said(working)[0]["result"]["action"]


def test_what_no_rule_for_commands_may_allow(working: CodexConversation) -> None:
    """Access to a host, or input to a running command, is not a command."""
    params = COMMAND["params"]
    for fields in ({"networkApprovalContext": {"host": "example.org"}}, {"kind": "writeStdin"}):
        request = asked(working, {**COMMAND, "params": {**params, **fields}})
        assert "bash" != request.tool_name
        working.reply(request.id, Verdict.DENY, "")
        said(working)


@pytest.mark.parametrize(("sandbox", "usual"), [("dangerFullAccess", Verdict.ALLOW), ("readOnly", None)])
def test_rules_have_codex_ask_before_each_command(tmp_path: Path, sandbox: str, usual: Verdict | None) -> None:
    """Allowed commands run outside the sandbox: with a sandbox, you are asked about commands that no rule covers."""
    stream = CodexConversation(Talk(start(tmp_path, talk=True, permissions=Permissions(deny=("bash(git push *)",)))))
    said(stream)
    fed(stream, INITIALIZED, SETTINGS)
    opening = said(stream)[-1]
    assert ("untrusted", "user") == (opening["params"]["approvalPolicy"], opening["params"]["approvalsReviewer"])
    opened = {"id": 3, "result": {**OPENED["result"], "sandbox": {"type": sandbox}}}
    fed(stream, opened, TURN_STARTED)
    said(stream)
    assert usual is asked(stream, COMMAND).usual


def test_a_sandbox_stays_where_rules_have_codex_ask(tmp_path: Path) -> None:
    tools = Tools(policy="allow", resolved=("read",))
    stream = CodexConversation(Talk(start(tmp_path, talk=True, tools=tools, permissions=Permissions(ask=("bash",)))))
    fed(stream, INITIALIZED, SETTINGS)
    opening = said(stream)[-1]
    assert ("untrusted", "read-only") == (opening["params"]["approvalPolicy"], opening["params"]["sandbox"])


@pytest.mark.parametrize("depth", [200, 5000, *range(850, 1000, 10)])
def test_an_absurd_request_of_codex(working: CodexConversation, depth: int) -> None:
    """A request nested too deeply to be stored is declined without asking you."""
    params = {**COMMAND["params"], "additionalPermissions": "deep"}
    message = line({"method": COMMAND["method"], "id": 0, "params": params})
    message = message.replace(b'"deep"', b'{"x":' * depth + b"1" + b"}" * depth)
    assert [] == [event for event in working.feed(message) if isinstance(event, Request)]
    assert depth > 200 or [{"id": 0, "result": {"decision": "decline"}}] == said(working)


def test_what_codex_takes_back(working: CodexConversation) -> None:
    """A request that was answered elsewhere, or whose turn ended, is withdrawn."""
    first, second = asked(working, COMMAND, 0), asked(working, COMMAND, "0")
    assert first.id != second.id
    taken = fed(working, {"method": "serverRequest/resolved", "params": {"threadId": THREAD, "requestId": 0}})
    assert [(first.id, Verdict.WITHDRAWN)] == [(e.request, e.verdict) for e in taken if isinstance(e, Decision)]
    taken = fed(working, ended("interrupted"))
    assert [second.id] == [event.request for event in taken if isinstance(event, Decision)]
    for request in (first, second):
        working.reply(request.id, Verdict.ALLOW, "")
    assert [] == said(working)


def test_an_answer_of_ours_is_nothing_that_was_taken_back(working: CodexConversation) -> None:
    working.reply(asked(working, COMMAND).id, Verdict.ALLOW, "")
    assert [] == fed(working, {"method": "serverRequest/resolved", "params": {"threadId": THREAD, "requestId": 0}})


HOSTILE = [
    told("item/commandExecution/requestApproval", command=["a"], cwd=5, itemId={}, additionalPermissions=[1]),
    told("item/commandExecution/requestApproval", command="\x1b[31m'" + "x" * 200_000, reason=["x"]),
    told("item/fileChange/requestApproval", itemId=[], grantRoot=3),
    told("item/fileChange/requestApproval", itemId="i-1"),
    told("item/permissions/requestApproval", permissions={"fileSystem": {"entries": [1, {"path": 2}], "write": 3}}),
    told("item/tool/requestUserInput", questions=[1, {"options": [2, {"label": 3}]}, {}]),
    told("item/tool/requestUserInput", questions="x"),
    told("mcpServer/elicitation/request", mode=[], requestedSchema={"properties": {"a": 1}}),
    told(
        "mcpServer/elicitation/request", mode="form", requestedSchema={"properties": {"a": {"enum": [1], "oneOf": 3}}}
    ),
    told("mcpServer/elicitation/request", mode="url", url=["x"]),
    told("serverRequest/resolved", requestId={"a": [1]}),
]


@pytest.mark.fuzz
@pytest.mark.parametrize("bad", HOSTILE)
@pytest.mark.parametrize("id_", [7, None, {"a": []}, "x" * 100_000])
def test_no_question_raises(working: CodexConversation, bad: dict[str, Any], id_: object) -> None:
    """A malformed request can be shown and answered."""
    fed(working, item("started", "fileChange", changes=[1, {"path": [], "kind": 3, "diff": {}}]))
    for verdict in (Verdict.ALLOW, Verdict.ALLOW_RUN, Verdict.DENY, Verdict.REPLY):
        for event in fed(working, with_id(bad, id_)):
            if isinstance(event, Request):
                assert request_text(event)
                working.reply(event.id, verdict, "a: 99999999999999999999999\n1: 2")
    working.replies()


def test_hostile_answers_to_our_requests(working: CodexConversation) -> None:
    """Unknown ids and malformed answers change nothing."""
    working.tell("m", "Go on.")
    (steer,) = said(working)
    for wrong in ({"id": 10**30, "result": 3}, {"id": True, "error": 3}, {"id": 99, "error": {"message": []}}):
        fed(working, wrong)
    fed(working, {"id": steer["id"], "error": [1]}, ended("completed"))
    assert ["turn/start"] == [request["method"] for request in said(working)]
