"""Runs of pi with a scripted model."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace
from subdeck.core.agents.child import Command, Start
from subdeck.core.agents.pi.program import child_command, find_pi
from subdeck.core.agents.pi.rpc_stream import RpcStream
from subdeck.core.agents.pi.stream import PiStream
from subdeck.core.engine import Engine
from subdeck.core.run.events import AssistantText, ToolResult
from subdeck.core.run.model import LaunchedBy, RunMeta, Tools
from subdeck.core.run.outcome import ChildExit, Outcome, decide

from tests.factories import result_of, run_to_end, write_settings
from tests.fake_llm import FakeLLM
from tests.house.set_up import NEW_PI_VERSION
from tests.replay import feed

from .real_pi import EITHER_PI

pytestmark = pytest.mark.pi

INITIATOR = "PI_SUBAGENTS_GITHUB_COPILOT_INITIATOR"
SCENARIO = {
    "turns": [
        {"steps": [{"text": "Let me look."}, {"tool_calls": [{"name": "read", "arguments": {"path": "notes.md"}}]}]},
        {"steps": [{"text": "Seen."}]},
    ]
}


@dataclass
class Lab:
    """A pi with one provider of its own and the built-in GitHub Copilot, both answered by one loopback server."""

    root: Path
    pi: str

    def meta(self, model: str) -> RunMeta:
        return RunMeta(
            run_id="20261121-120000-abcdef",
            task="",
            cwd=str(self.root),
            agent="pi",
            agent_command=find_pi((self.pi,)),
            runner="process",
            created_at="",
            launched_by=LaunchedBy(session="operator", kind="cli"),
            resolved_model=model,
            session_path=str(self.root / "child-session.jsonl"),
            tools=Tools(policy="allow", resolved=("read",)),
            talk=True,
        )

    def run(self, meta: RunMeta, task: str = "- @look at it") -> tuple[PiStream, list[Any], Outcome]:
        """Run one child as the wrapper would, the launcher having the initiator already."""
        (self.root / "prompt.md").write_text(task)
        command = child_command(meta, str(self.root))
        stream, events = RpcStream(Start(meta, str(self.root))), []
        with subprocess.Popen(
            command.argv,
            env=environment(command, os.environ | {INITIATOR: "agent"}),
            cwd=meta.cwd,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        ) as child:
            assert child.stdin
            assert child.stdout
            assert child.stderr
            try:
                child.stdin.write(stream.replies())
                child.stdin.flush()
                for line in child.stdout:
                    events += feed(stream, [line.removesuffix(b"\n")])
                    child.stdin.write(stream.replies())
                    child.stdin.flush()
                    if stream.is_stdin_done:
                        break
            except BrokenPipeError:
                pass  # it has ended by itself
            _, complaint = child.communicate(timeout=60)
        return stream, events, decide(stream.facts, exit=ChildExit.of(child.returncode), stderr=complaint.decode())

    @property
    def requests(self) -> list[dict[str, Any]]:
        """What the model server was asked, oldest first."""
        log = (self.root / "requests.jsonl").read_text().splitlines()
        return [record for record in map(json.loads, log) if record["event"] == "request"]


def environment(command: Command, inherited: dict[str, str]) -> dict[str, str]:
    kept = {name: value for name, value in inherited.items() if name not in command.unset}
    return kept | command.env


@pytest.fixture
def lab(world: Path, tmp_path: Path, pi_executable: str) -> Iterator[Lab]:
    agent_dir = Path(os.environ["PI_CODING_AGENT_DIR"])
    agent_dir.mkdir(parents=True, exist_ok=True)
    (tmp_path / "notes.md").write_text("a note\n")
    with FakeLLM(SCENARIO, log_path=str(tmp_path / "requests.jsonl")) as server:
        fake = {"api": "openai-completions", "apiKey": "sk-fake", "models": [{"id": "test"}]}
        providers = {"fake": {"baseUrl": server.base_url, **fake}, "github-copilot": {"baseUrl": server.base_url}}
        (agent_dir / "models.json").write_text(json.dumps({"providers": providers}))
        (agent_dir / "auth.json").write_text(json.dumps({"github-copilot": {"type": "api_key", "key": "sk-copilot"}}))
        yield Lab(tmp_path, pi_executable)


@EITHER_PI
def test_a_run(lab: Lab) -> None:
    """A task that starts with a dash and an at sign works, with a tool call and an answer."""
    stream, events, outcome = lab.run(lab.meta("fake/test"))
    assert ("completed", "done", 0) == (outcome.status, outcome.reason, outcome.exit_code), outcome.message
    assert ["Let me look.", "Seen."] == [event.text for event in events if isinstance(event, AssistantText)]
    (result,) = [event for event in events if isinstance(event, ToolResult)]
    assert ("read", "a note\n") == (result.tool_name, result.content)
    assert ("fake/test", 2, 1) == (stream.facts.model, stream.facts.usage.turns, stream.facts.usage.tool_uses)
    task = [message for message in lab.requests[0]["body"]["messages"] if message["role"] == "user"]
    assert "- @look at it" in json.dumps(task)
    assert {"read"} == {tool["function"]["name"] for tool in lab.requests[0]["body"]["tools"]}
    assert (lab.root / "child-session.jsonl").exists()


@EITHER_PI
def test_system_prompt(lab: Lab) -> None:
    """A preset's prompt reaches the model, added to pi's own system prompt or instead of it."""
    (lab.root / "system-prompt.md").write_text("You are a careful reader.")
    (lab.root / "AGENTS.md").write_text("Context of the project.")
    appended = replace(lab.meta("fake/test"), system_prompt_path=str(lab.root / "system-prompt.md"), session_path=None)
    lab.run(appended)
    lab.run(replace(appended, prompt_mode="replace"), task="again")
    first, second = (json.dumps(lab.requests[number]["body"]["messages"][0]) for number in (0, 2))
    assert "You are a careful reader." in first
    assert "Context of the project." in first
    assert "You are a careful reader." in second
    assert "Context of the project." not in second
    assert len(second) < len(first)


@EITHER_PI
def test_copilot_header(lab: Lab) -> None:
    """With a GitHub Copilot model, every request has the header that marks it as sent by an agent."""
    _, _, outcome = lab.run(lab.meta("github-copilot/gpt-4.1"))
    assert "done" == outcome.reason, outcome.message
    assert ["agent", "agent"] == [request["headers"].get("x-initiator") for request in lab.requests]


@EITHER_PI
def test_other_providers_have_no_copilot_header(lab: Lab) -> None:
    """Other providers never get the GitHub Copilot header, even if your environment asks for it."""
    lab.run(lab.meta("fake/test"))
    assert [None, None] == [request["headers"].get("x-initiator") for request in lab.requests]


@EITHER_PI
def test_unknown_provider(lab: Lab) -> None:
    """An unknown provider fails the run with pi's own error message."""
    _, _, outcome = lab.run(lab.meta("nowhere/model"))
    assert ("failed", "agent_exit", 1) == (outcome.status, outcome.reason, outcome.exit_code)
    assert 'Model "nowhere/model" not found' in (outcome.message or "")


@pytest.mark.parametrize("pi_executable", [NEW_PI_VERSION], indirect=True)
def test_a_node_that_is_too_old(lab: Lab, tmp_path: Path) -> None:
    """If Node.js is too old, the error names the version that pi needs."""
    old = tmp_path / "node"
    old.write_text(
        "#!/bin/sh\necho 'SyntaxError: no export named x' >&2\necho >&2\necho 'Node.js v20.20.2' >&2\nexit 1\n"
    )
    old.chmod(0o755)
    write_settings(agents={"pi": {"command": [str(old), lab.pi]}}, agent="pi", default_model="fake/test")
    engine = Engine.open(str(tmp_path))
    ended = run_to_end(engine, "look")
    expected = "pi 1.5.2 requires node 22.19.0 or newer, but this is 20.20.2"
    assert f"the agent exited with code 1 before it finished: {expected}" == result_of(engine, ended).error_message
