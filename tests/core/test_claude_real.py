"""Runs of Claude Code with a scripted model."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
from subdeck.core.run.events import AssistantText, Thinking, ToolCall, ToolResult
from subdeck.core.run.model import RunReason, RunStatus

from tests.factories import result_of, started, wait_for_end
from tests.waiting import wait_until

from .command_line import subdeck
from .real_claude import MODEL, Lab, call, real_claude, text
from .session_file import SessionFile

pytestmark = pytest.mark.agents


@pytest.fixture
def lab(world: Path, tmp_path: Path, project_dir: Path, claude_executable: str) -> Iterator[Lab]:
    with real_claude(project_dir, tmp_path, claude_executable) as lab:
        yield lab


@pytest.mark.parametrize("talk", [True, False])
def test_text_and_thinking(lab: Lab, talk: bool) -> None:
    """A task that starts with a dash and an at sign works. Thinking, tokens and cost are recorded."""
    lab.answers({"steps": [{"thinking": "Hm."}, {"text": "Hello."}], "usage": {"input": 100, "output": 20}})
    result = lab.run(preset=lab.preset("speaker", talk=talk))

    assert (RunReason.DONE, "Hello.", 0) == (result.reason, result.final_text, result.exit_code), result.error_message
    said = [event.text for event in lab.events(result) if isinstance(event, AssistantText | Thinking)]
    assert ["Hm.", "Hello."] == said
    assert (1, 100, 20, MODEL) == (result.usage.turns, result.usage.input, result.usage.output, result.resolved_model)
    assert result.usage.cost > 0
    assert "- @do it" in json.dumps(lab.requests[-1]["messages"])
    (warning,) = lab.warnings(result).splitlines()
    assert warning.startswith(f"{MODEL} is not in the list of models of claude: ")
    assert result.conversation is not None
    assert Path(result.conversation).stem == result.child_session_id


def test_tools_by_our_names(lab: Lab) -> None:
    """With `tools`, the agent has only these tools and uses them without a permission request."""
    place = str(lab.root / "notes.md")
    lab.answers(call("Read", file_path=place), call("Bash", command="echo hi"), text("Done."))
    result = lab.run(tools=("read", "edit"))

    assert RunReason.DONE == result.reason, result.error_message
    calls = [event.tool_name for event in lab.events(result) if isinstance(event, ToolCall)]
    results = [event for event in lab.events(result) if isinstance(event, ToolResult)]
    assert ["read", "bash"] == calls
    assert [False, True] == [event.is_error for event in results]
    assert "a note" in results[0].content
    assert {"Read", "Edit"} == {tool["name"] for tool in lab.requests[-1]["tools"]}


@pytest.mark.parametrize("talk", [True, False])
def test_a_denied_tool(lab: Lab, talk: bool) -> None:
    """A denied tool is missing. Your own permissions apply to all others. In a non-interactive run, permission requests
    are denied with a warning.
    """
    lab.preset("careful", denied_tools=["bash"], talk=talk)
    lab.answers(call("Write", file_path=str(lab.root / "new.txt"), content="x"), text("I could not."))
    result = lab.run(preset="careful")

    assert (RunReason.DONE, "I could not.") == (result.reason, result.final_text), result.error_message
    assert "Bash" not in {tool["name"] for tool in lab.requests[0]["tools"]}
    assert not (lab.root / "new.txt").exists()
    assert (["write"] if talk else []) == lab.denied(result)
    assert talk is not ("a call to write was denied" in lab.warnings(result))


def _write_agent(lab: Lab, *fields: str) -> None:
    """Write an agent file of Claude's own that asks for all that a file may not grant."""
    mark = {"type": "command", "command": f"touch {lab.root}/hooked"}
    granted = (
        "permissionMode: bypassPermissions",
        "hooks: " + json.dumps({"PreToolUse": [{"hooks": [mark]}]}),
        "mcpServers: " + json.dumps([{"mine": {"command": "touch", "args": [f"{lab.root}/served"]}}]),
    )
    agents = lab.root / ".claude" / "agents"
    agents.mkdir(parents=True)
    head = ["---", "name: careful", "description: d", "model: sonnet", *granted, *fields, "---"]
    (agents / "careful.md").write_text("\n".join([*head, "MY WORDS"]))
    (lab.root / ".pi" / "subagents").mkdir(parents=True)
    settings = lab.root / ".pi" / "subagents" / "config.yaml"
    settings.write_text("preset_dirs: [{path: .claude/agents, agent: claude}]\n")


