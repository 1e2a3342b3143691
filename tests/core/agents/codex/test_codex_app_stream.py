"""The output of Codex's app-server line by line, and the replies to it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from subdeck.core.agents.codex._app_stream import UPDATES, AppStream
from subdeck.core.agents.codex._talk import Talk
from subdeck.core.run.events import (
    AssistantText,
    ErrorReported,
    Event,
    Notice,
    Retry,
    ToolCall,
    ToolResult,
    UsageReported,
)
from subdeck.core.run.model import RunReason, Tools
from subdeck.core.run.outcome import FINALIZE_TOOL, decide
from subdeck.core.wrapper._intake import LineSplitter

from .codex_lines import (
    INITIALIZED,
    OPENED,
    SETTINGS,
    THREAD,
    TURN_STARTED,
    delta,
    ended,
    fed,
    item,
    line,
    said,
    start,
    told,
    usage,
)


def begun() -> AppStream:
    """Return a stream at the start of its turn."""
    stream = AppStream()
    fed(stream, OPENED, TURN_STARTED)
    return stream


def texts(events: list[Event]) -> list[str]:
    return [event.text for event in events if isinstance(event, AssistantText)]


@pytest.fixture
def talking(tmp_path: Path) -> AppStream:
    return AppStream(Talk(start(tmp_path)))


# --- requests ---


def test_each_request_follows_the_answer_of_the_one_before(talking: AppStream) -> None:
    """A run is one thread and one turn. stdin is closed when the turn ends."""
    assert ["initialize"] == [request["method"] for request in said(talking)]
    fed(talking, INITIALIZED)
    assert ["initialized", "config/read"] == [request["method"] for request in said(talking)]
    fed(talking, SETTINGS)
    assert ["thread/start"] == [request["method"] for request in said(talking)]
    fed(talking, OPENED)
    (turn,) = said(talking)
    assert ("turn/start", THREAD, "Look.") == (
        turn["method"],
        turn["params"]["threadId"],
        turn["params"]["input"][0]["text"],
    )
    assert not talking.is_stdin_done
    fed(talking, TURN_STARTED, ended("completed"))
    assert (True, 0, b"") == (talking.is_stdin_done, talking.finished_after, talking.replies())


def test_a_thread_is_resumed_by_its_id(tmp_path: Path) -> None:
    """A resumed thread gets the same parameters, except the ones stored with the thread."""
    stream = AppStream(Talk(start(tmp_path, "t-0", finalize=True)))
    said(stream)
    fed(stream, INITIALIZED)
    said(stream)
    fed(stream, SETTINGS)
    (resume,) = said(stream)
    assert ("thread/resume", "t-0") == (resume["method"], resume["params"]["threadId"])
    assert "dynamicTools" not in resume["params"]


def test_no_server_is_started_that_no_list_names(tmp_path: Path) -> None:
    """A tool list turns off the MCP servers of the user and the project by name."""
    stream = AppStream(Talk(start(tmp_path, tools=Tools(policy="allow", resolved=("read",)))))
    said(stream)
    fed(stream, INITIALIZED)
    said(stream)
    fed(stream, SETTINGS)
    (opening,) = said(stream)
    off = {"shop": {"enabled": False, "command": "x"}, "far": {"enabled": False, "url": "http://x"}}
    assert off == opening["params"]["config"]["mcp_servers"]
    assert ("read-only", "never") == (opening["params"]["sandbox"], opening["params"]["approvalPolicy"])


def test_servers_know_whose_child_starts_them(talking: AppStream) -> None:
    """MCP servers get the run's variables in their settings, so that subdeck's own server offers no delegation to an
    agent.
    """
    said(talking)
    fed(talking, INITIALIZED, SETTINGS)
    opening = said(talking)[-1]
    own = {"PI_SUBAGENTS_CHILD": "1", "SUBDECK_RUN_ID": "20261122-120000-abcdef"}
    assert {"shop": {"command": "x", "env": own}} == opening["params"]["config"]["mcp_servers"]


def test_a_request_that_is_refused_ends_the_run(talking: AppStream) -> None:
    """If the conversation is gone, the reason is in Codex's words."""
    said(talking)
    fed(talking, INITIALIZED)
    refused = {"error": {"code": -32600, "message": "no rollout found for thread id t-0"}, "id": 3}
    (event,) = fed(talking, refused)
    assert isinstance(event, ErrorReported)
    assert (RunReason.START_FAILED, True) == (talking.facts.ended, talking.is_stdin_done)
    outcome = decide(talking.facts)
    assert ("failed", "start_failed", "no rollout found for thread id t-0") == (
        outcome.status,
        outcome.reason,
        outcome.message,
    )


