"""Runs of Claude Code with a scripted model."""

from __future__ import annotations

import json
import os
import signal
from pathlib import Path
from typing import Any

import msgspec
import pytest
from subdeck.core.run.events import AssistantText, Decision, Notice, Thinking, ToolCall, ToolResult
from subdeck.core.run.model import RunReason, RunResult, RunStatus, Verdict

from tests.factories import events_of, result_of, started, wait_for_end
from tests.real.lab import Lab
from tests.real.model_server import call, said
from tests.real.programs import CLAUDE
from tests.waiting import wait_until

from ...command_line import subdeck
from ..pi.session_file import SessionFile

pytestmark = pytest.mark.agents


def warnings(claude: Lab, result: RunResult) -> str:
    return "\n".join(event.text for event in events_of(claude.engine, result) if isinstance(event, Notice))


def denied(claude: Lab, result: RunResult) -> list[str]:
    """Return the denied tools, for which the agent asked."""
    decisions = [event for event in events_of(claude.engine, result) if isinstance(event, Decision)]
    return [decision.tool_name for decision in decisions if decision.verdict is Verdict.DENY]


@pytest.mark.parametrize("talk", [True, False])
def test_text_and_thinking(claude: Lab, talk: bool) -> None:
    """A task that starts with a dash and an at sign works. Thinking, tokens and cost are recorded."""
    claude.script({"steps": [{"thinking": "Hm."}, {"text": "Hello."}], "usage": {"input": 100, "output": 20}})
    claude.preset(talk=talk)
    result = claude.end(claude.start("- @do it"))

    assert (RunReason.DONE, "Hello.", 0) == (result.reason, result.final_text, result.exit_code), result.error_message
    said = [event.text for event in events_of(claude.engine, result) if isinstance(event, AssistantText | Thinking)]
    assert ["Hm.", "Hello."] == said
    used = result.usage
    assert (1, 100, 20, CLAUDE.model) == (used.turns, used.input, used.output, result.resolved_model)
    assert used.cost > 0
    assert "- @do it" in json.dumps(claude.requests[-1]["messages"])
    (warning,) = warnings(claude, result).splitlines()
    assert warning.startswith(f"{CLAUDE.model} is not in the list of models of claude: ")
    assert result.conversation is not None
    assert Path(result.conversation).stem == result.child_session_id


def test_tools_by_our_names(claude: Lab) -> None:
    """With `tools`, the agent has only these tools and uses them without a permission request."""
    place = str(claude.project / "notes.md")
    claude.script(call("Read", file_path=place), call("Bash", command="echo hi"), said("Done."))
    result = claude.end(claude.start(tools=("read", "edit")))

    assert RunReason.DONE == result.reason, result.error_message
    calls = [event.tool_name for event in events_of(claude.engine, result) if isinstance(event, ToolCall)]
    results = [event for event in events_of(claude.engine, result) if isinstance(event, ToolResult)]
    assert ["read", "bash"] == calls
    assert [False, True] == [event.is_error for event in results]
    assert "a note" in results[0].content
    assert {"Read", "Edit"} == {tool["name"] for tool in claude.requests[-1]["tools"]}


@pytest.mark.parametrize("talk", [True, False])
def test_a_denied_tool(claude: Lab, talk: bool) -> None:
    """A denied tool is missing. Your own permissions apply to all others. In a non-interactive run, permission requests
    are denied with a warning.
    """
    claude.preset(name="careful", denied_tools=["bash"], talk=talk)
    claude.script(call("Write", file_path=str(claude.project / "new.txt"), content="x"), said("I could not."))
    result = claude.end(claude.start(preset="careful"))

    assert (RunReason.DONE, "I could not.") == (result.reason, result.final_text), result.error_message
    assert "Bash" not in {tool["name"] for tool in claude.requests[0]["tools"]}
    assert not (claude.project / "new.txt").exists()
    assert (["write"] if talk else []) == denied(claude, result)
    assert talk is not ("a call to write was denied" in warnings(claude, result))


