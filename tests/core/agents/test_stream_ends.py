"""Output after an agent's end, and impossible figures and names, do not change the outcome of its run."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from subdeck.core.agents._figures import MOST_DOLLARS, MOST_TOKENS, NAME
from subdeck.core.agents._stream import AgentStream
from subdeck.core.agents.acp._conversation import AcpConversation
from subdeck.core.agents.acp._stream import AcpStream
from subdeck.core.agents.child import Start
from subdeck.core.agents.claude._conversation import ClaudeConversation
from subdeck.core.agents.claude._stream import ClaudeStream
from subdeck.core.agents.codex._app_stream import AppStream
from subdeck.core.agents.codex._conversation import CodexConversation
from subdeck.core.agents.codex._exec_run import ExecStream
from subdeck.core.agents.codex._talk import Talk
from subdeck.core.agents.pi.conversation import PiConversation
from subdeck.core.agents.pi.stream import PiStream
from subdeck.core.run.events import (
    AssistantText,
    Event,
    Notice,
    Retry,
    ToolCall,
    ToolResult,
    UsageReported,
    encode_event,
)
from subdeck.core.run.fold import Fold
from subdeck.core.run.outcome import FINALIZE_TOOL, ChildExit, decide

from tests.factories import make_meta

from .codex.codex_lines import (
    INITIALIZED,
    OPENED,
    SETTINGS,
    THREAD,
    TURN,
    TURN_STARTED,
    delta,
    ended,
    item,
    told,
    usage,
)

LATE = "LATE"
HANDED = {"status": "SUCCESS", "result": LATE}
Line = dict[str, Any]


def fed(stream: AgentStream, *lines: Line) -> list[Event]:
    return [event for each in lines for event in stream.feed(json.dumps(each, separators=(",", ":")).encode())]


# --- the lines of each agent ---


def claude_text(words: str, message: str = "m1") -> Line:
    return {"type": "assistant", "message": {"id": message, "content": [{"type": "text", "text": words}]}}


def claude_result(subtype: str = "success", **fields: Any) -> Line:
    return {"type": "result", "subtype": subtype, "is_error": subtype != "success", "result": "said", **fields}


CLAUDE_INIT: Line = {"type": "system", "subtype": "init", "model": "m", "session_id": "s"}
CLAUDE_CALL = {"type": "tool_use", "id": "t", "name": f"mcp__subdeck__{FINALIZE_TOOL}", "input": HANDED}
CLAUDE_DELTA: Line = {
    "type": "stream_event",
    "event": {"type": "content_block_delta", "delta": {"type": "text_delta", "text": LATE}},
    "session_id": "s",
    "parent_tool_use_id": None,
}
CLAUDE: list[Line] = [
    claude_text(LATE),
    claude_text(LATE, "m2"),
    {"type": "assistant", "message": {"id": "m3", "content": [CLAUDE_CALL]}},
    {"type": "user", "message": {"content": [{"type": "tool_result", "tool_use_id": "t", "content": "x"}]}},
    CLAUDE_DELTA,
    {"type": "stream_event", "event": {"type": "content_block_delta", "delta": {"type": "text_delta", "text": LATE}}},
    {"type": "stream_event", "event": {"type": "message_delta", "delta": {"stop_reason": "max_tokens"}}},
    claude_result(result=LATE),
    claude_result("error_max_turns", errors=[LATE]),
    claude_result(model_usage_since_last_result={"m": {"costUSD": 5, "outputTokens": 5}}),
]
PI_END: Line = {"type": "agent_end", "willRetry": False}


def pi_text(words: str, reason: str = "stop", **fields: Any) -> Line:
    content = [{"type": "text", "text": words}]
    return {"type": "message_end", "message": {"role": "assistant", "content": content, "stopReason": reason, **fields}}


PI: list[Line] = [
    {"type": "message_start", "message": {"role": "assistant"}},
    pi_text(LATE),
    pi_text(LATE, "error", errorMessage=LATE),
    {"type": "tool_execution_start", "toolCallId": "t", "toolName": FINALIZE_TOOL, "args": HANDED},
    {"type": "tool_execution_end", "toolCallId": "t", "toolName": FINALIZE_TOOL, "result": {"details": HANDED}},
    {"type": "agent_end", "willRetry": True},
]


def acp(kind: str, **fields: Any) -> Line:
    return {"method": "session/update", "params": {"sessionId": "s", "update": {"sessionUpdate": kind, **fields}}}


def acp_text(words: str) -> Line:
    return acp("agent_message_chunk", content={"type": "text", "text": words})


def acp_answer(reason: str = "end_turn", number: int = 2, **fields: Any) -> Line:
    return {"jsonrpc": "2.0", "id": number, "result": {"stopReason": reason, **fields}}


ACP_PROMPT: Line = {"sent": {"jsonrpc": "2.0", "id": 2, "method": "session/prompt", "params": {"sessionId": "s"}}}
ACP: list[Line] = [
    acp_text(LATE),
    acp("agent_thought_chunk", content={"type": "text", "text": LATE}),
    acp("tool_call", toolCallId="t", title=FINALIZE_TOOL, rawInput=HANDED, status="in_progress"),
    acp("tool_call_update", toolCallId="t", title=FINALIZE_TOOL, status="completed"),
    acp_answer("refusal"),
    acp_answer("max_turn_requests", 3),
    {"jsonrpc": "2.0", "id": 2, "error": {"code": 1, "message": LATE}},
    {"jsonrpc": "2.0", "id": 9, "error": {"code": 1, "message": LATE}},
]
CODEX: list[Line] = [
    item("started", "dynamicToolCall", tool=FINALIZE_TOOL, arguments=HANDED),
    item("completed", "dynamicToolCall", tool=FINALIZE_TOOL, arguments=HANDED, success=True),
    item("completed", "agentMessage", text=LATE),
    delta(LATE),
    told("error", error={"message": LATE}),
    ended("failed", error={"message": LATE}),
    ended("interrupted"),
]


def exec_item(stage: str, kind: str, **fields: Any) -> Line:
    return {"type": f"item.{stage}", "item": {"id": "i", "type": kind, **fields}}


EXEC: list[Line] = [
    exec_item("completed", "agent_message", text=LATE),
    {"type": "turn.failed", "error": {"message": LATE}},
    {"type": "error", "message": LATE},
    {"type": "turn.completed", "usage": {"input_tokens": 1}},
]


# --- each agent at its end ---


def started(directory: Path) -> Start:
    (directory / "prompt.md").write_text("Look.")
    return Start(make_meta(talk=True), str(directory))


def claude(directory: Path) -> AgentStream:
    stream = ClaudeConversation(started(directory))
    fed(stream, CLAUDE_INIT, claude_text("Seen."), claude_result())
    return stream


def claude_recorded(directory: Path) -> AgentStream:
    del directory
    stream = ClaudeStream()
    fed(stream, CLAUDE_INIT, claude_text("Seen."), claude_result())
    return stream


def pi(directory: Path) -> AgentStream:
    stream = PiConversation(started(directory))
    fed(stream, {"type": "agent_start"}, pi_text("Seen."), PI_END, {"type": "agent_settled"})
    return stream


def pi_recorded(directory: Path) -> AgentStream:
    del directory
    stream = PiStream()
    fed(stream, {"type": "agent_start"}, pi_text("Seen."), PI_END, {"type": "agent_settled"})
    return stream


def codex(directory: Path) -> AgentStream:
    stream = CodexConversation(Talk(started(directory)))
    seen = item("completed", "agentMessage", text="Seen.")
    fed(stream, INITIALIZED, SETTINGS, OPENED, TURN_STARTED, seen, usage(5, 5), ended("completed"))
    return stream


def codex_recorded(directory: Path) -> AgentStream:
    del directory
    stream = AppStream()
    fed(stream, OPENED, TURN_STARTED, item("completed", "agentMessage", text="Seen."), usage(5, 5), ended("completed"))
    return stream


def codex_exec(directory: Path) -> AgentStream:
    del directory
    stream = ExecStream()
    fed(stream, exec_item("completed", "agent_message", text="Seen."), {"type": "turn.completed", "usage": {}})
    return stream


def acp_live(directory: Path) -> AgentStream:
    stream = AcpConversation(started(directory))
    fed(stream, {"bridge": "ready"}, ACP_PROMPT, acp_text("Seen."), acp_answer())
    return stream


def acp_recorded(directory: Path) -> AgentStream:
    del directory
    stream = AcpStream()
    fed(stream, ACP_PROMPT, acp_text("Seen."), acp_answer())
    return stream


NEXT: dict[Callable[[Path], AgentStream], list[Line]] = {
    claude: [*CLAUDE, CLAUDE_INIT, *CLAUDE],
    claude_recorded: CLAUDE,
    pi: [*PI, {"type": "auto_retry_start"}, {"type": "agent_start"}, {"type": "compaction_start"}, *PI],
    pi_recorded: PI,
    codex: [*CODEX, TURN_STARTED, *CODEX],
    codex_recorded: CODEX,
    codex_exec: EXEC,
    acp_live: [*ACP, ACP_PROMPT, *ACP],
    acp_recorded: ACP,
}
AGENTS = pytest.mark.parametrize("agent", list(NEXT), ids=lambda agent: agent.__name__)


@AGENTS
def test_nothing_after_the_end_counts(tmp_path: Path, agent: Callable[[Path], AgentStream]) -> None:
    """Texts, calls, errors, further ends and prices after the end change no facts and become no events."""
    stream = agent(tmp_path)
    before, quiet = stream.facts, stream.finished_after
    assert ("completed", "done", "Seen.") == (
        *(lambda end: (end.status, end.reason))(decide(before, exit=ChildExit.of(0))),
        before.final_text,
    )
    for line in NEXT[agent]:
        assert (line, []) == (line, fed(stream, line))
        assert (line, before) == (line, stream.facts)
    assert ([], before, quiet) == (stream.end(), stream.facts, stream.finished_after)


def test_a_turn_that_the_agent_begins_by_itself_counts() -> None:
    """If the agent is still running, a new turn is part of the run."""
    stream = ClaudeStream()
    task = {"type": "system", "subtype": "task_started", "task_id": "b", "is_backgrounded": True}
    done = {"type": "system", "subtype": "task_notification", "task_id": "b"}
    nested = {**claude_text("Nested.", "n"), "parent_tool_use_id": "t"}
    fed(stream, CLAUDE_INIT, task, claude_text("One."), claude_result())
    assert ["↳ Nested."] == [getattr(event, "text", "") for event in fed(stream, nested)]
    fed(stream, done, CLAUDE_INIT, claude_text("Two.", "m2"), claude_result())
    assert ("Two.", True, 0) == (stream.facts.final_text, stream.facts.finished, stream.finished_after)


def test_a_call_that_ended_late_is_told() -> None:
    """If an ACP agent answers a cancelled prompt first, the result of its call is reported afterwards."""
    stream = AcpStream()
    fed(stream, ACP_PROMPT, acp("tool_call", toolCallId="t", rawInput={"command": "x"}, status="in_progress"))
    fed(stream, acp_answer("cancelled"))
    (ended_late,) = fed(stream, acp("tool_call_update", toolCallId="t", status="failed"))
    assert isinstance(ended_late, ToolResult) and ended_late.is_error


# --- figures ---

FIGURES = [1e300, -1, -1e300, MOST_TOKENS + 1, True, "12", [1], {}]
NO_PRICE = [*FIGURES[:3], MOST_DOLLARS * 1.01, *FIGURES[4:]]


def reported(stream: AgentStream, *lines: Line) -> tuple[UsageReported, list[str]]:
    """Return the last usage report, and all warnings."""
    events = fed(stream, *lines)
    reports = [event for event in events if isinstance(event, UsageReported)]
    return reports[-1], [event.text for event in events if isinstance(event, Notice)]


def used_tokens(agent: str, value: object) -> tuple[AgentStream, list[Line]]:
    match agent:
        case "claude":
            message = {"id": "m", "content": [], "stop_reason": "end_turn", "usage": {"output_tokens": value}}
            return ClaudeStream(), [{"type": "assistant", "message": message}]
        case "claude result":
            sums = {"m": {"outputTokens": value, "costUSD": 1.0}}
            return ClaudeStream(), [CLAUDE_INIT, claude_result(model_usage_since_last_result=sums)]
        case "pi":
            return PiStream(), [pi_text("x", usage={"output": value, "cost": {"total": 1.0}})]
        case "codex":
            tokens = {"total": {"outputTokens": value}, "last": {"outputTokens": value}}
            counted = told("thread/tokenUsage/updated", tokenUsage=tokens)
            return AppStream(), [OPENED, TURN_STARTED, counted]
        case "codex exec":
            return ExecStream(), [{"type": "turn.completed", "usage": {"output_tokens": value}}]
        case "gemini":
            quota = {"quota": {"token_count": {"input_tokens": 0, "output_tokens": value}}}
            return AcpStream(), [ACP_PROMPT, acp_answer(_meta=quota)]
        case _:
            return AcpStream(), [ACP_PROMPT, acp_answer(usage={"inputTokens": 0, "outputTokens": value})]


@pytest.mark.parametrize("agent", ["claude", "claude result", "pi", "codex", "codex exec", "gemini", "acp"])
@pytest.mark.parametrize("value", FIGURES, ids=str)
def test_tokens_that_cannot_be_true_are_unknown(agent: str, value: object) -> None:
    """They are not added up, the total counts as incomplete, and a warning has the figure."""
    stream, lines = used_tokens(agent, value)
    event, warnings = reported(stream, *lines)
    assert (0, False) == (event.output, event.counted)
    assert stream.facts.usage.uncounted and not stream.facts.usage.tokens
    assert 1 == sum("a number of tokens that cannot be true" in each for each in warnings), warnings


@pytest.mark.parametrize("agent", ["claude", "pi", "acp"])
@pytest.mark.parametrize("value", NO_PRICE, ids=str)
def test_a_price_that_cannot_be_true_is_unknown(agent: str, value: object) -> None:
    """Nothing is added to the run's cost, which counts as unknown."""
    stream: AgentStream
    if agent == "claude":
        sums = {"m": {"outputTokens": 5, "costUSD": value}}
        stream, lines = ClaudeStream(), [CLAUDE_INIT, claude_result(model_usage_since_last_result=sums)]
    elif agent == "pi":
        stream, lines = PiStream(), [pi_text("x", usage={"output": 5, "cost": {"total": value}})]
    else:
        cost = acp("usage_update", cost={"currency": "USD", "amount": value})
        stream, lines = AcpStream(), [ACP_PROMPT, cost, acp_answer(usage={"inputTokens": 0, "outputTokens": 5})]
    event, warnings = reported(stream, *lines)
    assert (5, 0.0, False) == (event.output, event.cost, event.priced)
    usage = stream.facts.usage
    assert (0.0, True) == (usage.cost, usage.unpriced > 0)
    assert 1 == sum("a price that cannot be true" in each for each in warnings), warnings