def test_an_agent_file(lab: Lab) -> None:
    """A Claude Code agent file works as a preset. Tools that it denies are missing, and its grants, hooks and servers
    are ignored.
    """
    _write_agent(lab, "disallowedTools: Bash, Task")
    new = lab.root / "new.txt"
    lab.answers(
        call("Read", file_path=str(lab.root / "notes.md")), call("Write", file_path=str(new), content="x"), text("No.")
    )
    result = lab.run(preset="careful")

    assert (RunReason.DONE, "No.") == (result.reason, result.final_text), result.error_message
    assert ["write"] == lab.denied(result)
    assert [] == [name for name in ("new.txt", "hooked", "served") if (lab.root / name).exists()]
    first = lab.requests[0]
    assert {"Bash", "Agent"}.isdisjoint(tool["name"] for tool in first["tools"])
    assert "MY WORDS" in json.dumps(first["system"]) and "sonnet" in first["model"]


def test_an_agent_of_a_checkout_bypasses_nothing(lab: Lab) -> None:
    """Claude Code can start the agents of an untrusted project by itself, but their files grant them nothing."""
    _write_agent(lab)
    lab.script["after"] = "repeat_last"
    write = call("Write", file_path=str(lab.root / "new.txt"), content="x")
    lab.answers(
        {"when": {"last_contains": "NESTED-GO", "once": True}, **write},
        call("Agent", subagent_type="careful", description="x", prompt="NESTED-GO", run_in_background=False),
        text("Done."),
    )
    result = lab.run()

    assert "NESTED-GO" in json.dumps(lab.requests[1]["messages"]), "the agent was started"
    assert ["write"] == lab.denied(result)
    assert [] == [name for name in ("new.txt", "hooked", "served") if (lab.root / name).exists()]


def test_no_tools(lab: Lab) -> None:
    """With an empty tool list, the agent has no tools."""
    assert RunReason.DONE == lab.run(tools=()).reason
    assert not lab.requests[-1].get("tools")


def test_prompt_append_and_replace(lab: Lab) -> None:
    """`append` adds the preset's prompt to Claude Code's own. `replace` replaces it and omits CLAUDE.md."""
    (lab.root / "CLAUDE.md").write_text("CONTEXT FILE")
    lab.preset("added", prompt="MY WORDS")
    lab.preset("alone", prompt="MY WORDS", prompt_mode="replace")
    for name in ("added", "alone"):
        assert RunReason.DONE == lab.run(preset=name).reason
        lab.answers(text("Hello."))
        lab.script["after"] = "repeat_last"
    added, alone = (request for request in lab.requests if request.get("tools"))
    assert "MY WORDS" in json.dumps(added["system"]) and "MY WORDS" in json.dumps(alone["system"])
    assert len(json.dumps(added["system"])) > 2 * len(json.dumps(alone["system"]))
    assert ["CONTEXT FILE" in json.dumps(request) for request in (added, alone)] == [True, False]


def test_going_on(lab: Lab) -> None:
    """A conversation is continued by its id, and the cost covers only the new run. Another agent can't continue it."""
    lab.script["after"] = "repeat_last"
    first = lab.run("Remember kiwi")
    second = lab.run("Which word?", child_session=first.child_session_id)

    assert (RunReason.DONE, first.child_session_id) == (second.reason, second.child_session_id), second.error_message
    assert "Remember kiwi" in json.dumps(lab.requests[-1]["messages"])
    assert first.usage.cost == pytest.approx(second.usage.cost)
    with pytest.raises(Exception, match="belongs to the agent claude, not offline"):
        lab.start(child_session=first.child_session_id, agent="offline")


def test_sticky(lab: Lab) -> None:
    """Runs of a sticky preset share one conversation. subdeck stores only its id."""
    lab.preset("shared", sticky=True)
    lab.script["after"] = "repeat_last"
    first, second = lab.run("Remember kiwi", preset="shared"), lab.run("Which word?", preset="shared")

    assert first.child_session_id == second.child_session_id is not None
    assert "Remember kiwi" in json.dumps(lab.requests[-1]["messages"])
    (file,) = (Path(os.environ["PI_CODING_AGENT_DIR"]).parent / "subagent-sessions").rglob("*.id")
    assert first.child_session_id == file.read_text()


