"""Runs of pi with a scripted model."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace
from subdeck.core.agents.child import Command, Start
from subdeck.core.agents.pi.conversation import PiConversation
from subdeck.core.agents.pi.program import child_command, find_pi
from subdeck.core.agents.pi.stream import PiStream
from subdeck.core.run.events import AssistantText, ToolResult
from subdeck.core.run.model import LaunchedBy, RunMeta, Tools
from subdeck.core.run.outcome import ChildExit, Outcome, decide

from tests.factories import result_of, run_to_end
from tests.house.set_up import NEW_PI_VERSION
from tests.real.lab import EITHER_PI, Lab
from tests.real.model_server import called, offered, said
from tests.replay import feed

pytestmark = pytest.mark.pi

INITIATOR = "PI_SUBAGENTS_GITHUB_COPILOT_INITIATOR"


@pytest.fixture
def pi(pi: Lab) -> Lab:
    """A pi with its own provider and the built-in GitHub Copilot, both answered by one server."""
    (pi.project / "notes.md").write_text("a note\n")
    pi.configure(copilot=True)
    looking = called(("read", {"path": "notes.md"}), text="Let me look.")
    pi.script(looking, said("Seen."), is_each_from_the_start=True)
    return pi


def meta_of(pi: Lab, model: str) -> RunMeta:
    return RunMeta(
        run_id="20261121-120000-abcdef",
        task="",
        cwd=str(pi.project),
        agent="pi",
        agent_command=find_pi((pi.program,)),
        runner="process",
        created_at="",
        launched_by=LaunchedBy(session="operator", kind="cli"),
        resolved_model=model,
        session_path=str(pi.project / "child-session.jsonl"),
        tools=Tools(policy="allow", resolved=("read",)),
        talk=True,
    )


def run(meta: RunMeta, task: str = "- @look at it") -> tuple[PiStream, list[Any], Outcome]:
    """Run one agent like the wrapper, with an inherited initiator."""
    Path(meta.cwd, "prompt.md").write_text(task)
    command = child_command(meta, meta.cwd)
    stream, events = PiConversation(Start(meta, meta.cwd)), []
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
            pass  # it has already ended
        _, complaint = child.communicate(timeout=60)
    return stream, events, decide(stream.facts, exit=ChildExit.of(child.returncode), stderr=complaint.decode())


def environment(command: Command, inherited: dict[str, str]) -> dict[str, str]:
    kept = {name: value for name, value in inherited.items() if name not in command.unset}
    return kept | command.env


@EITHER_PI
def test_a_run(pi: Lab) -> None:
    """A task that starts with a dash and an at sign works, with a tool call and an answer."""
    stream, events, outcome = run(meta_of(pi, "fake/test"))
    assert ("completed", "done", 0) == (outcome.status, outcome.reason, outcome.exit_code), outcome.message
    assert ["Let me look.", "Seen."] == [event.text for event in events if isinstance(event, AssistantText)]
    (result,) = [event for event in events if isinstance(event, ToolResult)]
    assert ("read", "a note\n") == (result.tool_name, result.content)
    assert ("fake/test", 2, 1) == (stream.facts.model, stream.facts.usage.turns, stream.facts.usage.tool_uses)
    task = [message for message in pi.requests[0]["messages"] if message["role"] == "user"]
    assert "- @look at it" in json.dumps(task)
    assert {"read"} == offered(pi.requests[0])
    assert (pi.project / "child-session.jsonl").exists()


@EITHER_PI
def test_system_prompt(pi: Lab) -> None:
    """A preset's prompt reaches the model, added to pi's own system prompt or instead of it."""
    prompt = pi.project / "system-prompt.md"
    prompt.write_text("You are a careful reader.")
    (pi.project / "AGENTS.md").write_text("Context of the project.")
    appended = replace(meta_of(pi, "fake/test"), system_prompt_path=str(prompt), session_path=None)
    run(appended)
    run(replace(appended, prompt_mode="replace"), task="again")
    first, second = (json.dumps(pi.requests[number]["messages"][0]) for number in (0, 2))
    assert "You are a careful reader." in first
    assert "Context of the project." in first
    assert "You are a careful reader." in second
    assert "Context of the project." not in second
    assert len(second) < len(first)


@EITHER_PI
def test_copilot_header(pi: Lab) -> None:
    """With a GitHub Copilot model, every request has the header that marks it as sent by an agent."""
    _, _, outcome = run(meta_of(pi, "github-copilot/gpt-4.1"))
    assert "done" == outcome.reason, outcome.message
    assert ["agent", "agent"] == [asked.headers.get("x-initiator") for asked in pi.model.requests]


@EITHER_PI
def test_other_providers_have_no_copilot_header(pi: Lab) -> None:
    """Other providers never get the GitHub Copilot header, even if your environment asks for it."""
    run(meta_of(pi, "fake/test"))
    assert [None, None] == [asked.headers.get("x-initiator") for asked in pi.model.requests]


@EITHER_PI
def test_unknown_provider(pi: Lab) -> None:
    """An unknown provider fails the run with pi's own error message."""
    _, _, outcome = run(meta_of(pi, "nowhere/model"))
    assert ("failed", "agent_exit", 1) == (outcome.status, outcome.reason, outcome.exit_code)
    assert 'Model "nowhere/model" not found' in (outcome.message or "")


@pytest.mark.parametrize("pi_executable", [NEW_PI_VERSION], indirect=True)
def test_a_node_that_is_too_old(pi: Lab, tmp_path: Path) -> None:
    """If Node.js is too old, the error names the version that pi needs."""
    old = tmp_path / "node"
    old.write_text(
        "#!/bin/sh\necho 'SyntaxError: no export named x' >&2\necho >&2\necho 'Node.js v20.20.2' >&2\nexit 1\n"
    )
    old.chmod(0o755)
    pi.command(str(old), pi.program, default_model="fake/test")
    ended = run_to_end(pi.engine, "look")
    expected = "pi 1.5.2 requires node 22.19.0 or newer, but this is 20.20.2"
    assert f"the agent exited with code 1 before it finished: {expected}" == result_of(pi.engine, ended).error_message