def _write_agent(claude: Lab, *fields: str) -> None:
    """Write a Claude agent file that requests everything that a file may not grant."""
    mark = {"type": "command", "command": f"touch {claude.project}/hooked"}
    granted = (
        "permissionMode: bypassPermissions",
        "hooks: " + json.dumps({"PreToolUse": [{"hooks": [mark]}]}),
        "mcpServers: " + json.dumps([{"mine": {"command": "touch", "args": [f"{claude.project}/served"]}}]),
    )
    agents = claude.project / ".claude" / "agents"
    agents.mkdir(parents=True)
    head = ["---", "name: careful", "description: d", "model: sonnet", *granted, *fields, "---"]
    (agents / "careful.md").write_text("\n".join([*head, "MY WORDS"]))
    (claude.project / ".pi" / "subagents").mkdir(parents=True)
    settings = claude.project / ".pi" / "subagents" / "config.yaml"
    settings.write_text("preset_dirs: [{path: .claude/agents, agent: claude}]\n")


def test_an_agent_file(claude: Lab) -> None:
    """A Claude Code agent file works as a preset. Tools that it denies are missing, and its grants, hooks and servers
    are ignored.
    """
    _write_agent(claude, "disallowedTools: Bash, Task")
    new = claude.project / "new.txt"
    claude.script(
        call("Read", file_path=str(claude.project / "notes.md")),
        call("Write", file_path=str(new), content="x"),
        said("No."),
    )
    result = claude.end(claude.start(preset="careful"))

    assert (RunReason.DONE, "No.") == (result.reason, result.final_text), result.error_message
    assert ["write"] == denied(claude, result)
    assert [] == [name for name in ("new.txt", "hooked", "served") if (claude.project / name).exists()]
    first = claude.requests[0]
    assert {"Bash", "Agent"}.isdisjoint(tool["name"] for tool in first["tools"])
    assert "MY WORDS" in json.dumps(first["system"]) and "sonnet" in first["model"]


def test_an_agent_of_a_checkout_bypasses_nothing(claude: Lab) -> None:
    """Claude Code can start the agents of an untrusted project, but their files grant nothing."""
    _write_agent(claude)
    write = call("Write", file_path=str(claude.project / "new.txt"), content="x")
    claude.script(
        {"when": {"last_contains": "NESTED-GO", "once": True}, **write},
        call("Agent", subagent_type="careful", description="x", prompt="NESTED-GO", run_in_background=False),
        said("Done."),
        repeats=True,
    )
    result = claude.end(claude.start())

    assert "NESTED-GO" in json.dumps(claude.requests[1]["messages"]), "the agent was started"
    assert ["write"] == denied(claude, result)
    assert [] == [name for name in ("new.txt", "hooked", "served") if (claude.project / name).exists()]


def test_no_tools(claude: Lab) -> None:
    """With an empty tool list, the agent has no tools."""
    assert RunReason.DONE == claude.end(claude.start(tools=())).reason
    assert not claude.requests[-1].get("tools")


def test_prompt_append_and_replace(claude: Lab) -> None:
    """`append` adds the preset's prompt to Claude Code's own. `replace` replaces it and omits CLAUDE.md."""
    (claude.project / "CLAUDE.md").write_text("CONTEXT FILE")
    claude.preset(name="added", prompt="MY WORDS")
    claude.preset(name="alone", prompt="MY WORDS", prompt_mode="replace")
    claude.script(said("Hello."), repeats=True)
    for name in ("added", "alone"):
        assert RunReason.DONE == claude.end(claude.start(preset=name)).reason
    added, alone = (request for request in claude.requests if request.get("tools"))
    assert "MY WORDS" in json.dumps(added["system"]) and "MY WORDS" in json.dumps(alone["system"])
    assert len(json.dumps(added["system"])) > 2 * len(json.dumps(alone["system"]))
    assert ["CONTEXT FILE" in json.dumps(request) for request in (added, alone)] == [True, False]


def test_going_on(claude: Lab) -> None:
    """A conversation is continued by its id, and the cost covers only the new run. Another agent can't continue it."""
    claude.script(said("Hello."), repeats=True)
    first = claude.end(claude.start("Remember kiwi"))
    second = claude.end(claude.start("Which word?", child_session=first.child_session_id))

    assert (RunReason.DONE, first.child_session_id) == (second.reason, second.child_session_id), second.error_message
    assert "Remember kiwi" in json.dumps(claude.requests[-1]["messages"])
    assert first.usage.cost == pytest.approx(second.usage.cost)
    with pytest.raises(Exception, match="belongs to the agent claude, not offline"):
        claude.start(child_session=first.child_session_id, agent="offline")