def test_no_session(lab: Lab) -> None:
    """With `session: none`, nothing of the conversation is kept."""
    lab.preset("passing", session="none")
    result = lab.run(preset="passing")
    assert (RunReason.DONE, None, None) == (result.reason, result.child_session_id, result.conversation)


def test_finalize_with_a_corrective_retry(lab: Lab) -> None:
    """The agent submits a structured result with a tool. If it forgets, it is asked again in the same conversation."""
    lab.preset("finishing", finalize=True, tools=["read"])
    hand_over = call("mcp__subdeck__subagent_finalize", status="SUCCESS", result="The answer")
    lab.answers(text("I am done."), hand_over, text("Handed over."))
    result = lab.run(preset="finishing")

    assert (RunReason.FINALIZED, "The answer", 2) == (result.reason, result.final_text, result.attempts), result
    names = [event.tool_name for event in lab.events(result) if isinstance(event, ToolCall)]
    assert ["subagent_finalize"] == names


def test_a_refused_result(lab: Lab) -> None:
    """A structured result without content is refused, and the agent can submit it again."""
    lab.preset("finishing", finalize=True)
    bad = call("mcp__subdeck__subagent_finalize", status="SUCCESS", result=" ")
    good = call("mcp__subdeck__subagent_finalize", status="ERROR", error="no luck")
    lab.answers(bad, good, text("Over."))
    result = lab.run(preset="finishing")
    assert (RunReason.FINALIZE_ERROR, "no luck", 1) == (result.reason, result.error_message, result.attempts)


@pytest.mark.parametrize(
    ("turn", "reason", "message"),
    [
        ({"status": 400, "body": "too many things"}, RunReason.MODEL_ERROR, "too many things"),
        ({"status": 401}, RunReason.MODEL_ERROR, ""),
        ({"status": 429, "headers": {"retry-after": "0"}}, RunReason.MODEL_ERROR, ""),
        ({"status": 529, "headers": {"retry-after": "0"}}, RunReason.MODEL_ERROR, ""),
        ({"steps": [{"text": "So f"}, {"drop": True}]}, RunReason.MODEL_ERROR, ""),
        ({"steps": [{"text": "Part."}], "stop_reason": "max_tokens"}, RunReason.MODEL_ERROR, "maximum"),
        ({"steps": [{"text": "I will not."}], "stop_reason": "refusal"}, RunReason.MODEL_ERROR, "refus"),
        ({"steps": []}, RunReason.EMPTY_ANSWER, "without writing any text"),
    ],
    ids=["400", "401", "429", "529", "drop", "length", "refusal", "empty"],
)
def test_provider_errors(lab: Lab, turn: dict[str, Any], reason: RunReason, message: str) -> None:
    """A provider error fails the run with a readable message, even if Claude Code reports success."""
    lab.answers(turn)
    lab.script["after"] = "repeat_last"
    result = lab.run()
    assert reason == result.reason
    assert message in (result.error_message or "")
    assert "{" not in (result.error_message or "")
    assert "API Error" not in (result.final_text or "")


def test_a_limit_of_money(lab: Lab, claude_executable: str) -> None:
    """A cost limit in Claude Code's own options ends the run after the message that exceeds it."""
    lab.command(claude_executable, "--max-budget-usd", "0.0001")
    lab.answers(call("Bash", command="echo 1"), text("Never."))
    result = lab.run(tools=("bash",))
    assert (RunStatus.ABORTED, RunReason.BUDGET) == (result.status, result.reason)
    assert (True, 0) == (result.usage.cost > 0, result.usage.unpriced)


def test_what_ends_in_the_background_brings_another_turn(lab: Lab) -> None:
    """While a shell runs in the background, the run isn't finished. Its answer is the text of the last turn."""
    lab.answers(
        call("Bash", command="sleep 3; echo over", run_in_background=True), text("It runs."), text("It has ended.")
    )
    result = lab.run(tools=("bash",))
    assert (RunReason.DONE, "It has ended.") == (result.reason, result.final_text), result.error_message
    assert 3 == result.usage.turns


