"""Edits as diffs, from the arguments of tool calls and from their results."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, strategies as st
from subdeck.core.agents.acp._stream import AcpStream
from subdeck.core.agents.claude._stream import ClaudeStream
from subdeck.core.agents.codex._items import tool_call
from subdeck.core.agents.pi.stream import PiStream
from subdeck.core.run.edits import EFFORT, GAP, diff_of, diff_text, effort, is_edit, may_be_edit
from subdeck.core.run.events import CONTENT_LIMIT, CUT, Event, ToolCall, ToolResult, encode_event
from subdeck.core.text.plain import plain

RECORDINGS = Path(__file__).parents[2] / "recordings"


def a_call(name: str, **args: Any) -> ToolCall:
    return ToolCall(tool_call_id="c", tool_name=name, args=args)


def a_result(diff: str) -> ToolResult:
    return ToolResult(tool_call_id="c", tool_name="edit", is_error=False, content="done", diff=diff)


def shown(event: Event) -> list[str]:
    """Return the lines of a diff with their numbers."""
    return [f"{'' if line.number is None else line.number}{line.sign}{line.text}" for line in diff_of(event)]


CALLS = {
    "pi, several edits": (
        a_call("edit", path="a.py", edits=[{"oldText": "a", "newText": "b"}, {"oldText": "c\n", "newText": "c\nd\n"}]),
        ["a.py", "-a", "+b", GAP, " c", "+d"],
    ),
    "pi, one edit": (a_call("edit", path="a.py", oldText="a", newText="b"), ["a.py", "-a", "+b"]),
    "pi, write": (a_call("write", path="a.py", content="x\ny\n"), ["a.py", "1+x", "2+y"]),
    "Claude Code, Edit": (
        a_call("edit", file_path="a.py", old_string="a", new_string="b", replace_all=True),
        ["a.py", "-a", "+b", "(replaced everywhere)"],
    ),
    "Claude Code, MultiEdit": (
        a_call("MultiEdit", file_path="a.py", edits=[{"old_string": "a", "new_string": "b"}]),
        ["a.py", "-a", "+b"],
    ),
    "Codex, changes": (
        a_call(
            "edit",
            path="a.py, b.py, c.py",
            changes=[
                {"path": "a.py", "kind": "update", "diff": "@@ -3,2 +3,2 @@\n x\n-a\n+b\n"},
                {"path": "b.py", "kind": "add", "diff": "new\n"},
                {"path": "c.py", "kind": "delete", "diff": "old\n"},
            ],
        ),
        ["a.py", "3 x", "4-a", "4+b", "b.py", "1+new", "c.py", "1-old"],
    ),
    "Codex, changes without a diff": (
        a_call("edit", path="a.py", changes=[{"path": "a.py", "kind": "update"}]),
        ["a.py", "(update)"],
    ),
    "Codex, apply_patch": (
        a_call(
            "apply_patch",
            input="*** Begin Patch\n*** Update File: a.py\n@@ def f():\n x\n-a\n+b\n@@\n-c\n*** Delete File: b.py\n"
            "*** Add File: c.py\n+new\n*** End Patch",
        ),
        ["a.py", " x", "-a", "+b", GAP, "-c", "b.py", "(delete)", "c.py", "+new"],
    ),
    "an empty file": (a_call("write", path="a.py", content=""), ["a.py", "(empty)"]),
    "nothing changed": (a_call("edit", path="a.py", oldText="a", newText="a"), ["a.py", "(no difference)"]),
}


@pytest.mark.parametrize("name", CALLS)
def test_calls_that_edit_are_shown_as_diffs(name: str) -> None:
    """The old and the new text are shown as a diff, under any names that an agent has for them."""
    call, lines = CALLS[name]
    assert lines == shown(call)
    assert is_edit(call)
    assert may_be_edit(encode_event(call))


@pytest.mark.parametrize(
    "call",
    [
        a_call("read", path="a.py"),
        a_call("bash", command="diff a b"),
        a_call("note", path="a", content="kept elsewhere"),
        a_call("edit", path="a.py", edits="not a list", changes=7),
        a_call("edit", edits=[1, None, {"oldText": 1, "newText": "x"}]),
    ],
)
def test_other_calls_are_no_edits(call: ToolCall) -> None:
    """A call that doesn't edit has no diff, even with arguments of an edit."""
    assert diff_of(call) == []
    assert not is_edit(call)


