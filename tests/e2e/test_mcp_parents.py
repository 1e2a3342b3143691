"""Claude Code and Codex as parents, with the entry that `subdeck connect` writes."""

from __future__ import annotations

import json
import os
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
from subdeck.core.engine import Engine

from tests.core.command_line import SUBDECK
from tests.core.mcp.mcp_client import make_project
from tests.real.model_server import ModelServer, said
from tests.real.programs import CLAUDE, CODEX

pytestmark = [pytest.mark.agents, pytest.mark.timeout(300)]

LIMIT = 120
"""Seconds for one program."""

TOOLS = "mcp__subdeck__subagent,mcp__subdeck__background_agent,mcp__subdeck__background_agent_status"

END = "# what follows is not the test's own\n"


class Parent:
    """One of the two programs; it gets a line, and follows the script."""

    def __init__(self, name: str, program: str, project: Path, home: Path) -> None:
        self.name = name
        self._program = program
        self._project = project
        self._home = home
        self.mcp("install")

    def mcp(self, *words: str) -> None:
        """Write the entry, or remove it."""
        argv = [*SUBDECK, "mcp", *words, self.name]
        done = subprocess.run(argv, cwd=self._project, capture_output=True, text=True)
        assert 0 == done.returncode, done.stderr

    def ask(self, line: str, *calls: tuple[str, dict[str, Any]]) -> list[str]:
        """Give it a line, let its model call subdeck's tools one after the other; return the results that the model
        reads.
        """
        turns = [
            {"when": {"tools": True, "once": True}, "steps": [{"tool_calls": [self._call(*call)]}]} for call in calls
        ]
        with ModelServer(*turns, said("done")) as model:
            command, environment = self._claude(model.url) if self.name == "claude" else self._codex(model.url)
            done = subprocess.run(
                command,
                cwd=self._project,
                env={**os.environ, **environment},
                input=line,
                capture_output=True,
                text=True,
                timeout=LIMIT,
            )
        assert 0 == done.returncode, (done.stdout[-2000:], done.stderr)
        self._requests = [asked.body for asked in model.requests]
        return [json.dumps(request["messages" if self.name == "claude" else "input"][-1]) for request in self._requests]

    def offered(self, line: str) -> str:
        """Give it a line; return the tools of its first request."""
        self.ask(line)
        return json.dumps(self._requests[0].get("tools"))

    def _call(self, tool: str, arguments: dict[str, Any]) -> dict[str, Any]:
        if self.name == "claude":
            return {"name": f"mcp__subdeck__{tool}", "arguments": arguments}
        return {"name": tool, "namespace": "mcp__subdeck", "arguments": arguments}

    def _claude(self, url: str) -> tuple[list[str], dict[str, str]]:
        words = [
            "-p",
            "--output-format",
            "stream-json",
            "--verbose",
            "--model",
            "claude-sonnet-4-5",
            "--allowedTools",
            TOOLS,
        ]
        return [self._program, *words], CLAUDE.configure(self._home, url)

    def _codex(self, url: str) -> tuple[list[str], dict[str, str]]:
        config = self._home / ".codex" / "config.toml"
        written = config.read_text() if config.exists() else ""
        entry = written.partition(END)[2] if END in written else written
        trusted = f'[projects."{self._project}"]\ntrust_level = "trusted"\n'
        environment = CODEX.configure(self._home, url, tables=f"{trusted}{END}{entry}", key="OPENAI_API_KEY")
        words = ["exec", "--json", "--skip-git-repo-check", "-s", "read-only", "-"]
        return [self._program, *words], environment


REMINDER = re.compile("<system-reminder>.*?</system-reminder>")
"""A parent may add its own words to a tool's result."""


@pytest.fixture(params=["claude", "codex"])
def parent(request: pytest.FixtureRequest, project_dir: Path, home: Path) -> Parent:
    program = request.getfixturevalue(f"{request.param}_executable")
    return Parent(request.param, program, make_project(project_dir), home)


def test_a_parent_delegates(parent: Parent, project_dir: Path) -> None:
    """The tools are in the first request. The model reads the answer of a run, and the task of a background run."""
    task = {"preset": "scout", "task": "touch begun\nanswer it is in a.py"}
    *_, read, started = parent.ask("go on", ("subagent", task), ("background_agent", task))
    assert "it is in a.py" in read
    assert "begun" not in read
    assert "begun" in started
    assert len(REMINDER.sub("", read)) < 250 * 4
    engine = Engine.open(str(project_dir))
    runs = engine.wait([run.run_id for run in engine.snapshots()], timeout=60)
    assert {("mcp", "done")} == {(run.meta.launched_by.kind, run.reason) for run in runs}
    assert {True, False} == {run.meta.background for run in runs}
    assert all(any(run.run_id in text for run in runs) for text in (read, started))


@pytest.mark.lane
def test_a_child_has_the_keys_of_its_parent(parent: Parent, project_dir: Path) -> None:
    """Subagents get the API keys of the parent, also those in environment variables."""
    name = "ANTHROPIC_API_KEY" if parent.name == "claude" else "OPENAI_API_KEY"
    parent.ask("go on", ("subagent", {"preset": "scout", "task": f"bash printenv {name} > key\nanswer done"}))
    assert "sk-fake\n" == (project_dir / "key").read_text()


@pytest.mark.lane
def test_the_entry_of_a_project(parent: Parent) -> None:
    """The entry in a project works if you trust the project. Without the entry, the tools are missing."""
    parent.mcp("uninstall")
    parent.mcp("install", "--project")
    *_, read = parent.ask("go on", ("subagent", {"preset": "scout", "task": "answer it is in a.py"}))
    assert "it is in a.py" in read
    parent.mcp("uninstall", "--project")
    assert "mcp__subdeck" not in parent.offered("go on")


@pytest.mark.lane
def test_an_error_is_read_once(parent: Parent) -> None:
    """The model reads the error of a run or of a call exactly once."""
    failing = {"preset": "scout", "task": "error quota-is-used-up\nfinish"}
    *_, failed, refused = parent.ask("go on", ("subagent", failing), ("subagent", {"preset": "scuot", "task": "x"}))
    assert 1 == failed.count("quota-is-used-up"), failed
    assert 1 == refused.count("did you mean"), refused


@pytest.mark.lane
def test_a_long_answer_is_within_the_limit(parent: Parent) -> None:
    """The client shows a long answer to its model uncut, and the model knows where the complete answer is."""
    *_, read = parent.ask("go on", ("subagent", {"preset": "scout", "task": "say-big 200000\nfinish"}))
    assert "the whole answer is in" in read
    assert "/answer.md]" in read
    assert "exceeds maximum" not in read
    assert "persisted-output" not in read
    assert "tokens truncated" not in read


@pytest.mark.lane
def test_a_prompt_takes_the_whole_line(request: pytest.FixtureRequest, project_dir: Path, home: Path) -> None:
    """Claude Code's model reads everything that you typed after a preset's command."""
    program = request.getfixturevalue("claude_executable")
    parent = Parent("claude", program, make_project(project_dir), home)
    (read,) = parent.ask("/mcp__subdeck__scout find the place where users are authenticated")
    assert "<command-args>find the place where users are authenticated</command-args>" in read
    assert "subagent with preset scout for the task that I typed" in read
