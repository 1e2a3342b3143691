"""A run as a markdown document: complete, and no content breaks out of its block."""

from __future__ import annotations

import re
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import Any

import pytest
from subdeck.core.run.events import (
    AssistantText,
    Decision,
    ErrorReported,
    Event,
    EventTail,
    Message,
    Notice,
    Request,
    RunEnded,
    RunStarted,
    SessionTold,
    Thinking,
    ToolCall,
    ToolResult,
    UsageReported,
    encode_event,
)
from subdeck.core.run.markdown import closed, fenced, run_markdown
from subdeck.core.run.model import MessageState, RequestKind, RunReason, Usage, Verdict

from ...factories import make_meta, make_result, make_snapshot

TS = "2026-03-04T05:06:07.000Z"
RUN_ID = "20260304-050607-7f3a9c"


def document(*events: Event, task: str = "look", **fields: Any) -> str:
    meta = make_meta(RUN_ID, task=task, preset="repo-scout", resolved_model="fake/test")
    with NamedTemporaryFile() as file:
        file.write(b"".join(map(encode_event, events)))
        file.flush()
        return "".join(run_markdown(make_snapshot(meta, **fields), EventTail(file.name), None))


def outside_fences(text: str) -> str:
    """Return the text outside fences, which a markdown reader interprets."""
    shown: list[str] = []
    fence = ""
    for line in text.split("\n"):
        found = re.match(r" {0,3}(`{3,}|~{3,})(.*)", line)
        if not fence and found:
            fence = found[1]
        elif fence and found and found[1].startswith(fence) and not found[2].strip():
            fence = ""
        elif not fence:
            shown.append(line)
    assert not fence, "a fence is left open"
    return "\n".join(shown)


def test_the_head_has_the_facts() -> None:
    """Preset, task, model, status, times, tokens and cost come first; the result has the whole error."""
    usage = Usage(input=10, output=20, cache_read=1000, cost=0.3125, turns=2, tool_uses=3)
    run = make_snapshot(
        make_meta(RUN_ID, task="find\nit", preset="repo-scout", resolved_model="fake/test"),
        status="failed",
        reason=RunReason.MODEL_ERROR,
        started_at=TS,
        ended_at=TS,
        duration_ms=42_000,
    )
    result = make_result(RUN_ID, RunReason.MODEL_ERROR, error_message="401\nInvalid key", usage=usage)
    head = "".join(run_markdown(run, EventTail("/nowhere"), result))
    assert head.startswith("# repo-scout 7f3a9c: find it\n")
    for fact in (
        f"- run: {RUN_ID}",
        "- model: fake/test",
        "- status: ✗ failed, model\\_error",
        "- error: 401 Invalid key",
        f"- started: {TS}",
        "- took: 0:42",
        "- tokens: 1.0k (input 10, output 20, cache read 1000, cache write 0), 2 turns, 3 tool calls",
        "- cost: \\$0.3125",
        "```text\nfind\nit\n```",
    ):
        assert fact in head


def test_what_is_said_and_asked_has_its_form() -> None:
    """A message is quoted and a request fenced; neither can be read as anything else."""
    hostile = "# head\n```\n<b>"
    shown = document(
        Message(ts=TS, id="1", state=MessageState.ACCEPTED, by="*me*", text=hostile),
        Message(ts=TS, id="1", state=MessageState.DELIVERED),
        Request(ts=TS, id="q1", kind=RequestKind.PERMISSION, title="wants to run a command", command=hostile),
        Decision(ts=TS, request="q1", verdict=Verdict.DENY, by="operator", subject="# head"),
    )
    assert "*▸ queued* \\*me\\*:\n\n> # head\n> ```\n> <b>\n" in shown
    assert "\n````text\nwants to run a command\n  # head\n  ```\n  <b>\n````\n" in shown
    assert "*Denied by the user: \\# head*" in shown
    assert "\n# head" not in outside_fences(shown)