RESULTS = {
    "a patch": (
        "--- a.py\n+++ a.py\n@@ -9,3 +9,4 @@ def f():\n x\n-a\n+b\n+c\n y\n@@ -30 +31 @@\n-p\n+q\n"
        "\\ No newline at end of file\n",
        ["a.py", "9 x", "10-a", "10+b", "11+c", "12 y", GAP, "30-p", "31+q", "No newline at end of file"],
    ),
    "removed and added dashes": ("@@ -1,2 +1,1 @@\n--- x\n-y\n+++ z\n", ["1--- x", "2-y", "1+++ z"]),
    "several files": (
        "--- a\n+++ a\n@@ -1 +1 @@\n-x\n+y\n--- b\n+++ /dev/null\n@@ -1 +0,0 @@\n-z\n",
        ["a", "1-x", "1+y", "b", "1-z"],
    ),
    "prefixes of git": (
        "--- a/x\n+++ b/x\n@@ -1 +1 @@\n-x\n+y\n--- a/y\n+++ /dev/null\n@@ -1 +0,0 @@\n-z\n"
        "--- a/b/z\n+++ a/b/z\n@@ -1 +1 @@\n-x\n+y\n",
        ["x", "1-x", "1+y", "y", "1-z", "a/b/z", "1-x", "1+y"],
    ),
    "no numbers": ("@@\n x\n-a\n@@\n+b", [" x", "-a", GAP, "+b"]),
    "pi before 1.0": (
        " 1 def f():\n-2     a\n+2     b\n   ...\n 9 c",
        ["1 def f():", "2-    a", "2+    b", GAP, "9 c"],
    ),
}


@pytest.mark.parametrize("name", RESULTS)
def test_results_keep_their_line_numbers(name: str) -> None:
    """A diff from the agent is shown with its line numbers."""
    diff, lines = RESULTS[name]
    assert lines == shown(a_result(diff))
    assert is_edit(a_result(diff))
    assert may_be_edit(encode_event(a_result(diff)))


def test_far_lines_are_left_out() -> None:
    """Three unchanged lines are kept before and after a change."""
    old = [f"line {number}" for number in range(40)]
    new = [*old[:10], "new", *old[10:30], "newer", *old[31:]]
    lines = diff_of(a_call("edit", path="", oldText="\n".join(old), newText="\n".join(new)))
    assert diff_text(lines).split("\n") == [
        *(f" line {number}" for number in (7, 8, 9)),
        "+new",
        *(f" line {number}" for number in (10, 11, 12)),
        GAP,
        *(f" line {number}" for number in (27, 28, 29)),
        "-line 30",
        "+newer",
        *(f" line {number}" for number in (31, 32, 33)),
    ]


texts = st.text(st.sampled_from("ab\n\x1b\t\u202e"), max_size=40)


@given(texts, texts)
def test_nothing_of_an_edit_is_lost(old: str, new: str) -> None:
    """Removed lines come from the old text, added ones from the new, in their order, and every line is safe
    to print.
    """
    lines = diff_of(a_call("edit", oldText=old, newText=new))
    assert all(line.text == plain(line.text) and "\n" not in line.text for line in lines)
    if old != new and GAP not in [line.text for line in lines]:
        for sign, text in (("-", old), ("+", new)):
            side = [line.text for line in lines if line.sign == sign]
            whole = iter([plain(line) for line in text.split("\n")])
            assert all(line in whole for line in side)


@given(st.text(st.sampled_from("@-+ 1,\\\n*/x\x1b"), max_size=80))
def test_any_diff_can_be_read(diff: str) -> None:
    """Any text is accepted as a diff."""
    for event in (a_result(diff), a_call("edit", changes=[{"path": "a", "kind": "update", "diff": diff}])):
        assert all("\n" not in line.text and "\x1b" not in line.text for line in diff_of(event))
        assert effort(event) == 0


