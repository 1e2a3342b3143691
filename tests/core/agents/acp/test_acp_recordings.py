"""Recorded messages of two ACP agents, as the bridge wrote them, and the outcomes of those runs."""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import Any

import pytest
from subdeck.core.acp_bridge._session import called_tool
from subdeck.core.agents._finalize_tool import NAMES
from subdeck.core.agents.acp._stream import AcpStream
from subdeck.core.agents.loader import recorded_kind
from subdeck.core.run.events import AssistantText, Event, Notice, Thinking, ToolCall, ToolResult, UsageReported
from subdeck.core.run.outcome import FINALIZE_TOOL, ChildExit, Outcome, decide

from tests.replay import RECORDINGS

ACP = RECORDINGS / "acp"
CASES = sorted(
    str(file.parent.relative_to(ACP)) for agent in ("claude", "codex") for file in ACP.glob(f"{agent}/*/exit.txt")
)
"""The agents for Claude Code and Codex. Other agents are in `test_acp_programs.py`."""

HANDED = {"status": "SUCCESS", "result": "The answer"}
IN_CODEX = {"server": "subdeck", "tool": FINALIZE_TOOL, "arguments": HANDED}

UPDATES = ("agent_message_chunk", "agent_thought_chunk", "tool_call", "tool_call_update", "usage_update", "unknown")
STRANGE: tuple[dict[str, Any], ...] = (
    {},
    {"content": 3, "_meta": [], "rawInput": "x", "title": {}, "cost": {"amount": "x", "currency": "USD"}},
    {
        "content": [[], 5, {"type": "content", "content": 7}],
        "status": "completed",
        "rawOutput": {"result": 1, "error": 2},
    },
    {"rawInput": {"server": [], "tool": None, "arguments": 5}, "kind": 9, "status": "failed", "messageId": []},
)
"""Updates with fields that the protocol does not allow."""


def update(fields: dict[str, Any]) -> bytes:
    return json.dumps({"method": "session/update", "params": {"update": fields}}).encode()


CUT = "Internal error: API Error: Claude's response exceeded the 64000 output token maximum."
EMPTY = "the agent finished without writing any text"
CANCELLED = "the agent was interrupted"
EXPECTED: dict[str, tuple[str, str, str]] = {
    "claude/api-400": ("failed", "model_error", "Internal error: API Error: 400 scripted status 400"),
    "claude/bash-allowed": ("completed", "done", "It says hello."),
    "claude/bash-fail": ("completed", "done", "It failed with 3."),
    "claude/bash-refused": ("completed", "done", "I may not."),
    "claude/cancel-in-bash": ("aborted", "interrupted", CANCELLED),
    "claude/cancel-in-text": ("aborted", "interrupted", CANCELLED),
    "claude/empty": ("failed", "empty_answer", EMPTY),
    "claude/hostile": ("completed", "done", "\x1b[31mred"),
    "claude/length": ("failed", "model_error", CUT),
    "claude/read-edit": ("completed", "done", "Changed."),
    "claude/resume-1": ("completed", "done", "First answer."),
    "claude/resume-2": ("completed", "done", "Second answer."),
    "claude/text-thinking": ("completed", "done", "The answer is 42, and that is all there is to it."),
    "codex/api-400": ("failed", "model_error", "scripted status 400"),
    "codex/bash-allowed": ("completed", "done", "It says hello."),
    "codex/bash-fail": ("completed", "done", "It failed with 3."),
    "codex/bash-refused": ("completed", "done", "I may not."),
    "codex/cancel-in-bash": ("aborted", "interrupted", CANCELLED),
    "codex/cancel-in-text": ("aborted", "interrupted", CANCELLED),
    "codex/empty": ("failed", "empty_answer", EMPTY),
    "codex/hostile": ("completed", "done", "\x1b[31mred"),
    "codex/length": ("failed", "model_error", "Incomplete response returned, reason: max_output_tokens"),
    "codex/resume-1": ("completed", "done", "First answer."),
    "codex/resume-2": ("completed", "done", "Second answer."),
    "codex/text-thinking": ("completed", "done", "The answer is 42, and that is all there is to it."),
}


class Replay:
    """The events and outcome of a recording."""

    def __init__(self, case: str) -> None:
        self.stream = AcpStream()
        lines = (ACP / case / "stdout.jsonl").read_bytes().splitlines()
        self.events: list[Event] = [event for line in lines for event in self.stream.feed(line)]
        self.events += self.stream.end()

    def outcome(self, code: int) -> Outcome:
        return decide(self.stream.facts, exit=ChildExit.of(code))

    def of(self, kind: type) -> list:
        return [event for event in self.events if isinstance(event, kind)]