@pytest.mark.parametrize(
    ("method", "params", "result"),
    [
        ("item/commandExecution/requestApproval", {"command": "/bin/bash -lc 'rm x'"}, {"decision": "decline"}),
        ("item/fileChange/requestApproval", {"reason": "outside"}, {"decision": "decline"}),
        ("item/permissions/requestApproval", {}, {"permissions": {}}),
        ("item/tool/requestUserInput", {}, {"answers": {}}),
        ("mcpServer/elicitation/request", {"message": "Allow it?"}, {"action": "decline"}),
        ("execCommandApproval", {"command": ["rm", "x"]}, {"decision": "denied"}),
    ],
)
def test_a_question_is_declined(talking: AppStream, method: str, params: dict[str, Any], result: object) -> None:
    """In a non-interactive run, a request is declined with a warning."""
    said(talking)
    (notice,) = fed(talking, {"method": method, "id": 7, "params": {"threadId": THREAD, **params}})
    assert isinstance(notice, Notice) and "warning" == notice.level
    assert notice.text.startswith("declined")
    assert [{"id": 7, "result": result}] == said(talking)


def test_an_unknown_question_is_answered_with_an_error(talking: AppStream) -> None:
    """An unknown request of a newer Codex gets an error, so Codex doesn't wait forever."""
    said(talking)
    fed(talking, {"method": "item/newThing/request", "id": "a", "params": {}})
    (answer,) = said(talking)
    assert ("a", -32601) == (answer["id"], answer["error"]["code"])


def test_a_result_is_handed_over_by_a_tool_of_ours(talking: AppStream) -> None:
    """An invalid result is refused with the reason, and the corrected one is accepted."""
    said(talking)
    fed(talking, OPENED, TURN_STARTED)
    said(talking)
    for payload, success in (({"status": "DONE"}, False), ({"status": "SUCCESS", "result": "42"}, True)):
        call = {"type": "dynamicToolCall", "id": "c", "tool": FINALIZE_TOOL, "arguments": payload}
        fed(talking, told("item/started", item=call))
        fed(talking, {"method": "item/tool/call", "id": 0, "params": {"tool": FINALIZE_TOOL, "arguments": payload}})
        (answer,) = said(talking)
        assert success is answer["result"]["success"]
        fed(talking, told("item/completed", item={**call, "success": success, **answer["result"]}))
        fed(talking, usage(100 if not success else 200, 100))
        assert success is talking.facts.handing_over
    fed(talking, ended("completed"))
    assert {"status": "SUCCESS", "result": "42"} == talking.facts.finalized
    assert ("completed", "finalized") == tuple(map(str, (decide(talking.facts, finalize=True).status, "finalized")))
    assert "expected SUCCESS or ERROR" in talking.facts.refused


# --- the turn ---


def test_only_the_own_thread_is_read() -> None:
    """Agents that Codex starts write to the same pipe, but their text and end are not the run's."""
    stream = begun()
    events = fed(
        stream,
        delta("ours "),
        delta("theirs", "t-2"),
        item("completed", "agentMessage", "t-2", text="theirs"),
        ended("completed", "t-2", "u-2"),
        delta("too"),
    )
    assert ("ours too", [], None) == (stream.writing.tail, texts(events), stream.finished_after)
    assert ["ours too"] == texts(fed(stream, item("completed", "agentMessage", text="ours too"), ended("completed")))
    assert ("ours too", True) == (stream.facts.final_text, stream.facts.finished)


def test_what_agents_of_codex_cost_is_counted() -> None:
    """Their tokens count for this run, and don't end its turn."""
    stream = begun()
    fed(stream, item("started", "commandExecution", command="ls"), usage(300, 300, "u-2", "t-2"))
    assert 300 == stream.facts.usage.input
    fed(stream, usage(100, 100))
    assert (400, "toolUse") == (stream.facts.usage.input, stream.facts.stop_reason)