def test_the_work_is_bounded() -> None:
    """Texts that would take too long to compare are shown old first, then new. Both count as effort before."""
    old, new = ("\n".join(f"{word} {number}" for number in range(2000)) for word in ("old", "new"))
    call = a_call("edit", oldText=old, newText=new)
    assert effort(call) == EFFORT
    assert [line.sign for line in diff_of(call)] == ["-"] * 2000 + ["+"] * 2000


def recorded(stream: Any, path: str) -> list[ToolResult | ToolCall]:
    events: list[Event] = []
    for line in (RECORDINGS / path).read_bytes().splitlines():
        events += stream.feed(line)
    return [event for event in events if isinstance(event, ToolResult | ToolCall) and is_edit(event)]


@pytest.mark.parametrize(
    ("stream", "path", "lines"),
    [
        (
            PiStream,
            "1.5.2/c_edit_write/stdout.jsonl",
            ["src/app.py", "1 def add(a, b):", "2-    return a - b  # bug", "2+    return a + b"],
        ),
        (
            ClaudeStream,
            "agents/claude-code/read-edit/stdout.jsonl",
            ["1 import os", "2 ", "3 def authenticate(token):", '4-    """Check the token."""'],
        ),
        (AcpStream, "acp/claude/read-edit/stdout.jsonl", ["1-hello", "1+bye"]),
    ],
)
def test_recorded_edits_have_diffs(stream: type[Any], path: str, lines: list[str]) -> None:
    """Edits reported by real agents are kept with their line numbers."""
    results = [event for event in recorded(stream(), path) if isinstance(event, ToolResult)]
    assert shown(results[0])[: len(lines)] == lines


def test_pi_before_1_0_says_its_diff_in_another_form() -> None:
    """Without a patch, the lines that pi shows are kept."""
    line = {
        "type": "tool_execution_end",
        "toolCallId": "c",
        "toolName": "edit",
        "result": {"content": [], "details": {"diff": "-1 a\n+1 b", "firstChangedLine": 1}},
        "isError": False,
    }
    (result,) = PiStream().feed(json.dumps(line).encode())
    assert shown(result) == ["1-a", "1+b"]


def test_acp_agents_may_say_texts_without_arguments() -> None:
    """If an agent reports no arguments, the diff comes from the texts that it shows."""
    stream = AcpStream()
    events: list[Event] = []
    for status, content in (
        ("in_progress", []),
        ("completed", [a_diff("a.py", None, "x\n"), a_diff("b.py", "p", "q")]),
    ):
        update = {
            "sessionUpdate": "tool_call" if status == "in_progress" else "tool_call_update",
            "toolCallId": "1",
            "kind": "edit",
            "status": status,
            "content": content,
        }
        events += stream.feed(json.dumps({"method": "session/update", "params": {"update": update}}).encode())
    assert shown(events[-1]) == ["a.py", "+x", "b.py", "-p", "+q"]


def a_diff(path: str, old: str | None, new: str) -> dict[str, Any]:
    return {"type": "diff", "path": path, "oldText": old, "newText": new}


def test_codex_says_what_it_changes() -> None:
    """The app-server reports a diff of each changed file."""
    item = {
        "id": "1",
        "type": "fileChange",
        "status": "inProgress",
        "changes": [{"path": "a.py", "kind": {"type": "update"}, "diff": "@@ -1 +1 @@\n-a\n+b\n"}],
    }
    call = tool_call(item)
    assert call is not None
    assert shown(call) == ["a.py", "1-a", "1+b"]


def test_long_diffs_are_cut_and_say_so() -> None:
    """A diff is cut at the same limit as other results."""
    line = {
        "type": "tool_execution_end",
        "toolCallId": "c",
        "toolName": "edit",
        "result": {"content": [], "details": {"patch": "@@ -1 +1,9999 @@\n" + "+line\n" * 20_000}},
    }
    (result,) = PiStream().feed(json.dumps(line).encode())
    assert isinstance(result, ToolResult)
    assert CONTENT_LIMIT < len(result.diff) < CONTENT_LIMIT + 100
    assert diff_of(result)[-1].text == CUT