def test_every_event_has_its_form() -> None:
    """Text is kept as it is, thinking is quoted, calls and results are a line and a fence, errors are marked."""
    shown = document(
        RunStarted(ts=TS, pid=1, child_pid=2, attempt=1, max_attempts=1),
        Thinking(ts=TS, text="hm\n\nwell"),
        AssistantText(ts=TS, text="**Found** it:\n\n- one"),
        ToolCall(ts=TS, tool_call_id="1", tool_name="edit", args={"path": "a_b.py", "new": "x\ny", "n": 3}),
        ToolResult(ts=TS, tool_call_id="1", tool_name="edit", is_error=True, content="no", exit_code=2, truncated=True),
        Notice(ts=TS, level="warning", text="careful"),
        ErrorReported(ts=TS, message="boom"),
        RunEnded(ts=TS, status="failed", reason="lost"),
    )
    for part in (
        "> hm\n>\n> well\n",
        "\n**Found** it:\n\n- one\n",
        "**edit** Editing a\\_b.py\n\n```text\npath: a_b.py\nnew:\n  x\n  y\nn: 3\n```\n",
        "**✗** Edit failed: a\\_b.py · exit code 2\n\n```text\nno\n[the rest was not saved]\n```\n",
        "**!** Warning: careful\n",
        "**✗ Error: boom**\n",
        "**failed: lost**\n",
    ):
        assert part in shown


def test_what_is_for_programs_is_left_out() -> None:
    """The agent's session id and the usage of a message are left out."""
    used = UsageReported(ts=TS, input=1, output=1, cache_read=0, cache_write=0, cost=0, model="m", stop_reason="stop")
    said = AssistantText(ts=TS, text="Found.")
    plain, whole = document(said), document(SessionTold(ts=TS, id="x"), said, used)
    assert plain.partition("## Transcript")[2] == whole.partition("## Transcript")[2]


HOSTILE = [
    "```\n# out\n",
    "~~~\n````\n`````\n# out",
    "[x](javascript:1) <script> # out | *b* _i_ `c`",
    "\x1b[31mred\x1b]0;title\x07 \x9b1m \x00",
    "שלום \u202e gnirts \u2028 # out",
    "x" * 10_000,
    "",
]


@pytest.mark.parametrize("text", HOSTILE)
def test_nothing_breaks_out(text: str) -> None:
    """Tools, tasks and thinking never produce a heading, a link or a control character."""
    shown = document(
        Thinking(ts=TS, text=text),
        ToolCall(ts="garbage", tool_call_id="1", tool_name=text, args={text: text, "path": text}),
        ToolResult(ts=TS, tool_call_id="1", tool_name=text, is_error=False, content=text),
        ToolCall(ts=TS, tool_call_id="2", tool_name="read", args={"path": text}),
        Notice(ts=TS, level="warning", text=text),
        ErrorReported(ts=TS, message=text),
        task=text,
    )
    outside = outside_fences(shown)
    assert [line for line in outside.split("\n") if line.startswith("#")][1:] == ["## Task", "## Transcript"]
    assert "<script>" not in "\n".join(line for line in outside.split("\n") if not line.startswith(">"))
    assert not [char for char in shown if char != "\n" and (ord(char) < 32 or 0x7F <= ord(char) < 0xA0)]


def test_a_fence_is_longer_than_any_in_it() -> None:
    """A fence within a text does not end the fence around it."""
    assert fenced("a\n`````\nb").startswith("``````text\n")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("plain", "plain"),
        ("```py\nx = 1\n```", "```py\nx = 1\n```"),
        ("```py\nx = 1", "```py\nx = 1\n```"),
        ("````\n```\n", "````\n```\n\n````"),
        ("~~~\n```", "~~~\n```\n~~~"),
        ("```not a fence``` here", "```not a fence``` here"),
    ],
)
def test_what_a_child_leaves_open_is_closed(text: str, expected: str) -> None:
    """An answer that was cut within a fence does not swallow the text after it."""
    assert expected == closed(text)


def test_a_running_run_says_so() -> None:
    """The document of an unfinished run notes that the run was still running."""
    assert document(status="running").endswith("*The run was running when this was written.*\n")


def test_events_are_streamed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """All events of a large file are streamed, also after a stretch without events."""
    from subdeck.core.run import markdown as transcript_markdown

    monkeypatch.setattr(transcript_markdown, "PIECE", 1000)
    line = encode_event(AssistantText(text="x" * 100))
    (tmp_path / "e").write_bytes(line * 3000 + b"garbage\n" * 100_000 + line)
    document = "".join(run_markdown(make_snapshot(), EventTail(str(tmp_path / "e")), None))
    assert 3001 == document.count("x" * 100)
    assert document.endswith("*100000 lines of events.jsonl cannot be read.*\n")