def test_usage_of_earlier_runs_is_left_out() -> None:
    """A resumed thread first reports its earlier usage, with the id of its old turn."""
    stream = AppStream()
    fed(stream, OPENED, usage(900, 100, "u-0"), TURN_STARTED)
    (paid,) = fed(stream, usage(1000, 100))
    assert isinstance(paid, UsageReported)
    assert (100, 1) == (paid.input, stream.facts.usage.turns)


@pytest.mark.parametrize(
    ("started", "turns"),
    [
        (item("started", "commandExecution", command="ls"), 1),
        (item("started", "dynamicToolCall", tool="other"), 1),
        (item("started", "dynamicToolCall", tool=FINALIZE_TOOL), 0),
        (item("started", "webSearch", query="x"), 0),
        (item("started", "agentMessage", text=""), 0),
        (item("started", "commandExecution", thread="t-2", command="ls"), 0),
    ],
    ids=["command", "tool", "result", "part of the message", "text", "another agent's"],
)
def test_a_call_says_that_another_turn_follows(started: dict[str, Any], turns: int) -> None:
    """The turn counts before Codex reports its tokens, and it counts once."""
    stream = begun()
    fed(stream, OPENED, TURN_STARTED, started)
    assert (turns, bool(turns)) == (stream.facts.turns, stream.facts.wants_turn)
    fed(stream, usage(100, 100))
    assert 1 == stream.facts.turns


def test_a_refused_result_says_that_another_turn_follows(talking: AppStream) -> None:
    fed(talking, INITIALIZED, SETTINGS, OPENED, TURN_STARTED)
    call = {"tool": FINALIZE_TOOL, "arguments": {"status": "SUCCESS"}}
    fed(talking, {"id": 7, "method": "item/tool/call", "params": call})
    assert (1, True) == (talking.facts.turns, talking.facts.wants_turn)


def test_what_a_message_used_that_was_broken_off_is_not_known() -> None:
    """Codex reports no tokens for a cut message: it counts as a turn with unknown tokens."""
    stream = begun()
    fed(stream, OPENED, TURN_STARTED, item("started", "commandExecution", command="ls"), ended("interrupted"))
    killed = begun()
    fed(killed, OPENED, TURN_STARTED, item("started", "commandExecution", command="ls"))
    killed.end()
    for used in (stream.facts.usage, killed.facts.usage):
        assert (1, 1, 0) == (used.turns, used.uncounted, used.tokens)


def test_the_same_sum_twice_is_one_message() -> None:
    stream = begun()
    assert [1, 0] == [len(fed(stream, usage(100, 100))), len(fed(stream, usage(100, 100)))]


def test_an_answer_cut_by_its_length_is_a_model_error() -> None:
    """The text so far is kept as partial."""
    stream = begun()
    words = "Incomplete response returned, reason: max_output_tokens"
    fed(
        stream,
        item("completed", "agentMessage", text="It begins and"),
        usage(100, 0),
        told("error", error={"message": words, "codexErrorInfo": "other"}, willRetry=False),
        ended("failed", error={"message": words, "codexErrorInfo": "other"}),
    )
    outcome = decide(stream.facts)
    assert ("failed", "model_error", words, "length") == (
        outcome.status,
        outcome.reason,
        outcome.message,
        outcome.stop_reason,
    )
    assert ("It begins and", True, 100) == (stream.facts.final_text, stream.facts.partial, stream.facts.usage.input)


def test_a_retry_is_told_with_its_reason() -> None:
    stream = begun()
    fault = {
        "message": "Reconnecting... 2/5",
        "additionalDetails": 'unexpected status 529: {"error":{"message":"busy"}}',
        "codexErrorInfo": {"responseStreamDisconnected": {"httpStatusCode": 529}},
    }
    (retry,) = fed(stream, told("error", error=fault, willRetry=True))
    assert isinstance(retry, Retry)
    assert (2, 5) == (retry.attempt, retry.max_attempts)
    assert "unexpected status 529: busy (the connection to the model broke off, HTTP 529)".replace(":", "") == (
        retry.reason.replace(":", "")
    )
    assert None is stream.facts.error_message


