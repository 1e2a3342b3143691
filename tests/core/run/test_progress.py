"""The wording of live progress: the text that a user reads for each event."""

from __future__ import annotations

from typing import Any

import pytest
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
from subdeck.core.run.progress import ProgressFormatter


def call(tool: str, call_id: str = "1", **args: Any) -> ToolCall:
    return ToolCall(tool_call_id=call_id, tool_name=tool, args=args)


def result(tool: str, call_id: str = "1", failed: bool = False) -> ToolResult:
    return ToolResult(tool_call_id=call_id, tool_name=tool, is_error=failed, content="whatever it said")


def told(*events: Event) -> str | None:
    """Return the text for the last of the events."""
    formatter = ProgressFormatter()
    return [formatter.text(event) for event in events][-1]


@pytest.mark.parametrize(
    "text", ["I’m inspecting the auth flow now.", "I found the schema; next I’m checking validation.", "Two\n\nlines."]
)
def test_assistant_text(text: str) -> None:
    """The agent's text is shown unchanged."""
    assert text == told(AssistantText(text=text))


@pytest.mark.parametrize("text", ["", "  ", "\n\t\n", "\x1b[0m \x00"])
def test_blank_assistant_text(text: str) -> None:
    """Blank text is not shown."""
    assert told(AssistantText(text=text)) is None


def test_assistant_text_is_made_plain() -> None:
    """Control sequences are removed from the agent's text; its lines and indentation stay."""
    assert "    red\n  two" == told(AssistantText(text="\n    \x1b[31mred\x1b[0m\x07\n  two\n"))


@pytest.mark.parametrize(
    ("tool", "args", "text"),
    [
        ("read", {"path": "src/auth.ts"}, "Reading src/auth.ts"),
        ("read", {"file_path": "src/auth.ts", "offset": 5}, "Reading src/auth.ts"),
        ("read", {"path": "/abs/project/src/auth.ts"}, "Reading /abs/project/src/auth.ts"),
        ("grep", {"pattern": "auth", "path": "src"}, "Searching code for auth"),
        ("find", {"pattern": "*.test.ts"}, "Scanning for *.test.ts"),
        ("ls", {"path": "src/"}, "Listing src/"),
        ("edit", {"path": "src/tool.ts", "edits": []}, "Editing src/tool.ts"),
        ("write", {"path": "README.md", "content": "x"}, "Writing README.md"),
        ("bash", {"command": "npm test"}, "npm test"),
        ("bash", {"command": "cd x &&\n  npm test"}, "cd x && npm test"),
        ("deploy", {"target": "prod"}, "Running deploy"),
        ("subagent_finalize", {}, "Running subagent_finalize"),
    ],
)
def test_tool_call(tool: str, args: dict[str, Any], text: str) -> None:
    """A known tool is described by its argument, an unknown one by its name."""
    assert text == told(call(tool, **args))


@pytest.mark.parametrize("tool", ["read", "grep", "find", "ls", "edit", "write", "bash"])
@pytest.mark.parametrize("value", [None, 5, "", "  ", ["src"], {"path": "x"}, "\x1b[0m"])
def test_tool_call_without_usable_arguments(tool: str, value: Any) -> None:
    """Missing or mistyped arguments are not guessed."""
    assert f"Running {tool}" == told(call(tool))
    assert f"Running {tool}" == told(call(tool, path=value, pattern=value, command=value))


def test_a_result_that_is_handed_over() -> None:
    """The text of a structured result is shown with its lines, like any answer."""
    formatter = ProgressFormatter()
    handed = ToolCall(tool_call_id="1", tool_name="subagent_finalize", args={"error": "No key.", "result": "a\nb\x1b"})
    taken = ToolResult(tool_call_id="1", tool_name="subagent_finalize", is_error=False, content="")
    assert ["No key.\n\na\nb", "Result returned"] == [formatter.text(handed), formatter.text(taken)]


@pytest.mark.parametrize("args", [{}, {"result": 3}, {"result": "  "}])
def test_a_result_that_says_nothing(args: dict[str, Any]) -> None:
    """A structured result without text is described like any other tool."""
    assert "Running subagent_finalize" == told(call("subagent_finalize", **args))


def test_long_command() -> None:
    """A long shell command is cut, with an ellipsis."""
    text = told(call("bash", command="echo " + "x" * 500))
    assert text is not None
    assert (100, "echo xxx", "…") == (len(text), text[:8], text[-1])