@pytest.mark.parametrize(
    ("number", "reason", "words"),
    [
        (signal.SIGTERM, RunReason.AGENT_EXIT, "exited with code 143"),
        (signal.SIGINT, RunReason.INTERRUPTED, "was interrupted"),
        (signal.SIGKILL, RunReason.AGENT_EXIT, "was killed by SIGKILL"),
    ],
)
def test_a_signal_that_nobody_of_ours_sent(lab: Lab, number: signal.Signals, reason: RunReason, words: str) -> None:
    """If another program ends Claude Code with a signal, the run fails, even with exit code 0."""
    lab.answers(call("Bash", command="echo started > mark; sleep 100"), text("Done."))
    run = lab.start(tools=("bash",))
    wait_until((lab.root / "mark").exists, "the tool to run", timeout=60)
    os.kill(started(lab.engine, run).child_pid, number)
    result = result_of(lab.engine, wait_for_end(lab.engine, run.run_id))
    assert reason == result.reason
    assert words in (result.error_message or "")


def test_a_missing_conversation(lab: Lab) -> None:
    """An unknown conversation id fails the run at its start. A sticky preset then starts a new conversation."""
    lab.preset("shared", sticky=True)
    first = lab.run(preset="shared")
    assert first.conversation is not None
    Path(first.conversation).unlink()
    lab.script["after"] = "repeat_last"
    second, third = lab.run(preset="shared"), lab.run(preset="shared")
    assert (RunReason.START_FAILED, RunReason.DONE) == (second.reason, third.reason), second.error_message


def test_a_bad_flag(lab: Lab, claude_executable: str) -> None:
    """If Claude Code exits without output, the run fails as `start_failed`, with the end of stderr as its message."""
    lab.command(claude_executable, "--no-such-flag")
    result = lab.run()
    assert RunReason.START_FAILED == result.reason
    assert "no-such-flag" in (result.error_message or "")


@pytest.mark.parametrize("force", [False, True])
def test_stopped_in_the_middle_of_a_tool(lab: Lab, force: bool) -> None:
    """Stopping or killing a run ends Claude Code and the shell that it started."""
    lab.answers(call("Bash", command="echo started > mark; sleep 100"), text("Done."))
    run = lab.start(tools=("bash",))
    wait_until((lab.root / "mark").exists, "the tool to run", timeout=60)
    lab.engine.stop([run.run_id], force=force)
    result = result_of(lab.engine, wait_for_end(lab.engine, run.run_id))
    assert (RunStatus.ABORTED, RunReason.KILLED if force else RunReason.STOPPED) == (result.status, result.reason)
    used = result.usage  # the price comes with the last line, for which a kill leaves no time
    assert used.tokens > 0
    assert (used.cost > 0, used.unpriced) in ([(False, used.tokens)] if force else [(True, 0), (False, used.tokens)])


def test_max_turns(lab: Lab) -> None:
    """`max_turns` counts requests to the model."""
    lab.preset("short", max_turns=2, tools=["bash"])
    lab.answers(*[call("Bash", command="echo 1")] * 4)
    result = lab.run(preset="short")
    assert (RunReason.MAX_TURNS, 2) == (result.reason, result.usage.turns)


def test_a_limit_of_time(lab: Lab) -> None:
    """A time limit ends the run while the agent writes, and keeps the text so far."""
    lab.preset("hasty", timeout=4)
    lab.answers({"steps": [{"text": {"repeat": ["ab", 10_000]}}], "chunk_size": 2, "chunk_delay": 0.1})
    result = lab.run(preset="hasty")
    assert (RunStatus.ABORTED, RunReason.TIMEOUT, True) == (result.status, result.reason, result.partial)
    assert (result.final_text or "").startswith("abababab")


def test_a_limit_of_time_in_the_middle_of_a_tool(lab: Lab) -> None:
    """A time limit ends a running shell, and keeps the text before it."""
    lab.preset("hasty", timeout=4, tools=["bash"])
    calling = call("Bash", command="echo started > mark; exec sleep 1000")
    lab.answers({"steps": [{"text": "Let me wait."}, *calling["steps"]]})
    result = lab.run(preset="hasty")
    assert (lab.root / "mark").exists()
    assert (RunReason.TIMEOUT, "Let me wait.", ()) == (result.reason, result.final_text, result.not_ended)
    assert result.usage.turns == 1


def test_a_limit_of_silence(lab: Lab) -> None:
    """`stall` ends a run whose model stops responding."""
    lab.preset("quiet", stall=3)
    lab.answers({"steps": [{"text": "So far."}, {"hang": True}]})
    result = lab.run(preset="quiet")
    assert (RunReason.STALLED, "So far.", True) == (result.reason, result.final_text, result.partial)