@pytest.mark.parametrize(
    ("fault", "words"),
    [
        ({"message": '{"error": {"message": "too many things"}}', "codexErrorInfo": "other"}, "too many things"),
        (
            {"message": "Quota exceeded", "codexErrorInfo": "usageLimitExceeded"},
            "Quota exceeded (the account's usage limit is reached)",
        ),
        (
            {"message": "401 Unauthorized", "codexErrorInfo": {"httpConnectionFailed": {"httpStatusCode": 401}}},
            "401 Unauthorized (the provider refused the login: run codex login, or check the API key, HTTP 401)",
        ),
        (
            {"message": "529", "codexErrorInfo": {"httpConnectionFailed": {"httpStatusCode": 529}}},
            "529 (the model's server is overloaded, HTTP 529)",
        ),
        (
            {"message": "502", "codexErrorInfo": {"responseStreamConnectionFailed": {"httpStatusCode": 502}}},
            "502 (the model's server failed, HTTP 502)",
        ),
        (
            {"message": "429", "codexErrorInfo": {"responseTooManyFailedAttempts": {"httpStatusCode": 429}}},
            "429 (the account's rate limit is reached, HTTP 429)",
        ),
        (
            {"message": "413", "codexErrorInfo": {"httpConnectionFailed": {"httpStatusCode": 413}}},
            "413 (the provider refused the request, HTTP 413)",
        ),
        (
            {"message": "no route", "codexErrorInfo": {"httpConnectionFailed": {"httpStatusCode": None}}},
            "no route (the provider could not be reached)",
        ),
        ({"message": "", "codexErrorInfo": "contextWindowExceeded"}, "the conversation is longer than"),
        ({}, "the model ended with an error without a message"),
        ({"message": "x", "codexErrorInfo": {"newKind": None}}, "x"),
    ],
)
def test_an_error_of_the_provider_is_told_in_words(fault: dict[str, Any], words: str) -> None:
    """The message has no raw JSON, and has the class of the error if Codex reports it."""
    stream = begun()
    fed(stream, ended("failed", error=fault))
    outcome = decide(stream.facts)
    assert ("failed", "model_error") == (outcome.status, outcome.reason)
    assert outcome.message and outcome.message.startswith(words)


def test_no_text_is_an_empty_answer() -> None:
    stream = begun()
    fed(stream, usage(100, 100), ended("completed"))
    assert ("failed", "empty_answer") == (decide(stream.facts).status, decide(stream.facts).reason)


def test_an_end_in_the_middle_of_a_message_keeps_what_was_written() -> None:
    stream = begun()
    fed(stream, item("started", "agentMessage", text=""), delta("Half a sen"))
    (event,) = stream.end()
    assert ("Half a sen", True) == (stream.facts.final_text, stream.facts.partial)
    assert isinstance(event, AssistantText) and event.partial


def test_nothing_counts_without_the_end_of_the_turn() -> None:
    """A complete message does not complete a run, because Codex may call a tool after it."""
    stream = begun()
    fed(stream, item("completed", "agentMessage", text="Done."), usage(100, 100))
    assert not stream.facts.finished and None is stream.finished_after


def test_a_turn_that_codex_begins_by_itself(talking: AppStream) -> None:
    """A run is one turn: a turn that starts after the agent got the exit request changes nothing. A recording may have
    more.
    """
    for stream, is_finished in ((talking, True), (AppStream(), False)):
        fed(stream, OPENED, TURN_STARTED, item("completed", "agentMessage", text="Done."), ended("completed"))
        another = {"method": "turn/started", "params": {"threadId": THREAD, "turn": {"id": "u-2"}}}
        fed(stream, another, delta("Going on"))
        assert (is_finished, "Done.") == (stream.facts.finished, stream.facts.final_text)


def test_calls_of_all_kinds() -> None:
    stream = begun()
    events = fed(
        stream,
        item("completed", "webSearch", query="shops"),
        item("completed", "mcpToolCall", server="a", tool="b", arguments={"c": 1}, result={"content": []}),
        item(
            "completed",
            "mcpToolCall",
            server="a",
            tool="b",
            status="failed",
            error={"message": "MCP tool call requires approval, but approval policy is never"},
        ),
        item("completed", "collabAgentToolCall", tool="spawnAgent", prompt="look", status="completed"),
        item(
            "completed", "fileChange", changes=[{"path": "a", "kind": {"type": "add"}, "diff": "+x"}], status="declined"
        ),
    )
    calls = [event for event in events if isinstance(event, ToolCall)]
    assert ["web_search", "mcp__a__b", "mcp__a__b", "spawn_agent", "edit"] == [call.tool_name for call in calls]
    results = [event for event in events if isinstance(event, ToolResult)]
    assert [False, False, True, False, True] == [result.is_error for result in results]
    (denied,) = [event for event in events if isinstance(event, Notice)]
    assert denied.text.startswith("mcp__a__b was denied")
    assert (0, 5) == (stream.running_tools, stream.facts.usage.tool_uses)