def test_sticky(claude: Lab) -> None:
    """Runs of a sticky preset share one conversation. subdeck stores only its id."""
    claude.preset(name="shared", sticky=True)
    claude.script(said("Hello."), repeats=True)
    first, second = (
        claude.end(claude.start("Remember kiwi", preset="shared")),
        claude.end(claude.start("Which word?", preset="shared")),
    )

    assert first.child_session_id == second.child_session_id is not None
    assert "Remember kiwi" in json.dumps(claude.requests[-1]["messages"])
    (file,) = (Path(os.environ["PI_CODING_AGENT_DIR"]).parent / "subagent-sessions").rglob("*.id")
    assert first.child_session_id == file.read_text()


def test_no_session(claude: Lab) -> None:
    """With `session: none`, the conversation is not kept."""
    claude.preset(name="passing", session="none")
    result = claude.end(claude.start(preset="passing"))
    assert (RunReason.DONE, None, None) == (result.reason, result.child_session_id, result.conversation)


def test_finalize_with_a_corrective_retry(claude: Lab) -> None:
    """The agent submits a structured result with a tool. If it forgets, it is asked again in the same conversation."""
    claude.preset(name="finishing", finalize=True, tools=["read"])
    hand_over = call("mcp__subdeck__subagent_finalize", status="SUCCESS", result="The answer")
    claude.script(said("I am done."), hand_over, said("Handed over."))
    result = claude.end(claude.start(preset="finishing"))

    assert (RunReason.FINALIZED, "The answer", 2) == (result.reason, result.final_text, result.attempts), result
    names = [event.tool_name for event in events_of(claude.engine, result) if isinstance(event, ToolCall)]
    assert ["subagent_finalize"] == names


def test_a_refused_result(claude: Lab) -> None:
    """A structured result without content is refused, and the agent can submit it again."""
    claude.preset(name="finishing", finalize=True)
    bad = call("mcp__subdeck__subagent_finalize", status="SUCCESS", result=" ")
    good = call("mcp__subdeck__subagent_finalize", status="ERROR", error="no luck")
    claude.script(bad, good, said("Over."))
    result = claude.end(claude.start(preset="finishing"))
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
def test_provider_errors(claude: Lab, turn: dict[str, Any], reason: RunReason, message: str) -> None:
    """A provider error fails the run with a readable message, even if Claude Code reports success."""
    claude.script(turn, repeats=True)
    result = claude.end(claude.start())
    assert reason == result.reason
    assert message in (result.error_message or "")
    assert "{" not in (result.error_message or "")
    assert "API Error" not in (result.final_text or "")


def test_a_limit_of_money(claude: Lab, claude_executable: str) -> None:
    """A cost limit in Claude Code's own options ends the run after the message that exceeds it."""
    claude.command(claude_executable, "--max-budget-usd", "0.0001")
    claude.script(call("Bash", command="echo 1"), said("Never."))
    result = claude.end(claude.start(tools=("bash",)))
    assert (RunStatus.ABORTED, RunReason.BUDGET) == (result.status, result.reason)
    assert (True, 0) == (result.usage.cost > 0, result.usage.unpriced)


def test_what_ends_in_the_background_brings_another_turn(claude: Lab) -> None:
    """While a shell runs in the background, the run isn't finished. Its answer is the text of the last turn."""
    claude.script(
        call("Bash", command="sleep 3; echo over", run_in_background=True), said("It runs."), said("It has ended.")
    )
    result = claude.end(claude.start(tools=("bash",)))
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
def test_a_signal_that_nobody_of_ours_sent(claude: Lab, number: signal.Signals, reason: RunReason, words: str) -> None:
    """If another program ends Claude Code with a signal, the run fails, even with exit code 0."""
    claude.script(call("Bash", command="echo started > mark; sleep 100"), said("Done."))
    run = claude.start(tools=("bash",))
    wait_until((claude.project / "mark").exists, "the tool to run", timeout=60)
    os.kill(started(claude.engine, run).child_pid, number)
    result = result_of(claude.engine, wait_for_end(claude.engine, run.run_id))
    assert reason == result.reason
    assert words in (result.error_message or "")