def test_a_price_of_nothing_that_cannot_be_true_is_unknown() -> None:
    """An unknown price is recorded even without tokens."""
    stream = PiStream()
    fed(stream, pi_text("x", usage={"cost": {"total": -1}}))
    assert (0.0, True) == (stream.facts.usage.cost, stream.facts.usage.unpriced > 0)


def test_a_flood_of_such_figures_is_told_once() -> None:
    """Each kind of figure has one warning, however often it occurs, and valid figures still count."""
    stream = PiStream()
    lines = [pi_text("x", usage={"output": -1, "cost": {"total": 1e300}})] * 50
    _, warnings = reported(stream, *lines)
    assert 2 == len(warnings)
    event, _ = reported(stream, pi_text("x", usage={"output": 7, "cost": {"total": 0.5}}))
    assert (7, 0.5, True, True) == (event.output, event.cost, event.priced, event.counted)


# --- names ---

LONG = "n" * 100_000


def test_names_have_an_end() -> None:
    """Names of models and tools, call ids, stop reasons and retry reasons are limited in length."""
    streams: list[tuple[AgentStream, list[Line]]] = [
        (
            ClaudeStream(),
            [
                CLAUDE_INIT | {"model": LONG},
                {"type": "system", "subtype": "api_retry", "error": LONG, "attempt": 1e300, "retry_delay_ms": -5},
                {"type": "assistant", "message": {"id": "m", "content": [], "stop_reason": LONG, "usage": {}}},
                {
                    "type": "assistant",
                    "message": {"id": LONG, "content": [{"type": "tool_use", "id": LONG, "name": LONG}]},
                },
            ],
        ),
        (PiStream(), [pi_text("x", LONG, model=LONG), {"type": "tool_execution_start", "toolCallId": LONG}]),
        (
            AppStream(),
            [
                {"id": 3, "result": {"thread": {"id": THREAD}, "model": LONG, "modelProvider": LONG}},
                TURN_STARTED,
                item("started", "dynamicToolCall", tool=LONG),
                usage(5, 5, TURN),
            ],
        ),
        (
            AcpStream(),
            [
                ACP_PROMPT,
                acp("config_option_update", configOptions=[{"category": "model", "currentValue": LONG}]),
                acp("tool_call", toolCallId=LONG, name=LONG, status="in_progress"),
                acp_answer(LONG),
            ],
        ),
    ]
    for stream, lines in streams:
        events = fed(stream, *lines)
        assert max(len(encode_event(event)) for event in events) < 10_000, type(stream)
        assert max(len(stream.facts.model), len(stream.facts.stop_reason or "")) <= NAME
        retries = [(event.attempt, event.delay_ms) for event in events if isinstance(event, Retry)]
        assert retries in ([], [(0, 0)])


# --- how long it takes ---


def test_many_blocks_of_a_message_take_no_longer_each() -> None:
    """Twenty thousand blocks are read and folded in seconds, because the text is not joined for each block."""
    blocks = [{"type": "text", "text": "x" * 20}] * 20_000
    began = time.process_time()
    one_line, many_lines, fold = ClaudeStream(), ClaudeStream(), Fold()
    events = fed(one_line, {"type": "assistant", "message": {"id": "m", "content": blocks}})
    for _ in blocks:
        many_lines.feed(b'{"type":"assistant","message":{"id":"m","content":[{"type":"text","text":"xxxx"}]}}')
    for event in events:
        fold.apply(event)
    texts = sum(isinstance(event, AssistantText) for event in events)
    assert texts == len(blocks) and not any(isinstance(event, ToolCall) for event in events)
    whole = "\n\n".join("x" * 20 for _ in blocks)
    assert (whole, whole) == (one_line.facts.final_text, fold.final_text)
    assert len(many_lines.facts.final_text or "") == 6 * len(blocks) - 2
    assert time.process_time() - began < 8
