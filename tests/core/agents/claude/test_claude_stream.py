"""Claude Code's output, recorded and made up, becomes events, facts and a correct outcome."""

from __future__ import annotations

import json
import os
import random
import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, strategies
from subdeck.core.agents.claude._stream import ClaudeStream
from subdeck.core.agents.claude.program import UPDATES
from subdeck.core.agents.loader import recorded_kind
from subdeck.core.run.events import AssistantText, Event, Notice, Retry, ToolCall, ToolResult, UsageReported
from subdeck.core.run.model import RunReason
from subdeck.core.run.outcome import ChildExit, Outcome, decide
from subdeck.core.wrapper._intake import LineSplitter

from tests.replay import RECORDINGS

CASES = RECORDINGS / "agents" / "claude-code"

ENDS = {
    "api-400": (RunReason.MODEL_ERROR, None),
    "api-529-recovers": (RunReason.DONE, "Here at last."),
    "ask-allow": (RunReason.DONE, "Written."),
    "bash-fail": (RunReason.DONE, "It failed with exit code 3."),
    "interrupt": (RunReason.INTERRUPTED, "Counting."),
    "max-turns": (RunReason.MAX_TURNS, "Two."),
    "permission-denied": (RunReason.DONE, "I could not write."),
    "read-edit": (RunReason.DONE, "I made the docstring say more."),
    "resume-1": (RunReason.DONE, "The word is kiwi."),
    "resume-2": (RunReason.DONE, "You told me kiwi."),
    "sigint-in-bash": (RunReason.INTERRUPTED, "Counting."),
    "sigterm-in-bash": (RunReason.AGENT_EXIT, "Counting."),
    "steer": (RunReason.DONE, "Counted, and bananas."),
    "text-thinking": (RunReason.DONE, "The shop needs one variable, SHOP_TOKEN."),
    "tool-not-offered": (RunReason.DONE, "I have no shell."),
}


def line(**fields: Any) -> bytes:
    return json.dumps({"session_id": "s", **fields}, separators=(",", ":")).encode()


def fed(*lines: bytes) -> tuple[ClaudeStream, list[Event]]:
    stream = ClaudeStream()
    return stream, [*(event for each in lines for event in stream.feed(each)), *stream.end()]


def outcome(stream: ClaudeStream, code: int, stderr: str = "") -> Outcome:
    return decide(stream.facts, exit=ChildExit.of(code), stderr=stderr)


def recorded(case: str) -> tuple[ClaudeStream, list[Event], Outcome]:
    """Feed a recording in chunks, as the wrapper does."""
    data, stream, splitter = (CASES / case / "stdout.jsonl").read_bytes(), ClaudeStream(), LineSplitter(UPDATES)
    events: list[Event] = []
    for start in range(0, len(data), 7000):
        for each in splitter.split(data[start : start + 7000]):
            events += stream.feed(each)
    events += stream.end()
    found = re.search(r"rc=(-?\d+)", (CASES / case / "exit.txt").read_text())
    assert found
    return stream, events, outcome(stream, int(found[1]))


def assistant(*blocks: dict[str, Any], message: str = "m1", parent: str | None = None, **others: Any) -> bytes:
    content = {"id": message, "model": "claude-x", "content": list(blocks), "stop_reason": None, **others}
    return line(type="assistant", message=content, parent_tool_use_id=parent)


def text(words: str) -> dict[str, Any]:
    return {"type": "text", "text": words}


def result(subtype: str = "success", *, is_error: bool = False, **others: Any) -> bytes:
    return line(**{"duration_ms": 1, "subtype": subtype, "is_error": is_error, "type": "result", **others})


INIT = line(type="system", subtype="init", model="claude-x")


@pytest.mark.parametrize("case", ENDS)
def test_recordings(case: str) -> None:
    """Every recording is recognized by its first lines, and has its correct outcome."""
    stream, _, end = recorded(case)
    assert ENDS[case] == (end.reason, stream.facts.final_text)
    assert "claude" == recorded_kind((CASES / case / "stdout.jsonl").read_bytes().split(b"\n")[:20])
    assert 0 == stream.facts.unreadable