def test_a_missing_conversation(claude: Lab) -> None:
    """An unknown conversation id fails the run at its start. A sticky preset then starts a new conversation."""
    claude.preset(name="shared", sticky=True)
    claude.script(said("Hello."), repeats=True)
    first = claude.end(claude.start(preset="shared"))
    assert first.conversation is not None
    Path(first.conversation).unlink()
    second, third = claude.end(claude.start(preset="shared")), claude.end(claude.start(preset="shared"))
    assert (RunReason.START_FAILED, RunReason.DONE) == (second.reason, third.reason), second.error_message


def test_a_bad_flag(claude: Lab, claude_executable: str) -> None:
    """If Claude Code exits without output, the run fails as `start_failed`, with the end of stderr as its message."""
    claude.command(claude_executable, "--no-such-flag")
    result = claude.end(claude.start())
    assert RunReason.START_FAILED == result.reason
    assert "no-such-flag" in (result.error_message or "")


@pytest.mark.parametrize("force", [False, True])
def test_stopped_in_the_middle_of_a_tool(claude: Lab, force: bool) -> None:
    """Stopping or killing a run ends Claude Code and the shell that it started."""
    claude.script(call("Bash", command="echo started > mark; sleep 100"), said("Done."))
    run = claude.start(tools=("bash",))
    wait_until((claude.project / "mark").exists, "the tool to run", timeout=60)
    claude.engine.stop([run.run_id], force=force)
    result = result_of(claude.engine, wait_for_end(claude.engine, run.run_id))
    assert (RunStatus.ABORTED, RunReason.KILLED if force else RunReason.STOPPED) == (result.status, result.reason)
    used = result.usage  # the price comes with the last line, which a kill doesn't wait for
    assert used.tokens > 0
    assert (used.cost > 0, used.unpriced) in ([(False, used.tokens)] if force else [(True, 0), (False, used.tokens)])


def test_max_turns(claude: Lab) -> None:
    """`max_turns` counts requests to the model."""
    claude.preset(name="short", max_turns=2, tools=["bash"])
    claude.script(*[call("Bash", command="echo 1")] * 4)
    result = claude.end(claude.start(preset="short"))
    assert (RunReason.MAX_TURNS, 2) == (result.reason, result.usage.turns)


def test_a_limit_of_time(claude: Lab) -> None:
    """A time limit ends the run while the agent writes, and keeps the text so far."""
    claude.preset(name="hasty", timeout=4)
    claude.script({"steps": [{"text": {"repeat": ["ab", 10_000]}}], "chunk_size": 2, "chunk_delay": 0.1})
    result = claude.end(claude.start(preset="hasty"))
    assert (RunStatus.ABORTED, RunReason.TIMEOUT, True) == (result.status, result.reason, result.partial)
    assert (result.final_text or "").startswith("abababab")


def test_a_limit_of_time_in_the_middle_of_a_tool(claude: Lab) -> None:
    """A time limit ends a running shell, and keeps the text before it."""
    claude.preset(name="hasty", timeout=4, tools=["bash"])
    calling = call("Bash", command="echo started > mark; exec sleep 1000")
    claude.script({"steps": [{"text": "Let me wait."}, *calling["steps"]]})
    result = claude.end(claude.start(preset="hasty"))
    assert (claude.project / "mark").exists()
    assert (RunReason.TIMEOUT, "Let me wait.", ()) == (result.reason, result.final_text, result.not_ended)
    assert result.usage.turns == 1


def test_a_limit_of_silence(claude: Lab) -> None:
    """`stall` ends a run whose model stops responding."""
    claude.preset(name="quiet", stall=3)
    claude.script({"steps": [{"text": "So far."}, {"hang": True}]})
    result = claude.end(claude.start(preset="quiet"))
    assert (RunReason.STALLED, "So far.", True) == (result.reason, result.final_text, result.partial)


