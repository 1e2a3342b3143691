"""Timeline entries: tool, text, thinking and error, each final from the start."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from subdeck.core.delegation.report import EntryFold, ErrorEntry, TextEntry, ThinkingEntry, ToolEntry, fold_entries
from subdeck.core.run.events import (
    AssistantText,
    ErrorReported,
    Event,
    Notice,
    Retry,
    RunEnded,
    RunQueued,
    RunStarted,
    Thinking,
    ToolCall,
    ToolResult,
    UnknownEvent,
    UsageReported,
)

from ...replay import replay

TS = "2026-11-21T20:09:13.667Z"
MS = 1795291753667


def call(call_id: str = "call_0", tool: str = "read", **args: Any) -> ToolCall:
    return ToolCall(tool_call_id=call_id, tool_name=tool, args=args, ts=TS)


def result(call_id: str = "call_0", tool: str = "read", content: str = "ok", **more: Any) -> ToolResult:
    return ToolResult(tool_call_id=call_id, tool_name=tool, content=content, ts=TS, **{"is_error": False, **more})


STARTED = RunStarted(pid=1, child_pid=2, attempt=1, max_attempts=1, ts=TS)
ENDED = RunEnded(status="aborted", reason="stopped", ts=TS)


@pytest.mark.parametrize(
    ("events", "expected"),
    [
        ([AssistantText(text="I look.", ts=TS)], [TextEntry(text="I look.", ts=MS)]),
        ([Thinking(text="Hm.", ts=TS)], [ThinkingEntry(text="Hm.", ts=MS)]),
        ([ErrorReported(message="401", ts=TS)], [ErrorEntry(text="401", ts=MS)]),
        (
            [call(path="a.py"), result(content="code")],
            [ToolEntry(tool_name="read", input={"path": "a.py"}, output="code", is_error=False, ts=MS)],
        ),
        (
            [call(tool="bash", command="x"), result(tool="bash", content="exit 3", is_error=True)],
            [ToolEntry(tool_name="bash", input={"command": "x"}, output="exit 3", is_error=True, ts=MS)],
        ),
        ([call(path="a.py")], []),
        ([call(path="a.py"), ENDED], [ToolEntry(tool_name="read", input={"path": "a.py"}, ts=MS)]),
        ([call(path="a.py"), STARTED], [ToolEntry(tool_name="read", input={"path": "a.py"}, ts=MS)]),
        ([result()], [ToolEntry(tool_name="read", input={}, output="ok", is_error=False, ts=MS)]),
        (
            [result(content="x", truncated=True)],
            [ToolEntry(tool_name="read", input={}, output="x\n[…truncated…]", is_error=False, ts=MS)],
        ),
        ([AssistantText(text=" \n", ts=TS), Thinking(text="", ts=TS)], []),
        (
            [
                RunQueued(waits_for="slot", ts=TS),
                STARTED,
                UsageReported(
                    input=1, output=1, cache_read=0, cache_write=0, cost=0, model="m", stop_reason="stop", ts=TS
                ),
                Retry(attempt=1, max_attempts=3, delay_ms=1, reason="429", ts=TS),
                Notice(level="warning", text="x", ts=TS),
                UnknownEvent(type="new", ts=TS),
                ENDED,
            ],
            [],
        ),
    ],
)
def test_what_becomes_an_entry(events: list[Event], expected: list[Any]) -> None:
    """A tool becomes an entry with its result, or without one at the end of its attempt."""
    assert tuple(expected) == fold_entries(events).entries


def test_the_json_of_entries() -> None:
    """Entries have the documented names, without unknown fields."""
    events = [call(path="a.py"), result(), Thinking(text="Hm.", ts=TS), call(tool="bash", command="x"), ENDED]

    assert [
        {"kind": "tool", "toolName": "read", "input": {"path": "a.py"}, "output": "ok", "isError": False, "ts": MS},
        {"kind": "thinking", "text": "Hm.", "ts": MS},
        {"kind": "tool", "toolName": "bash", "input": {"command": "x"}, "ts": MS},
    ] == msgspec.json.decode(msgspec.json.encode(fold_entries(events).entries))


def test_calls_that_overlap() -> None:
    """Entries come in the order in which tools finish, each with its own input."""
    events = [call("1", path="a"), call("2", path="b"), result("2", content="B"), result("1", content="A")]

    assert [("b", "B"), ("a", "A")] == [
        (entry.input["path"], entry.output) for entry in fold_entries(events).entries if isinstance(entry, ToolEntry)
    ]


def test_an_id_that_is_used_again() -> None:
    """Agents may reuse call ids in each message, so a result belongs to the latest call with its id."""
    events = [call(path="a"), call(path="b"), result(content="B"), call(path="c"), result(content="C")]

    assert [("a", None), ("b", "B"), ("c", "C")] == [
        (entry.input["path"], entry.output) for entry in fold_entries(events).entries if isinstance(entry, ToolEntry)
    ]


@pytest.mark.parametrize(
    "recording", ["1.5.2/c_edit_write", "0.73.1/d_bash", "1.5.2/h_sigterm_in_bash", "0.73.1/f_429_always_fast_settings"]
)
def test_entries_are_final(recording: str) -> None:
    """During a run, entries are only added, never changed or removed."""
    fold = EntryFold()
    before = fold.timeline
    for event in [*replay(recording).events, ENDED]:
        fold.apply(event)
        assert before.entries == fold.timeline.entries[: before.total]
        before = fold.timeline

    assert before.total == len(before.entries) > 0


def test_the_last_entries() -> None:
    """A limited timeline keeps the last entries and the total number."""
    timeline = fold_entries((AssistantText(text=str(number), ts=TS) for number in range(50)), keep=20)

    assert [str(number) for number in range(30, 50)] == [
        entry.text for entry in timeline.entries if isinstance(entry, TextEntry)
    ]
    assert 50 == timeline.total


def test_completed_calls() -> None:
    """Only calls with a result count as completed."""
    assert 2 == fold_entries([call("1"), result("1"), call("2"), result("2", is_error=True), call("3")]).tool_uses


def test_a_time_that_cannot_be_read() -> None:
    """An entry with an invalid time has that of the event before it."""
    timeline = fold_entries([AssistantText(text="a", ts=TS), AssistantText(text="b", ts="yesterday")])

    assert [MS, MS] == [entry.ts for entry in timeline.entries]
