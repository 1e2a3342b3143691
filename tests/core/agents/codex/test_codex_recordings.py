"""Every recorded stream of a real Codex, of both kinds, replays to its correct outcome."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from subdeck.core.agents.codex._exec_run import ExecStream
from subdeck.core.agents.codex._items import Tokens
from subdeck.core.agents.codex._stream import CodexStream
from subdeck.core.agents.codex.child import CHILD
from subdeck.core.agents.loader import recorded_kind
from subdeck.core.run.events import AssistantText, Event, Notice, Retry, Thinking, ToolCall, ToolResult, UsageReported
from subdeck.core.run.model import Usage
from subdeck.core.wrapper.replay import replay

from tests.core.command_line import subdeck
from tests.replay import RECORDINGS

CODEX = RECORDINGS / "codex"
TOO_MANY = "exceeded retry limit, last status: 429 Too Many Requests"
EXPECTED: dict[str, tuple[str, str, str]] = {
    "api-400": ("failed", "model_error", "too many things"),
    "api-429-final": ("failed", "model_error", TOO_MANY),
    "app-ask-accept": ("completed", "done", "Done."),
    # Interrupted by the recorder. In a real run, the stop request would be the reason.
    "app-interrupt": ("aborted", "interrupted", "the agent was interrupted"),
    "app-steer": ("completed", "done", "Counted, and bananas."),
    "app-text": ("completed", "done", "The shop needs one variable."),
    "apply-patch": ("completed", "done", "Patched."),
    "exec": ("completed", "done", "It needs SHOP_TOKEN."),
    "exec-fail": ("completed", "done", "It failed."),
    "read-only-write": ("completed", "done", "I could not write."),
    "reconnects": ("completed", "done", "The whole answer."),
    "resume-1": ("completed", "done", "The word is kiwi."),
    "resume-2": ("completed", "done", "You told me kiwi."),
    "sigint-in-exec": ("failed", "agent_exit", "the agent exited with code 1 before it finished"),
    "sigterm-in-exec": ("failed", "agent_exit", "the agent was killed by SIGTERM before it finished"),
    "text-reasoning": ("completed", "done", "The shop needs one variable, SHOP_TOKEN."),
}


def lines_of(case: str) -> list[bytes]:
    return (CODEX / case / "stdout.jsonl").read_bytes().removesuffix(b"\n").split(b"\n")


def returncode_of(case: str) -> int:
    found = re.match(r"rc=(-?\d+)", (CODEX / case / "exit.txt").read_text())
    assert found
    return int(found[1])


def events_of(case: str, stream: CodexStream | None = None) -> list[Event]:
    reader = stream or CHILD.stream()
    return [event for line in lines_of(case) for event in reader.feed(line)] + reader.end()


def only(kind: type, case: str) -> list:
    return [event for event in events_of(case) if isinstance(event, kind)]


def test_every_recording_is_expected() -> None:
    """Every recording has an expected outcome."""
    assert sorted(EXPECTED) == sorted(directory.name for directory in CODEX.iterdir())


@pytest.mark.parametrize("case", EXPECTED)
def test_recording_becomes_a_run(case: str, tmp_path: Path) -> None:
    """Each recording is recognized as Codex's by its first lines, and leaves a run directory like that of a
    live run.
    """
    assert "codex" == recorded_kind(lines_of(case)[:20])
    files = CODEX / case
    result = replay(
        str(files / "stdout.jsonl"),
        str(tmp_path),
        stderr=str(files / "stderr.txt"),
        returncode=returncode_of(case),
    )
    status, reason, said = EXPECTED[case]
    assert (status, reason) == (result.status, result.reason), result.error_message
    assert said == (result.error_message or result.final_text)
    run_dir = tmp_path / result.run_id
    events = [json.loads(line) for line in (run_dir / "events.jsonl").read_bytes().splitlines()]
    assert ("run_ended", status, reason) == tuple(events[-1][key] for key in ("type", "status", "reason"))
    assert len(events_of(case)) + 1 == len(events)
    kept = (run_dir / "stdout.log").read_bytes()
    assert b"/delta" not in kept and b"Delta" not in kept


@pytest.mark.processes
def test_cli_replays(project_dir: Path) -> None:
    """`replay` recognizes the agent of a recording."""
    shown = subdeck("replay", str(CODEX / "app-text" / "stdout.jsonl"), cwd=project_dir)
    assert (0, "The shop needs one variable.\n") == (shown.code, shown.out)


def test_a_command_and_its_failure() -> None:
    """A command is shown as the model wrote it, with its output and exit code."""
    for case in ("exec-fail", "read-only-write"):
        (call,), (result,) = only(ToolCall, case), only(ToolResult, case)
        assert ("bash", "bash", call.tool_call_id) == (call.tool_name, result.tool_name, result.tool_call_id)
        assert result.is_error
    (call,), (result,) = only(ToolCall, "exec-fail"), only(ToolResult, "exec-fail")
    assert {"command": "echo out; echo err >&2; exit 3"} == call.args
    assert ("out\nerr\n", 3) == (result.content, result.exit_code)


def test_a_patch() -> None:
    """A patch is an edit that names its files."""
    (call,), (result,) = only(ToolCall, "apply-patch"), only(ToolResult, "apply-patch")
    assert ("edit", "/srv/shop/README.md, /srv/shop/notes.txt") == (call.tool_name, call.args["path"])
    assert ["update", "add"] == [change["kind"] for change in call.args["changes"]]
    assert not result.is_error


def test_thinking_and_tokens() -> None:
    """Both streams have the model's reasoning summary, and count cached input separately."""
    for case in ("text-reasoning", "app-text"):
        assert ["A short answer will do."] == [event.text for event in only(Thinking, case)]
        (usage,) = only(UsageReported, case)
        assert (1450, 3400, 87) == (usage.input, usage.cache_read, usage.output)