def test_a_silent_tool_is_no_stall(claude: Lab) -> None:
    """`stall` doesn't end a run while a tool is running, however long it takes."""
    claude.preset(name="quiet", stall=5, tools=["bash"])
    claude.script(call("Bash", command="sleep 7"), said("Slept."))
    result = claude.end(claude.start(preset="quiet"))
    assert (RunReason.DONE, "Slept.") == (result.reason, result.final_text), result.error_message


@pytest.mark.parametrize("inherits", [True, False])
def test_a_parents_conversation(claude: Lab, tmp_path: Path, inherits: bool) -> None:
    """The parent's conversation goes before the task if the preset asks for it. It is never in Claude Code's
    arguments.
    """
    parent = SessionFile(tmp_path / "parent.jsonl")
    parent.turn("where")
    claude.preset(name="heir", inherit_context=inherits)
    run = claude.start("And now?", preset="heir", parent_session=str(parent.path))
    assert RunReason.DONE == wait_for_end(claude.engine, run.run_id).reason
    asked = json.dumps(claude.requests[-1]["messages"])
    assert (inherits, True) == ("<parent-context>" in asked and "where!" in asked, "And now?" in asked)


def test_the_live_sentence(claude: Lab) -> None:
    """Text appears while the model writes it."""
    claude.script({"steps": [{"text": "A long sentence " * 20}], "chunk_size": 8, "chunk_delay": 0.5})
    run = claude.start()
    wait_until(
        lambda: "A long sentence" in getattr(claude.engine.snapshots()[0].state, "sentence", ""), "the text", timeout=60
    )
    claude.engine.stop([run.run_id])
    result = result_of(claude.engine, wait_for_end(claude.engine, run.run_id))
    assert (RunReason.STOPPED, True) == (result.reason, result.partial)
    assert (result.final_text or "").startswith("A long sentence")


def test_hostile_text(claude: Lab) -> None:
    """Control characters, invalid characters and line separators are only text, and don't break a run."""
    words = '\x1b[31mred\x1b]0;title\x07 \u2028 \u202e {"type":"result"} \\ " \n---\n#(touch x)'
    claude.script(said(words))
    result = claude.end(claude.start(words))
    assert (RunReason.DONE, words) == (result.reason, result.final_text)


def test_deleting_says_that_the_conversation_stays(claude: Lab) -> None:
    """Deleting a run keeps the conversation, which belongs to Claude Code, and prints where it is kept."""
    result = claude.end(claude.start())
    done = subdeck("rm", result.run_id, cwd=claude.project)
    assert "claude keeps its conversation" in done.err
    assert result.conversation is not None
    assert Path(result.conversation).exists()


def test_a_stream_that_was_kept_is_replayed(claude: Lab) -> None:
    """`subdeck replay` makes the same run again from its recorded output."""
    claude.script(call("Read", file_path=str(claude.project / "notes.md")), said("Done."))
    result = claude.end(claude.start(tools=("read",)))
    kept = Path(claude.engine.project.run_dir(result.run_id), "stdout.log")
    again = subdeck("replay", str(kept), "--json", cwd=claude.project).document
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
def test_what_a_project_brings_along(claude: Lab, fields: dict[str, object], expected: tuple[bool, ...]) -> None:
    """A project's CLAUDE.md is read and its hooks run, unless the preset turns that off. Permissions in an untrusted
    project don't apply.
    """
    (claude.project / "CLAUDE.md").write_text("CONTEXT FILE")
    hook = {"hooks": [{"type": "command", "command": f"touch {claude.project}/hooked"}]}
    settings = {"hooks": {"SessionStart": [hook]}, "permissions": {"allow": ["Write", "Bash(*)"]}}
    (claude.project / ".claude").mkdir()
    (claude.project / ".claude" / "settings.json").write_text(json.dumps(settings))
    claude.preset(name="probing", **fields)
    claude.script(call("Write", file_path=str(claude.project / "written"), content="x"), said("Done."))
    result = claude.end(claude.start(preset="probing"))

    assert RunReason.DONE == result.reason, result.error_message
    context = "CONTEXT FILE" in json.dumps(claude.requests[0])
    assert expected == (context, (claude.project / "hooked").exists(), (claude.project / "written").exists())