def test_every_recording_has_its_end_here() -> None:
    assert sorted(ENDS) == sorted(os.listdir(CASES))


def test_usage_is_that_of_this_run_alone() -> None:
    """The totals in a result cover the whole conversation. A run counts only its own share."""
    first, second = recorded("resume-1")[0].facts.usage, recorded("resume-2")[0].facts.usage
    assert first == second
    assert (1200, 87, 3400, 250, 1) == (
        second.input,
        second.output,
        second.cache_read,
        second.cache_write,
        second.turns,
    )
    assert 0.0068625 == pytest.approx(second.cost)


def test_what_happened_is_told() -> None:
    """Retries, denied calls and failed commands become events."""
    (first, second) = (event for event in recorded("api-529-recovers")[1] if isinstance(event, Retry))
    assert (1, 2, "529 overloaded", 1096) == (first.attempt, second.attempt, first.reason, second.delay_ms)
    (notice,) = (event for event in recorded("permission-denied")[1] if isinstance(event, Notice))
    assert notice.text.startswith("a call to write was denied: Permission to use Write has been denied")
    assert "IMPORTANT" not in notice.text
    (failed,) = (event for event in recorded("bash-fail")[1] if isinstance(event, ToolResult))
    assert ("bash", True, 3) == (failed.tool_name, failed.is_error, failed.exit_code)


@pytest.mark.parametrize(
    ("lines", "code", "reason", "message"),
    [
        ([INIT, assistant(text("Yes.")), result(result="Yes.")], 0, RunReason.DONE, None),
        ([INIT, result(result="")], 0, RunReason.EMPTY_ANSWER, "without writing any text"),
        ([INIT, assistant(text("Yes."))], 0, RunReason.AGENT_EXIT, "before it finished"),
        ([INIT, result(is_error=True, result="API Error: 529 overloaded")], 1, RunReason.MODEL_ERROR, "overloaded"),
        (
            [INIT, result(is_error=True, result='API Error: 401 {"type":"error","error":{"message":"Bad key"}}')],
            1,
            RunReason.MODEL_ERROR,
            "API Error: 401 Bad key",
        ),
        (
            [INIT, assistant(text("Part.")), result(is_error=True, error="max_output_tokens", result="too long")],
            1,
            RunReason.MODEL_ERROR,
            "too long",
        ),
        ([INIT, result(is_error=True, stop_reason="refusal", result="No.")], 1, RunReason.MODEL_ERROR, "refused: No."),
        ([INIT, result("error_max_turns", is_error=True, errors=["Reached 2"])], 1, RunReason.MAX_TURNS, "Reached 2"),
        ([INIT, result("error_max_budget_usd", is_error=True, errors=["$1"])], 1, RunReason.BUDGET, "$1"),
        (
            [result("error_during_execution", is_error=True, errors=["No conversation found"])],
            1,
            RunReason.START_FAILED,
            "No conversation found",
        ),
        (
            [INIT, result("error_during_execution", is_error=True, terminal_reason="aborted_tools")],
            0,
            RunReason.INTERRUPTED,
            "interrupted",
        ),
        ([INIT], -9, RunReason.AGENT_EXIT, "SIGKILL"),
        ([], 1, RunReason.START_FAILED, "error: unknown option"),
        ([], 0, RunReason.AGENT_EXIT, "exited with code 0"),
        ([INIT, result(is_error=None, result="Yes.")], 0, RunReason.MODEL_ERROR, "Yes."),
    ],
)
def test_ends(lines: list[bytes], code: int, reason: RunReason, message: str | None) -> None:
    """A run is completed only by a result without an error and with an answer. Every other outcome has its reason."""
    stream, _ = fed(*lines)
    end = outcome(stream, code, stderr="error: unknown option --x")
    assert reason == end.reason
    assert (message or "") in (end.message or "")


