"""The agents' interactive programs: their command lines, and the text read from their conversations."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from subdeck.core.agent_kinds import KINDS, is_interactive
from subdeck.core.agents.child import Start
from subdeck.core.agents.loader import interactive_side
from subdeck.core.cli.open import open as open_run
from subdeck.core.errors import LaunchError
from subdeck.core.run.model import AgentSession, Permissions, ToolPolicy, Tools

from tests.factories import make_meta

LISTED = Tools(ToolPolicy.ALLOW, ("bash", "read"))


def started(tmp_path: Path, kind: str, session: str | None = "0198-4a", **meta: Any) -> tuple[str, ...]:
    """Return the arguments after the program."""
    program = interactive_side(kind)
    assert program is not None
    (tmp_path / "prompt.md").write_text("Look.")
    where = {"session_path": "child-session.jsonl"} if kind == "pi" else {"agent_session": AgentSession()}
    start = Start(
        make_meta(agent=kind, agent_command=("program",), tools=LISTED, **where, **meta), str(tmp_path), 1, session
    )
    return program.command(start).argv[1:]


@pytest.mark.parametrize("talk", [False, True])
def test_the_same_model_and_tools(tmp_path: Path, talk: bool) -> None:
    """It gets the run's model, tools and conversation, without flags for non-interactive use."""
    words = started(tmp_path, "pi", talk=talk, resolved_model="fake/test")
    assert ("--model", "fake/test", "--session", str(tmp_path / "child-session.jsonl")) == words[:4]
    assert "--mode" not in words
    words = started(tmp_path, "claude", talk=talk, resolved_model="anthropic/sonnet")
    assert ("--model", "sonnet", "--resume", "0198-4a", "--tools", "Bash,Read", "--allowedTools", "Bash,Read") == words[
        1:
    ]
    words = started(tmp_path, "codex", talk=talk, resolved_model="openai/mock")
    assert ("resume", "-s", "workspace-write", "-m", "mock") == words[:5]
    assert "0198-4a" == words[-1]


def test_rules_are_asked_about(tmp_path: Path) -> None:
    """If rules ask or deny, nothing is allowed in advance, and the interactive program asks."""
    words = started(tmp_path, "claude", talk=True, permissions=Permissions(ask=("bash",)))
    assert "--allowedTools" not in words


def test_no_conversation_yet(tmp_path: Path) -> None:
    """Codex assigns the ids of conversations, so one without an id cannot be opened."""
    with pytest.raises(LaunchError, match="had not begun a conversation"):
        started(tmp_path, "codex", None)


@pytest.mark.parametrize("kind", [*filter(is_interactive, KINDS)])
@pytest.mark.parametrize(
    "line", ["", "{", "[]", '{"type":7,"message":[],"payload":"x"}', '{"type":"message","message":{}}']
)
def test_lines_that_say_nothing(kind: str, line: str) -> None:
    """Reading a malformed conversation neither fails nor invents events."""
    program = interactive_side(kind)
    assert program is not None
    said = program.read([line.encode(), b"\xff\xfe", json.dumps({"payload": {"type": "item_completed"}}).encode()], "x")
    assert ((), False) == (said.events, said.facts.finished)


def test_the_help_names_all_of_them() -> None:
    """`subdeck open --help` lists the agents with a UI as the table does."""
    titles = [kind.title for kind in KINDS.values() if kind.interactive]
    assert f"Works for {', '.join(titles[:-1])} and {titles[-1]}." in " ".join((open_run.help or "").split())