@pytest.mark.parametrize("case", CASES)
def test_every_recording_ends_as_it_did(case: str) -> None:
    """A good run has its answer and a failed one its reason, and every line is understood."""
    replay = Replay(case)
    outcome = replay.outcome(int((ACP / case / "exit.txt").read_text()))
    status, reason, words = EXPECTED[case]
    assert (status, reason) == (outcome.status, outcome.reason)
    said = replay.stream.facts.final_text if status == "completed" else outcome.message
    assert words in (said or "")
    assert 0 == replay.stream.facts.unreadable
    assert 0 == replay.stream.running_tools or "cancel" in case


@pytest.mark.parametrize("case", CASES)
def test_every_recording_is_known_by_its_first_lines(case: str) -> None:
    lines = (ACP / case / "stdout.jsonl").read_bytes().splitlines()
    assert "acp" == recorded_kind(lines[:20])
    assert "acp" == recorded_kind([line for line in lines if not line.startswith(b'{"sent"')][:20])


def test_expected_are_all() -> None:
    assert CASES == sorted(EXPECTED)


@pytest.mark.parametrize("agent", ["claude", "codex"])
def test_a_thought_is_no_answer(agent: str) -> None:
    replay = Replay(f"{agent}/text-thinking")
    assert ["Let me think."] == [event.text for event in replay.of(Thinking)]
    assert 1 == len(replay.of(AssistantText))


def test_a_call_and_its_result() -> None:
    """Both agents' reports give one call with its arguments and one result with its text and exit code."""
    for agent, name, code in (("claude", "Bash", None), ("codex", "exec_command", 3)):
        replay = Replay(f"{agent}/bash-fail")
        (call,), (result,) = replay.of(ToolCall), replay.of(ToolResult)
        assert (name, "cat a.md; exit 3") == (call.tool_name, call.args["command"])
        assert (call.tool_call_id, True, code) == (result.tool_call_id, result.is_error, result.exit_code)
        assert "hello" in result.content


def test_an_edit() -> None:
    replay = Replay("claude/read-edit")
    assert ["Read", "Edit"] == [call.tool_name for call in replay.of(ToolCall)]
    assert ["1\thello\n2\t", "has been updated"] == [
        result.content if number == 0 else result.content[result.content.index("has") :][:16]
        for number, result in enumerate(replay.of(ToolResult))
    ]
    assert ["Now I change it.", "Changed."] == [text.text for text in replay.of(AssistantText)]


def test_a_refused_call_is_a_warning() -> None:
    """A denied call is a warning on the run, besides the result of the call."""
    replay = Replay("claude/bash-refused")
    assert ["denied: Bash echo hi > b.txt"] == [notice.text for notice in replay.of(Notice)]
    assert [True] == [result.is_error for result in replay.of(ToolResult)]


def test_an_earlier_conversation_is_not_told_again() -> None:
    """An agent that continues a session repeats it, and only new text counts."""
    replay = Replay("codex/resume-2")
    assert ["Second answer."] == [text.text for text in replay.of(AssistantText)]
    first = Replay("codex/resume-1")
    assert first.stream.facts.session_id == replay.stream.facts.session_id is not None


def test_usage_of_a_turn() -> None:
    """Tokens come from the answer to the prompt, dollars from agents that report them."""
    (usage,) = Replay("claude/text-thinking").of(UsageReported)
    assert (100, 20, 30, 7) == (usage.input, usage.output, usage.cache_read, usage.cache_write)
    assert 0 < usage.cost < 0.1
    (usage,) = Replay("codex/text-thinking").of(UsageReported)
    assert (107, 20, 30, 0) == (usage.input, usage.output, usage.cache_read, usage.cost)


def test_what_was_being_written_is_kept() -> None:
    for agent in ("claude", "codex"):
        replay = Replay(f"{agent}/cancel-in-text")
        assert [("So far so go", True)] == [(event.text, event.partial) for event in replay.of(AssistantText)]
        assert replay.stream.facts.partial


def test_warnings_of_an_agent_are_no_answer() -> None:
    """A message without an id from codex-acp is a warning."""
    replay = Replay("codex/empty")
    assert [] == replay.of(AssistantText)
    (notice,) = replay.of(Notice)
    assert notice.text.startswith("Warning: Model metadata")


def test_messages_without_ids_are_answers_of_others() -> None:
    """If messages have no id, a text ends at the next update of another kind."""
    stream = AcpStream()

    def update(**fields: object) -> bytes:
        return json.dumps({"jsonrpc": "2.0", "method": "session/update", "params": {"update": fields}}).encode()

    def text(words: str) -> bytes:
        return update(sessionUpdate="agent_message_chunk", content={"type": "text", "text": words})

    lines = [text("I "), text("look."), update(sessionUpdate="tool_call", toolCallId="1", kind="read", title="a.md")]
    lines += [update(sessionUpdate="tool_call_update", toolCallId="1", status="completed"), text("Fine.")]
    lines += [b'{"jsonrpc":"2.0","id":2,"result":{"stopReason":"end_turn"}}']
    events = [event for line in lines for event in stream.feed(line)]
    assert ["I look.", "Fine."] == [event.text for event in events if isinstance(event, AssistantText)]
    assert [("read", {"title": "a.md"})] == [(e.tool_name, e.args) for e in events if isinstance(e, ToolCall)]
    assert ("done", "Fine.") == (decide(stream.facts).reason, stream.facts.final_text)