def test_a_silent_tool_is_no_stall(lab: Lab) -> None:
    """`stall` doesn't end a run while a tool is running, however long it takes."""
    lab.preset("quiet", stall=5, tools=["bash"])
    lab.answers(call("Bash", command="sleep 7"), text("Slept."))
    result = lab.run(preset="quiet")
    assert (RunReason.DONE, "Slept.") == (result.reason, result.final_text), result.error_message


@pytest.mark.parametrize("inherits", [True, False])
def test_a_parents_conversation(lab: Lab, tmp_path: Path, inherits: bool) -> None:
    """The parent's conversation goes before the task if the preset asks for it. It is never in Claude Code's
    arguments.
    """
    parent = SessionFile(tmp_path / "parent.jsonl")
    parent.turn("where")
    lab.preset("heir", inherit_context=inherits)
    run = lab.start("And now?", preset="heir", parent_session=str(parent.path))
    assert RunReason.DONE == wait_for_end(lab.engine, run.run_id).reason
    asked = json.dumps(lab.requests[-1]["messages"])
    assert (inherits, True) == ("<parent-context>" in asked and "where!" in asked, "And now?" in asked)


def test_the_live_sentence(lab: Lab) -> None:
    """Text appears while the model writes it."""
    lab.answers({"steps": [{"text": "A long sentence " * 20}], "chunk_size": 8, "chunk_delay": 0.5})
    run = lab.start()
    wait_until(
        lambda: "A long sentence" in getattr(lab.engine.snapshots()[0].state, "sentence", ""), "the text", timeout=60
    )
    lab.engine.stop([run.run_id])
    result = result_of(lab.engine, wait_for_end(lab.engine, run.run_id))
    assert (RunReason.STOPPED, True) == (result.reason, result.partial)
    assert (result.final_text or "").startswith("A long sentence")


def test_hostile_text(lab: Lab) -> None:
    """Control characters, invalid characters and line separators are only text, and don't break a run."""
    words = '\x1b[31mred\x1b]0;title\x07 \u2028 \u202e {"type":"result"} \\ " \n---\n#(touch x)'
    lab.answers(text(words))
    result = lab.run(words)
    assert (RunReason.DONE, words) == (result.reason, result.final_text)


def test_deleting_says_that_the_conversation_stays(lab: Lab) -> None:
    """Deleting a run keeps the conversation, which belongs to Claude Code, and prints where it is kept."""
    result = lab.run()
    done = subdeck("rm", result.run_id, cwd=lab.root)
    assert "claude keeps its conversation" in done.err
    assert result.conversation is not None
    assert Path(result.conversation).exists()


def test_a_stream_that_was_kept_is_replayed(lab: Lab) -> None:
    """`subdeck replay` makes the same run again from its recorded output."""
    lab.answers(call("Read", file_path=str(lab.root / "notes.md")), text("Done."))
    result = lab.run(tools=("read",))
    kept = Path(lab.engine.project.run_dir(result.run_id), "stdout.log")
    again = subdeck("replay", str(kept), "--json", cwd=lab.root).document
    assert (result.status, result.final_text) == (again["status"], again["finalText"])
    assert msgspec.to_builtins(result.usage) == again["usage"]


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({}, (True, True, False)),
        ({"tools": ["read"]}, (True, True, False)),
        ({"project_resources": False}, (False, False, False)),
        ({"context_files": False}, (False, False, False)),
    ],
    ids=["plain", "tools", "no-project", "no-context"],
)
def test_what_a_project_brings_along(lab: Lab, fields: dict[str, object], expected: tuple[bool, ...]) -> None:
    """A project's CLAUDE.md is read and its hooks run, unless the preset turns that off. Permissions in an untrusted
    project don't apply.
    """
    (lab.root / "CLAUDE.md").write_text("CONTEXT FILE")
    hook = {"hooks": [{"type": "command", "command": f"touch {lab.root}/hooked"}]}
    settings = {"hooks": {"SessionStart": [hook]}, "permissions": {"allow": ["Write", "Bash(*)"]}}
    (lab.root / ".claude").mkdir()
    (lab.root / ".claude" / "settings.json").write_text(json.dumps(settings))
    lab.preset("probing", **fields)
    lab.answers(call("Write", file_path=str(lab.root / "written"), content="x"), text("Done."))
    result = lab.run(preset="probing")

    assert RunReason.DONE == result.reason, result.error_message
    context = "CONTEXT FILE" in json.dumps(lab.requests[0])
    assert expected == (context, (lab.root / "hooked").exists(), (lab.root / "written").exists())