def test_a_dropped_connection_is_a_retry() -> None:
    """The text before the drop stays in the log, and the last message is the answer."""
    assert ["It begins and", "The whole answer."] == [event.text for event in only(AssistantText, "reconnects")]
    (retry,) = only(Retry, "reconnects")
    assert (1, 1) == (retry.attempt, retry.max_attempts)
    assert retry.reason.startswith("stream disconnected before completion")


def test_a_warning_of_codex_is_no_end() -> None:
    """An `error` item and a `warning` are notices."""
    for case in ("exec", "app-text"):
        assert "Model metadata for `mock-model` not found" in only(Notice, case)[-1].text


def test_usage_of_a_resumed_run_alone() -> None:
    """`codex exec` counts the whole conversation, so the earlier usage is subtracted."""
    stream = ExecStream(earlier=Tokens(input=4850, cached=3400, output=87))
    events_of("resume-2", stream)
    assert Usage(input=1450, output=87, cache_read=3400, turns=1, unpriced=4937) == stream.facts.usage


def test_usage_by_turn() -> None:
    """The app-server reports the tokens of each message, and a message with a tool call wants another turn."""
    assert ["toolUse", "stop"] == [event.stop_reason for event in only(UsageReported, "app-steer")]


def test_where_the_conversation_lies() -> None:
    """The app-server reports the file of the conversation, and `exec` only its id."""
    stream = CHILD.stream()
    for line in lines_of("app-text"):
        stream.feed(line)
    assert "01a2019b-6975-7ac0-99c2-350d64d373cf" == stream.facts.session_id
    assert "mock/mock-model" == stream.facts.model
    assert stream.facts.conversation and stream.facts.conversation.startswith("/srv/home/.codex/sessions/2026/11/22/")


def test_the_sentence_is_seen_while_it_is_written() -> None:
    """Deltas are the text being written, until the complete message replaces them."""
    stream = CHILD.stream()
    seen: set[str] = set()
    for line in lines_of("app-text"):
        stream.feed(line)
        seen.add(stream.writing.tail)
    assert {"", "The shop nee", "The shop needs one varia", "The shop needs one variable."} == seen
    assert "" == stream.writing.tail