def test_the_words_of_an_error_are_no_answer() -> None:
    """The text of an error is not an answer."""
    stream, events = fed(
        INIT, assistant(text("API Error"), model="<synthetic>"), result(is_error=True, result="API Error")
    )
    assert stream.facts.final_text is None
    assert not [event for event in events if isinstance(event, AssistantText)]


def test_nested_agents_stand_below_their_call() -> None:
    """Calls of a nested agent name the call that started it, and its text is not the run's answer."""
    use = {"type": "tool_use", "id": "t2", "name": "Read", "input": {"file_path": "a"}}
    done = {"type": "tool_result", "tool_use_id": "t2", "content": "x"}
    stream, events = fed(
        INIT,
        assistant(text("I ask."), {"type": "tool_use", "id": "t1", "name": "Agent", "input": {}}),
        assistant(use, message="n1", parent="t1"),
        line(type="user", message={"content": [done]}, parent_tool_use_id="t1"),
        assistant(text("Nested words"), message="n2", parent="t1"),
    )
    calls = [(event.tool_name, event.within) for event in events if isinstance(event, ToolCall)]
    assert [("Agent", ""), ("read", "t1")] == calls
    assert ["t1"] == [event.within for event in events if isinstance(event, ToolResult)]
    assert "I ask." == stream.facts.final_text
    assert ["↳ Nested words"] == [event.text for event in events if isinstance(event, Notice)]


def test_what_nested_agents_used_counts_for_the_run() -> None:
    """Costs and tokens of nested agents are reported with the result, and are not a turn."""
    used = {"claude-x": {"inputTokens": 50, "outputTokens": 5, "costUSD": 0.5}}
    paid = {
        "type": "message_delta",
        "delta": {"stop_reason": "end_turn"},
        "usage": {"input_tokens": 20, "output_tokens": 5},
    }
    start = {"type": "message_start", "message": {"id": "m1"}}
    stream, _ = fed(
        INIT,
        line(type="stream_event", event=start),
        assistant(text("Yes.")),
        line(type="stream_event", event=paid),
        result(result="Yes.", model_usage_since_last_result=used),
    )
    usage = stream.facts.usage
    assert (50, 5, 0.5, 1) == (usage.input, usage.output, usage.cost, usage.turns)


def streamed(message: str, *, ends: bool) -> list[bytes]:
    """A streamed message, complete or cut off."""
    begun = {"type": "message_start", "message": {"id": message, "usage": {"input_tokens": 30, "output_tokens": 1}}}
    used = {"input_tokens": 30, "output_tokens": 12}
    ended = {"type": "message_delta", "delta": {"stop_reason": "tool_use"}, "usage": used}
    return [line(type="stream_event", event=event) for event in (begun, *((ended,) if ends else ()))]


def test_a_price_that_is_not_told_is_not_known() -> None:
    """The price comes with the result. Without a result, the tokens are known and counted as unpriced."""
    whole, begun = streamed("m1", ends=True), streamed("m2", ends=False)
    stream, events = fed(INIT, *whole, *begun)
    usage = stream.facts.usage
    assert (60, 13, 0.0, 73) == (usage.input, usage.output, usage.cost, usage.unpriced)
    assert ["toolUse", "aborted"] == [event.stop_reason for event in events if isinstance(event, UsageReported)]

    used = {"claude-x": {"inputTokens": 60, "outputTokens": 13, "costUSD": 0.5}}
    stopped = result("error_during_execution", terminal_reason="aborted_streaming", model_usage_since_last_result=used)
    usage = fed(INIT, *whole, *begun, stopped)[0].facts.usage
    assert (60, 13, 0.5, 0) == (usage.input, usage.output, usage.cost, usage.unpriced)