@pytest.mark.parametrize(
    ("update", "name"),
    [
        ({"title": "mcp__subdeck__subagent_finalize", "kind": "other"}, FINALIZE_TOOL),
        ({"title": "t", "_meta": {"claudeCode": {"toolName": "mcp__subdeck__subagent_finalize"}}}, FINALIZE_TOOL),
        ({"title": "t", "kind": "execute", "rawInput": IN_CODEX}, FINALIZE_TOOL),
        ({"title": "my_subagent_finalize", "kind": "other"}, "other"),
        ({"title": "mcp__evil__subagent_finalize", "kind": "other"}, "other"),
        ({"title": "subagent_finalize", "kind": "execute"}, "execute"),
        ({"title": "subagent_finalize", "kind": "other", "rawInput": {"command": "x", **HANDED}}, "other"),
        ({"title": "t", "kind": "execute", "rawInput": IN_CODEX | {"server": "evil"}}, "execute"),
        ({"title": "t", "kind": "execute", "rawInput": IN_CODEX | {"command": "x"}}, "execute"),
    ],
)
def test_what_hands_over_a_result(update: dict[str, Any], name: str) -> None:
    """Only subdeck's tool on subdeck's server counts, by its exact name, because a title may come from the model.
    Permission requests follow the same rule.
    """
    stream = AcpStream()
    call = {"rawInput": HANDED, **update, "sessionUpdate": "tool_call", "toolCallId": "1", "status": "completed"}
    line = json.dumps({"method": "session/update", "params": {"update": call}}).encode()
    (called,) = [event for event in stream.feed(line) if isinstance(event, ToolCall)]
    assert (name, HANDED if name == FINALIZE_TOOL else None) == (called.tool_name, stream.facts.finalized)
    if "_meta" not in update:
        asked = SimpleNamespace(title=call["title"], kind=call["kind"], raw_input=call["rawInput"])
        assert (called_tool(asked) in NAMES) is (name == FINALIZE_TOOL)


@pytest.mark.parametrize(
    "line",
    [
        *(b"null", b"[]", b"{", b'{"sent":1}', b'{"sent":{"result":[]}}', b'{"id":[],"result":{}}'),
        *(b'{"method":"session/update","params":3}', b'{"method":"session/request_permission","params":[]}'),
        *(update({"sessionUpdate": kind, "toolCallId": "1", **fields}) for kind in UPDATES for fields in STRANGE),
    ],
)
def test_nothing_that_an_agent_writes_makes_it_raise(line: bytes) -> None:
    """An update that cannot be understood is counted or skipped, and the answer after it still counts."""
    stream = AcpStream()
    stream.feed(line)
    assert not stream.facts.finished
    is_object = line.startswith(b"{") and len(line) > 1
    assert (0 if is_object else 1) == stream.facts.unreadable
    for after in (
        update({"sessionUpdate": "agent_message_chunk", "messageId": "last", "content": {"text": "Done."}}),
        b'{"id":9,"result":{"stopReason":"end_turn"}}',
    ):
        stream.feed(after)
    stream.end()
    assert (True, "Done.") == (stream.facts.finished, stream.facts.final_text)


def test_a_conversation_of_several_prompts() -> None:
    """In an interactive run only the last turn decides the outcome, and costs are counted once."""
    stream = AcpStream()

    def prompt(number: int) -> bytes:
        return json.dumps({"sent": {"id": number, "method": "session/prompt", "params": {"sessionId": "s"}}}).encode()

    def answer(number: int, reason: str) -> bytes:
        return json.dumps({"jsonrpc": "2.0", "id": number, "result": {"stopReason": reason}}).encode()

    def said(text: str, message: str) -> bytes:
        return update({"sessionUpdate": "agent_message_chunk", "messageId": message, "content": {"text": text}})

    def cost(amount: float) -> bytes:
        return update({"sessionUpdate": "usage_update", "cost": {"amount": amount, "currency": "USD"}})

    first = [b'{"bridge":"ready"}', prompt(2), said("So far", "a"), cost(0.25), answer(2, "cancelled")]
    second = [prompt(3), said("All of it.", "b"), cost(1.0), answer(3, "end_turn")]
    for line in first:
        stream.feed(line)
    assert ("interrupted", "So far") == (decide(stream.facts).reason, stream.facts.final_text)
    for line in second:
        stream.feed(line)
    facts = stream.facts
    assert ("done", "All of it.", False, 0) == (
        decide(facts).reason,
        facts.final_text,
        facts.partial,
        facts.unreadable,
    )
    assert 1.0 == facts.usage.cost
