"""The offline agent in the engine: its command line, and its stream read by pi's reader."""

from __future__ import annotations

import sys
from pathlib import Path

import msgspec
import pytest
from subdeck.core.agents.child import Command, Start
from subdeck.core.agents.offline._program import MODEL, TOOL_NAMES, offline_command
from subdeck.core.agents.offline.child import CHILD
from subdeck.core.agents.pi.stream import PiStream
from subdeck.core.offline_agent._stream import MODEL as READER, PROVIDER
from subdeck.core.run.describe import NO_MODEL
from subdeck.core.run.events import AssistantText, ToolCall, ToolResult
from subdeck.core.run.model import LaunchedBy, RunMeta, RunReason, Tools
from subdeck.core.run.outcome import ChildExit, decide

from ...offline_agent.offline_reader import COMMAND, SHOP, read, write_tree


def meta(**changes: object) -> RunMeta:
    plain = RunMeta(
        run_id="20260101-000000-abcdef",
        task="Where are requests authenticated?",
        cwd="/",
        agent="offline",
        agent_command=(),
        runner="process",
        created_at="2026-01-01T00:00:00.000Z",
        launched_by=LaunchedBy(session="operator", kind="cli"),
        resolved_model="offline/reader",
    )
    return msgspec.structs.replace(plain, **changes)


def test_it_is_started_with_this_python() -> None:
    """The agent needs no installation, and neither the run's directory nor PYTHON variables affect its imports."""
    assert (sys.executable, "-P", "-E", "-m", "subdeck.core.offline_agent") == COMMAND == offline_command()


def child_command(run: RunMeta, run_dir: str) -> Command:
    return CHILD.command(Start(run, run_dir))


@pytest.mark.processes
def test_it_is_what_the_engine_says_it_is(tmp_path: Path) -> None:
    """The model, tools and first line in the engine's code are those of the program."""
    answer = read(write_tree(tmp_path, SHOP), "Where is the token?").answer
    offered = read(tmp_path, "", "--help", mode=()).stdout.decode()
    assert NO_MODEL == answer.splitlines()[0]
    assert MODEL == f"{PROVIDER}/{READER}"
    assert ", ".join(TOOL_NAMES) in offered


def test_it_gets_pis_flags(tmp_path: Path) -> None:
    """Model, session, thinking, tools and system prompt are passed as for pi."""
    (tmp_path / "system-prompt.md").write_text("You are a scout.")
    command = child_command(
        meta(
            agent_command=("/opt/reader",),
            session_path="child-session.jsonl",
            thinking="high",
            tools=Tools(policy="allow", resolved=("read", "grep")),
            system_prompt_path="system-prompt.md",
        ),
        str(tmp_path),
    )
    session, prompt = tmp_path / "child-session.jsonl", tmp_path / "system-prompt.md"
    expected = f"--mode json --model offline/reader --session {session} --thinking high --tools read,grep"
    assert ("/opt/reader", *f"{expected} --append-system-prompt {prompt}".split()) == command.argv
    assert {"PI_SUBAGENTS_CHILD": "1", "SUBDECK_RUN_ID": "20260101-000000-abcdef"} == command.env


@pytest.mark.parametrize("model", ["", "github-copilot/gpt-4o", "offline/reader"])
def test_no_model_makes_it_a_copilot_run(tmp_path: Path, model: str) -> None:
    """It calls no provider, so the Copilot mark is never set."""
    command = child_command(meta(resolved_model=model), str(tmp_path))
    assert "-e" not in command.argv
    assert "PI_SUBAGENTS_GITHUB_COPILOT_INITIATOR" not in command.env
    assert ("PI_SUBAGENTS_GITHUB_COPILOT_INITIATOR",) == command.unset


@pytest.mark.processes
def test_its_flags_are_understood_by_the_agent_itself(tmp_path: Path) -> None:
    """The program starts with the engine's flags."""
    (tmp_path / "system-prompt.md").write_text("You are a scout.")
    changes = {"tools": Tools(policy="allow", resolved=()), "prompt_mode": "replace", "thinking": "off"}
    run = meta(session_path="s.jsonl", system_prompt_path="system-prompt.md", **changes)
    flags = child_command(run, str(tmp_path)).argv[len(COMMAND) :]
    reading = read(tmp_path, "hello", *flags, mode=())
    assert (0, "") == (reading.code, reading.stderr)
    assert "nothing was read" in reading.answer


@pytest.mark.processes
def test_pis_reader_reads_its_stream(tmp_path: Path) -> None:
    """pi's reader reads its stream: events, facts and the end."""
    reading = read(write_tree(tmp_path, SHOP), "Where are requests authenticated?")
    stream = PiStream()
    events = [event for line in reading.stdout.split(b"\n") if line for event in stream.feed(line)]

    assert reading.said == [event.text for event in events if isinstance(event, AssistantText)]
    assert reading.calls == [(event.tool_name, event.args) for event in events if isinstance(event, ToolCall)]
    assert len(reading.calls) == sum(isinstance(event, ToolResult) for event in events)
    assert 0 == stream.finished_after
    facts = stream.facts
    assert (True, "stop", "offline/reader", 0) == (facts.finished, facts.stop_reason, facts.model, facts.usage.tokens)
    assert reading.answer == facts.final_text
    assert reading.events[0]["id"] == facts.session_id


@pytest.mark.processes
def test_the_sentence_being_written_shows(tmp_path: Path) -> None:
    """Deltas are read from the start of update lines, like pi's."""
    stream = PiStream()
    sentences: list[str] = []
    for line in read(tmp_path, "Where is the token?").stdout.split(b"\n"):
        if line.startswith(stream.updates.prefixes):
            stream.feed(line[:4096])
            sentences.append(stream.sentence)
        elif line:
            stream.feed(line)
    assert "I'm looking into this: W" in sentences
    assert any(sentence.startswith("No model was used") for sentence in sentences)


@pytest.mark.processes
def test_its_run_is_completed_and_its_torn_stream_is_not(tmp_path: Path) -> None:
    """As for pi, the end in the stream decides the outcome, never the exit code."""
    lines = read(tmp_path, "hello").stdout.splitlines()
    whole, torn = PiStream(), PiStream()
    for line in lines:
        whole.feed(line)
    for line in lines[: len(lines) // 2]:
        torn.feed(line)
    assert RunReason.DONE == decide(whole.facts, exit=ChildExit(code=0)).reason
    assert RunReason.AGENT_EXIT == decide(torn.facts, exit=ChildExit(code=0)).reason


@pytest.mark.processes
def test_settings_of_the_shell_do_not_matter(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Variables for pi and for Python change nothing."""
    for name, value in {"PI_OFFLINE": "1", "PYTHONPATH": "/no/such", "PYTHONHOME": "/no/such"}.items():
        monkeypatch.setenv(name, value)
    reading = read(tmp_path, "hello")
    assert (0, "") == (reading.code, reading.stderr)