def test_recordings_tell_what_they_cost() -> None:
    """All recordings with a result have a price. The terminated one counts as unpriced."""
    untold = {case for case in ENDS if recorded(case)[0].facts.usage.unpriced}
    assert {"sigterm-in-bash"} == untold


def test_a_shell_in_the_background_brings_another_turn() -> None:
    """A run is not finished while a background task is running. The last result counts."""
    task = {"type": "system", "task_id": "b1", "is_backgrounded": True}
    stream, _ = fed(INIT, line(**task, subtype="task_started"), assistant(text("It runs.")), result(result="It runs."))
    assert (None, 1) == (stream.finished_after, stream.running_tools)

    stream.feed(line(type="system", subtype="task_notification", task_id="b1", status="completed"))
    stream.feed(INIT)
    assert (None, False) == (stream.finished_after, stream.facts.finished)
    stream.feed(assistant(text("It has ended."), message="m2"))
    stream.feed(result(result="It has ended."))
    assert (0, "It has ended.") == (stream.finished_after, stream.facts.final_text)


def delta(words: str, parent: str | None = None, kind: str = "text") -> bytes:
    event = {"type": "content_block_delta", "index": 0, "delta": {"type": f"{kind}_delta", kind: words}}
    event = json.dumps({"type": "stream_event", "event": event, "session_id": "s", "parent_tool_use_id": parent})
    return event.replace('": ', '":').replace(', "', ',"').encode()


@pytest.mark.parametrize("size", [1, 37, 300, 5000, 1 << 20])
def test_the_sentence_is_the_same_however_it_is_cut(size: int) -> None:
    """Deltas may come one by one or together. Text of nested agents and thinking is not included."""
    chance = random.Random(size)
    words = ["plain ", 'quo"te ', "back\\slash ", "日本 ", "new\nline ", "x" * 6000, '"},"parent_tool_use_id":null']
    said = [chance.choice(words) for _ in range(200)]
    lines: list[bytes] = []
    for each in said:
        lines += [delta(each), delta("nested", parent="t1"), delta("thought", kind="thinking")]
        if chance.random() < 0.1:
            lines.append(line(type="system", subtype="status"))
    data, stream, splitter = b"\n".join([INIT, *lines, b""]), ClaudeStream(), LineSplitter(UPDATES)
    for start in range(0, len(data), size):
        for piece in splitter.split(data[start : start + size]):
            stream.feed(piece)
    assert "".join(said) == stream.writing.text()


JSON = strategies.recursive(
    strategies.none() | strategies.booleans() | strategies.integers() | strategies.floats() | strategies.text(),
    lambda inner: strategies.lists(inner, max_size=3) | strategies.dictionaries(strategies.text(), inner, max_size=3),
    max_leaves=8,
)
KEYS = [
    "type",
    "subtype",
    "message",
    "event",
    "content",
    "id",
    "usage",
    "tasks",
    "errors",
    "mcp_servers",
    "delta",
    "is_error",
]


@pytest.mark.fuzz
@given(strategies.lists(strategies.dictionaries(strategies.sampled_from(KEYS), JSON, max_size=6), max_size=6))
def test_nothing_makes_it_raise(lines: list[dict[str, Any]]) -> None:
    """The reader continues with any values in the fields of a line."""
    stream = ClaudeStream()
    for kind in ("system", "stream_event", "assistant", "user", "result"):
        for fields in lines:
            stream.feed(json.dumps(fields | {"type": kind}).encode())
    stream.end()


def test_a_mutated_recording_raises_nothing() -> None:
    """Recordings with changed bytes or cut lines are read to the end."""
    chance = random.Random(7)
    for case in ENDS:
        data = bytearray(Path(CASES / case / "stdout.jsonl").read_bytes())
        for _ in range(200):
            data[chance.randrange(len(data))] = chance.randrange(256)
        stream = ClaudeStream()
        for piece in LineSplitter(UPDATES).split(bytes(data)):
            stream.feed(piece)
        stream.end()