# --- bytes ---


def test_many_deltas_are_read_at_once() -> None:
    """Consecutive lines of one thread are read together, without the lines of other threads."""
    ours = [line(delta(f'"{number}"\n')) for number in range(50)]
    theirs = [line(delta("x", "t-2"))] * 3
    data = b"\n".join([*ours, *theirs, *ours]) + b"\n"
    pieces = list(LineSplitter(UPDATES).split(data))
    assert 3 == len(pieces)
    stream = begun()
    for piece in pieces:
        stream.feed(piece)
    assert "".join(f'"{number}"\n' for number in range(50)) * 2 == stream.writing.whole()


@pytest.mark.parametrize("size", [1, 2, 7, 100, 4096])
def test_deltas_in_chunks_of_any_size(size: int) -> None:
    """The sizes of the chunks change nothing."""
    text = 'ab"c\\d\nü€𝄞' * 20
    data = b"".join(line(delta(part)) + b"\n" for part in (text[:9], text[9:100], text[100:]))
    stream, splitter = begun(), LineSplitter(UPDATES)
    for position in range(0, len(data), size):
        for piece in splitter.split(data[position : position + size]):
            stream.feed(piece)
    assert text == stream.writing.whole()


HOSTILE = [
    b"",
    b"{",
    b"null",
    b"[]",
    b"1",
    b'"x"',
    b"\xff\xfe",
    b'{"method":1}',
    b'{"method":"item/completed"}',
    b'{"method":"item/completed","params":[]}',
    b'{"method":"item/completed","params":{"item":{"type":["x"],"id":{}}}}',
    b'{"method":"item/started","params":{"item":{"type":"commandExecution","command":["a"],"id":null}}}',
    b'{"method":"item/completed","params":{"item":{"type":"commandExecution","exitCode":1e300,"durationMs":"x"}}}',
    b'{"method":"item/completed","params":{"item":{"type":"fileChange","changes":[1,{"path":[],"kind":3}]}}}',
    b'{"method":"item/completed","params":{"item":{"type":"mcpToolCall","server":1,"result":"x","arguments":[1]}}}',
    b'{"method":"item/completed","params":{"item":{"type":"reasoning","summary":[1,{}],"content":"x"}}}',
    b'{"method":"turn/completed","params":{"turn":{"status":["failed"],"error":"x"}}}',
    b'{"method":"error","params":{"error":[],"willRetry":true}}',
    b'{"method":"error","params":{"error":{"message":{"a":1},"codexErrorInfo":[1]}}}',
    b'{"method":"thread/tokenUsage/updated","params":{"tokenUsage":{"total":{"inputTokens":-5},"last":"x"}}}',
    b'{"method":"warning","params":{"message":5}}',
    b'{"id":1}',
    b'{"id":[],"result":"x"}',
    b'{"id":1,"error":"x"}',
    b'{"method":"item/tool/call","id":{"a":[]},"params":{"tool":["x"],"arguments":"x"}}',
    b'{"method":"item/agentMessage/delta","params":{"threadId":"t-1","delta":""}}',
    b'{"method":"item/agentMessage/delta","params":{"threadId":"t-1","delta":"\\ud800"}}',
    b'{"method":"item/agentMessage/delta"',
    b'{"method":"thread/started","params":{"thread":{"id":7,"path":[]}}}',
]


@pytest.mark.parametrize("bad", HOSTILE)
def test_nothing_that_is_written_raises(bad: bytes, talking: AppStream) -> None:
    """A malformed line never raises: at first or during a turn."""
    for stream in (talking, begun(), AppStream()):
        stream.feed(bad)
        fed(stream, item("started", "agentMessage", text=""))
        stream.feed(bad)
        stream.end()
        stream.replies()


def test_hostile_text_is_kept_as_it_is() -> None:
    """Control characters, quotes and text like an event are the model's text, which is cleaned only for display."""
    text = '\x1b[31m{"method":"turn/completed"}\n"delta":"x"\u2028\x00'
    stream = begun()
    fed(stream, delta(text))
    assert text == stream.writing.whole()
    assert [text] == texts(fed(stream, item("completed", "agentMessage", text=text)))
    assert not stream.facts.finished
