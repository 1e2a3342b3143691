"""Hostile agent output never reaches a terminal raw, and never ends a run wrongly."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from subdeck.core import paths
from subdeck.core.agents.loader import recorded_kind
from subdeck.core.cli import output
from subdeck.core.cli.main import main
from subdeck.core.run.model import RunResult
from subdeck.core.wrapper._intake import LINE_LIMIT
from subdeck.core.wrapper.replay import replay

from tests.hostile import EVIL, IN_JSON, controls, planted
from tests.replay import RECORDINGS

pytestmark = pytest.mark.fuzz

PLACES = ("0.73.1", "1.5.2", "agents/claude-code", "codex", "acp/claude", "acp/codex")
CASES = sorted(
    str(file.parent.relative_to(RECORDINGS))
    for place in PLACES
    for file in (RECORDINGS / place).glob("*/stdout.jsonl")
    if file.stat().st_size < 200_000
)
FEW = (
    "0.73.1/a_text",
    "1.5.2/a_text",
    "agents/claude-code/bash-fail",
    "codex/app-steer",
    "codex/exec",
    "acp/codex/bash-fail",
)

GRAMMAR = frozenset(
    {
        *("type", "subtype", "method", "jsonrpc", "status", "sessionUpdate", "stopReason", "stop_reason", "role"),
        *("terminal_reason", "kind", "name", "toolName", "optionId", "outcome"),
    }
)
"""Fields that decide what a line means; the text of a model or a tool is in other fields."""


def lines_of(case: str) -> list[bytes]:
    return (RECORDINGS / case / "stdout.jsonl").read_bytes().removesuffix(b"\n").split(b"\n")


def evil_lines(case: str) -> list[bytes]:
    """Return the lines with hostile text in every field outside the grammar."""
    hostile = (planted(json.loads(line), GRAMMAR) for line in lines_of(case) if line)
    return [json.dumps(line, separators=(",", ":")).encode() for line in hostile]


def replayed(tmp_path: Path, case: str, lines: list[bytes], stderr: bytes = b"") -> tuple[RunResult, Path]:
    """Replay these lines as a run whose pane shows plain text; return its result and directory."""
    recording, complaints, shown = tmp_path / "stdout.jsonl", tmp_path / "stderr.txt", []
    recording.write_bytes(b"\n".join(lines) + b"\n")
    complaints.write_bytes(stderr)
    kind = recorded_kind(lines_of(case)[:20])
    result = replay(str(recording), str(tmp_path), agent=kind, stderr=str(complaints), returncode=1, show=shown.append)
    run_dir = tmp_path / result.run_id
    pane = b"".join(shown).decode()
    assert pane == (run_dir / paths.TRANSCRIPT).read_text()
    assert [] == controls(pane)
    assert [] == controls(result.error_message or "")
    return result, run_dir


@pytest.mark.parametrize("case", CASES)
def test_text_that_would_command_a_terminal(tmp_path: Path, case: str) -> None:
    """Hostile text in any field of any agent's line is shown plain, and the run ends the same way."""
    evil = evil_lines(case)
    stderr = f"{EVIL}\nError: {EVIL}\n".encode("utf-8", "replace")
    result, _ = replayed(tmp_path, case, evil, stderr)
    before = replay(str(RECORDINGS / case / "stdout.jsonl"), str(tmp_path), returncode=1)
    assert (before.status, before.reason) == (result.status, result.reason), result.error_message
    if before.final_text:
        assert IN_JSON in (result.final_text or "")


@pytest.mark.parametrize("case", FEW)
def test_the_commands_show_it_plain(
    tmp_path: Path, case: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """`replay` prints the transcript and the answer of a hostile stream as plain text."""
    recording = tmp_path / "stdout.jsonl"
    recording.write_bytes(b"\n".join(evil_lines(case)) + b"\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(output, "is_terminal", lambda _: True)
    for words in (["replay", str(recording)], ["replay", str(recording), "--json"]):
        main(lambda *_: 0, words)
        shown = capsys.readouterr()
        assert ([], []) == (controls(shown.out), controls(shown.err)), words
        assert "PWN" in shown.out


def _nul(lines: list[bytes]) -> Iterator[bytes]:
    for line in lines:
        yield from (line, b"\0" * 100, b'{"type":"\0"}')


def _invalid(lines: list[bytes]) -> Iterator[bytes]:
    for line in lines:
        yield from (line, b"\xff\xfe\x80 \x1b]0;PWN\x07", b'{"type":"result","result":"\xff\xc0\x80"')


def _halves(lines: list[bytes]) -> Iterator[bytes]:
    for line in lines:
        yield from (line, b'{"type":"\\ud800","method":"\\udc00/x","session_id":"\\ud800"}')


def _deep(lines: list[bytes]) -> Iterator[bytes]:
    yield from lines[:-1]
    yield b'{"type":"user","method":"item/started","params":' + b"[" * 100_000
    yield lines[-1]


def _huge(lines: list[bytes]) -> Iterator[bytes]:
    yield from lines[:-1]
    yield b'{"type":"no_such","method":"no/such","text":"' + b"x" * (LINE_LIMIT + 1000) + b'"}'
    yield lines[-1]


@pytest.mark.parametrize("case", FEW)
@pytest.mark.parametrize("between", [_nul, _invalid, _halves, _deep, _huge])
def test_bytes_that_are_no_line(tmp_path: Path, case: str, between: Callable[[list[bytes]], Iterator[bytes]]) -> None:
    """NULs, invalid UTF-8, lone surrogates, deep nesting and long lines between events do not change the outcome."""
    result, run_dir = replayed(tmp_path, case, list(between(lines_of(case))))
    before = replay(str(RECORDINGS / case / "stdout.jsonl"), str(tmp_path), returncode=1)
    assert (before.status, before.final_text) == (result.status, result.final_text)
    for line in (run_dir / paths.EVENTS).read_bytes().splitlines():
        event: dict[str, Any] = json.loads(line)
        assert [] == controls(event.get("text", "")) or "notice" != event["type"]