def test_hostile_arguments() -> None:
    """Arguments cannot break the line, reach the terminal or act as placeholders in our wording."""
    assert "Reading a b [bold] {} {0} %s" == told(call("read", path="a\n\x1b]0;owned\x07b [bold] {} {0} %s"))
    assert "Running evil tool" == told(call("evil\n\x1b[2Jtool"))
    assert "Running tool" == told(call(""))


@pytest.mark.parametrize(
    ("tool", "args", "finished", "failed"),
    [
        ("read", {"path": "src/auth.ts"}, "Finished reading src/auth.ts", "Read failed: src/auth.ts"),
        ("grep", {"pattern": "auth"}, "Search finished", "Search failed: auth"),
        ("find", {"pattern": "*.ts"}, "Scan finished", "Scan failed: *.ts"),
        ("ls", {"path": "src/"}, "Finished listing src/", "Listing failed: src/"),
        ("edit", {"path": "src/tool.ts"}, "Finished editing src/tool.ts", "Edit failed: src/tool.ts"),
        ("write", {"path": "README.md"}, "Finished writing README.md", "Write failed: README.md"),
        ("bash", {"command": "npm test"}, "Command finished", "Command failed: npm test"),
        ("deploy", {"target": "prod"}, "deploy finished", "deploy failed"),
        ("read", {}, "read finished", "read failed"),
    ],
)
def test_tool_result(tool: str, args: dict[str, Any], finished: str, failed: str) -> None:
    """A tool result is described in the words of its call, finished or failed."""
    assert finished == told(call(tool, **args), result(tool))
    assert failed == told(call(tool, **args), result(tool, failed=True))


@pytest.mark.parametrize("tool", ["read", "grep", "find", "ls", "edit", "write", "bash", "deploy"])
def test_tool_result_without_its_call(tool: str) -> None:
    """A result without a known call is described by the tool's name only."""
    assert f"{tool} finished" == told(result(tool))
    assert f"{tool} failed" == told(result(tool, failed=True))
    assert f"{tool} failed" == told(call("other"), result(tool, failed=True))


def test_tool_result_under_the_id_of_another_tool() -> None:
    """A result does not take its words from another tool's call."""
    assert "edit failed" == told(call("read", path="a"), result("edit", failed=True))


def test_parallel_tools() -> None:
    """Each result finds its own call."""
    events = [call("read", "1", path="a"), call("read", "2", path="b"), result("read", "2"), result("read", "1")]
    formatter = ProgressFormatter()
    assert ["Reading a", "Reading b", "Finished reading b", "Finished reading a"] == [*map(formatter.text, events)]


def test_a_call_is_forgotten_with_its_result() -> None:
    """A call is forgotten after its result, so a second result with the same id has no call."""
    assert "read finished" == told(call("read", path="a"), result("read"), result("read"))


def test_memory_of_calls_is_bounded() -> None:
    """With very many open calls the oldest are forgotten."""
    calls = [call("read", str(n), path=f"f{n}") for n in range(1000)]
    assert "read finished" == told(*calls, result("read", "0"))
    assert "Finished reading f999" == told(*calls, result("read", "999"))


@pytest.mark.parametrize(
    ("event", "text"),
    [
        (Retry(attempt=1, max_attempts=3, delay_ms=2000, reason="500 boom"), "Retrying 1/3 in 2 s: 500 boom"),
        (Retry(attempt=2, max_attempts=2, delay_ms=100, reason=""), "Retrying 2/2 in 0.1 s"),
        (Retry(attempt=0, max_attempts=0, delay_ms=0, reason=" "), "Retrying"),
        (Notice(level="warning", text="unknown\ntool: x"), "Warning: unknown tool: x"),
        (Notice(level="info", text="compacting"), "compacting"),
        (Notice(level="info", text=" "), None),
        (ErrorReported(message="401 Invalid API key"), "Error: 401 Invalid API key"),
        (ErrorReported(message=""), "Error"),
        (RunQueued(waits_for="slot"), "Waiting for a free slot"),
        (RunQueued(waits_for="session"), "Waiting for the agent session"),
        (RunQueued(waits_for="?"), "Waiting"),
        (RunStarted(pid=1, child_pid=2, attempt=1, max_attempts=1), None),
        (RunEnded(status="completed", reason="done"), "completed: done"),
        (Thinking(text="hm"), None),
        (UnknownEvent(type="later"), None),
        (
            UsageReported(input=1, output=1, cache_read=0, cache_write=0, cost=0.0, model="m", stop_reason="stop"),
            None,
        ),
    ],
)
def test_other_events(event: Event, text: str | None) -> None:
    """Every other event is one plain line, or is not shown."""
    assert text == told(event)
