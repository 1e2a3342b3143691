"""Runs of Codex with a scripted model."""

from __future__ import annotations

import json
import os
import signal
from pathlib import Path
from typing import Any

import pytest
from subdeck.core.agents.codex import _program
from subdeck.core.run.events import AssistantText, Notice, Retry, Thinking, ToolCall, ToolResult
from subdeck.core.run.outcome import FINALIZE_TOOL
from subdeck.core.run.snapshot import RunSnapshot

from tests.factories import events_of, result_of, run_wrappers_with, started, wait_until_gone
from tests.real.lab import Lab
from tests.real.model_server import call, offered, said, texts
from tests.real.programs import CODEX
from tests.waiting import wait_until

from ..pi.session_file import SessionFile

pytestmark = pytest.mark.agents

LONG = "echo begun; sleep 300"


@pytest.fixture
def by_exec(codex: Lab) -> Lab:
    """A Codex whose app-server cannot be used, like one of another version."""
    command = tuple(codex.engine.settings.agents["codex"].command)
    assert "" == _program.app_server_problem(command)
    file = _program._cache_file(command)
    verdict = json.loads(Path(file).read_text())
    Path(file).write_text(json.dumps({**verdict, "problem": "its app-server does not know a thing"}))
    return codex


def of(kind: type, codex: Lab, run: RunSnapshot) -> list[Any]:
    return [event for event in events_of(codex.engine, run) if isinstance(event, kind)]


def test_a_run(codex: Lab) -> None:
    """A task that starts with a dash and an at sign works, with a command, thinking and an answer."""
    codex.preset("thinking: high", "tools: read", prompt="You are a scout.")
    thinking = {"steps": [{"thinking": "A look will do."}, *CODEX.shell("cat notes.md", "Let me look.")["steps"]]}
    codex.script(thinking, said("Seen."))
    (codex.project / "notes.md").write_text("a note\n")
    run = codex.run("- @look at it")
    assert ("completed", "done", "Seen.") == (run.status, run.reason, result_of(codex.engine, run).final_text)
    assert ["A look will do."] == [event.text for event in of(Thinking, codex, run)]
    assert ["Let me look.", "Seen."] == [event.text for event in of(AssistantText, codex, run)]
    (call,), (result,) = of(ToolCall, codex, run), of(ToolResult, codex, run)
    assert ("bash", {"command": "cat notes.md"}) == (call.tool_name, call.args)
    assert ("a note\n", 0, False) == (result.content, result.exit_code, result.is_error)
    ended = result_of(codex.engine, run)
    assert (2, 1, 200) == (ended.usage.turns, ended.usage.tool_uses, ended.usage.input)
    assert "mock/mock-model" == ended.resolved_model
    (first, _) = codex.requests
    assert ["- @look at it"] == texts(first)
    assert any("You are a scout." in text for text in texts(first, "developer"))
    assert ("high", "mock-model") == (first["reasoning"]["effort"], first["model"])


def test_a_conversation_goes_on_by_its_id(codex: Lab, home: Path) -> None:
    """A conversation is continued by its id. Each run counts only its own tokens, and shows where Codex stores the
    conversation.
    """
    codex.preset()
    codex.script(said("One."), said("Two."))
    first = result_of(codex.engine, codex.run("Say one."))
    assert first.conversation and first.conversation.startswith(str(home / ".codex" / "sessions"))
    assert os.path.isfile(first.conversation)
    second = result_of(codex.engine, codex.run("Say two.", child_session=first.child_session_id))
    assert [["Say one."], ["Say one.", "Say two."]] == [texts(request) for request in codex.requests]
    assert (first.child_session_id, first.conversation) == (second.child_session_id, second.conversation)
    assert (1, 100) == (second.usage.turns, second.usage.input)


def test_a_session_that_is_not_kept(codex: Lab, home: Path) -> None:
    """With `session: none`, the conversation is not kept."""
    codex.preset("session: none")
    codex.script(said("One."))
    ended = result_of(codex.engine, codex.run())
    assert (None, None) == (ended.child_session_id, ended.conversation)
    assert [] == list((home / ".codex" / "sessions").rglob("*.jsonl"))


def test_a_sticky_session_is_shared(codex: Lab) -> None:
    """Sticky runs share one conversation, one after the other, even if they are launched together. subdeck stores only
    its id.
    """
    codex.preset("sticky: true")
    codex.script(said("One."), said("Two."), said("Three."))
    together = [codex.wait(run) for run in codex.launch("Say it.", "Say it too.")]
    last = codex.run("Say it again.")
    asked = [texts(request) for request in codex.requests]
    assert [1, 2, 3] == [len(prompts) for prompts in asked]
    assert [*asked[1], "Say it again."] == asked[2]
    ids = {result_of(codex.engine, run).child_session_id for run in (*together, last)}
    assert 1 == len(ids)
    id_file = last.meta.agent_session and last.meta.agent_session.id_file
    assert id_file and {Path(id_file).read_text().strip()} == ids


def test_a_sticky_session_that_is_gone_begins_anew(codex: Lab) -> None:
    """If a sticky conversation was deleted, one run fails with an error. The next run starts a new conversation."""
    codex.preset("sticky: true")
    codex.script(said("One."), said("Two."))
    first = result_of(codex.engine, codex.run())
    assert first.conversation
    os.unlink(first.conversation)
    for file in (codex.home / ".codex").glob("*.sqlite*"):
        file.unlink()
    gone = codex.run()
    assert ("failed", "start_failed") == (gone.status, gone.reason)
    assert "no rollout found" in (result_of(codex.engine, gone).error_message or "")
    assert "done" == codex.run().reason


def test_a_result_is_handed_over(codex: Lab) -> None:
    """Codex can correct a refused structured result in the same turn. If it submits none, it is asked again."""
    codex.preset("structured_result: true")
    codex.script(
        call(FINALIZE_TOOL, status="DONE"),
        said("I think I am done."),
        call(FINALIZE_TOOL, status="SUCCESS", result="It is in a.py."),
        said("Bye."),
    )
    run = codex.run()
    ended = result_of(codex.engine, run)
    assert ("completed", "finalized", "It is in a.py.", 2) == (
        run.status,
        run.reason,
        ended.final_text,
        ended.attempts,
    )
    (retry,) = of(Retry, codex, run)
    assert "expected SUCCESS or ERROR" in retry.reason
    assert FINALIZE_TOOL in offered(codex.requests[0])
    assert FINALIZE_TOOL in offered(codex.requests[2]), "a resumed conversation has the tool, too"


def test_readers_write_nothing(codex: Lab) -> None:
    """With tools that only read, the sandbox blocks writing. The model gets the reason, and the run continues."""
    codex.preset("tools: read, grep")
    codex.script(codex.shell("sleep 0.5; touch made.txt"), said("I could not write."))
    run = codex.run()
    (result,) = of(ToolResult, codex, run)
    assert result.is_error and "Read-only file system" in result.content
    assert not (codex.project / "made.txt").exists()
    assert "done" == run.reason
    assert {"web_search", "multi_agent_v1", "create_goal"}.isdisjoint(offered(codex.requests[0]))


def test_a_writer_writes_in_the_project_alone(codex: Lab) -> None:
    """With tools that write, Codex can write to the project and to temporary directories only."""
    codex.preset("tools: read, bash")
    outside = Path("/var/lib" if Path(__file__).is_relative_to("/tmp") else __file__).with_name(
        f"outside-{os.getpid()}"
    )
    codex.script(codex.shell(f"sleep 0.5; touch made.txt; touch {outside}"), said("Done."))
    codex.run()
    assert (codex.project / "made.txt").exists()
    assert not outside.exists()


def test_no_tools(codex: Lab) -> None:
    """With an empty tool list, Codex has no tool that can do anything."""
    codex.preset("tools: []")
    codex.script(said("Done."))
    codex.run()
    assert offered(codex.requests[0]) <= {"request_user_input"}


def test_a_question_is_declined(codex: Lab) -> None:
    """Without a tool list, your own permissions apply. In a non-interactive run, permission requests are denied with a
    warning.
    """
    codex.configure(settings='approval_policy = "on-request"\nsandbox_mode = "read-only"')
    codex.preset("interactive: false")
    asking = {"sandbox_permissions": "require_escalated", "justification": "It is needed."}
    codex.script(call("exec_command", cmd="touch made.txt", **asking), said("I was not allowed."))
    run = codex.run()
    assert not (codex.project / "made.txt").exists()
    assert any(
        "warning" == event.level and "declined" in event.text and "touch made.txt" in event.text
        for event in of(Notice, codex, run)
    )
    assert ("done", True) == (run.reason, of(ToolResult, codex, run)[0].is_error)


def test_what_a_project_brings_along(codex: Lab) -> None:
    """`context_files: false` and `project_resources: false` exclude a project's files, even if you trust the
    project.
    """
    codex.configure(tables=f'[projects."{codex.project}"]\ntrust_level = "trusted"')
    (codex.project / "AGENTS.md").write_text("MARK-AGENTS")
    skill = codex.project / ".agents" / "skills" / "shop" / "SKILL.md"
    skill.parent.mkdir(parents=True)
    skill.write_text("---\nname: shop\ndescription: MARK-SKILL\n---\n")
    (codex.project / ".codex").mkdir()
    (codex.project / ".codex" / "config.toml").write_text('developer_instructions = "MARK-CONFIG"\n')
    found: list[set[str]] = []
    for field in ("isolated: false", "context_files: false", "project_resources: false"):
        codex.preset(field, prompt="")
        codex.script(said("Done."))
        codex.run()
        asked = json.dumps(codex.requests[0])
        found.append({mark for mark in ("MARK-AGENTS", "MARK-SKILL", "MARK-CONFIG") if mark in asked})
    assert [{"MARK-AGENTS", "MARK-SKILL", "MARK-CONFIG"}, {"MARK-SKILL", "MARK-CONFIG"}, set()] == found


def test_servers_know_whose_child_starts_them(codex: Lab, tmp_path: Path) -> None:
    """MCP servers that Codex starts get the run's id, so subdeck's own server doesn't offer to start more runs."""
    seen = tmp_path / "environment"
    codex.configure(tables=f'[mcp_servers.shop]\ncommand = "sh"\nargs = ["-c", "env > {seen}; exec cat"]\n')
    codex.preset()
    codex.script(said("Done.", delay=2))
    run = codex.run()
    assert {"PI_SUBAGENTS_CHILD=1", f"SUBDECK_RUN_ID={run.run_id}"} <= set(seen.read_text().splitlines())


@pytest.mark.parametrize("force", [False, True])
def test_an_end_in_the_middle_of_a_command(codex: Lab, force: bool) -> None:
    """Stopping or killing a run during a command leaves no process, and keeps the text so far."""
    codex.preset("tools: read, bash")
    codex.script(codex.shell(LONG, "Let me wait."), said("Done."))
    run = codex.start()
    wait_until(lambda: of(ToolCall, codex, run), "the command to begin")
    codex.engine.stop([run.run_id], force=force)
    ended = codex.wait(run)
    assert ("aborted", "killed" if force else "stopped") == (ended.status, ended.reason)
    result = result_of(codex.engine, ended)
    assert ("Let me wait.", ()) == (result.final_text, result.not_ended)
    assert result.child_session_id
    codex.script(said("Going on."))
    again = codex.run("Go on.", child_session=result.child_session_id)
    assert "done" == again.reason


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGKILL])
def test_a_signal_that_nobody_of_ours_sent(codex: Lab, number: signal.Signals) -> None:
    """If another program ends Codex, the run fails with any exit code, and keeps the text so far."""
    codex.preset("tools: read, bash")
    codex.script(codex.shell(LONG, "Let me wait."), said("Done."))
    run = codex.start()
    wait_until(lambda: of(ToolCall, codex, run), "the command to begin")
    os.kill(started(codex.engine, run).child_pid, number)
    ended = codex.wait(run)
    assert (("failed", "agent_exit"), "Let me wait.") == (
        (ended.status, ended.reason),
        result_of(codex.engine, ended).final_text,
    )


def test_going_on_after_the_wrapper_was_killed(codex: Lab) -> None:
    """After the wrapper was killed, the conversation can still be continued by its id."""
    codex.preset("tools: read, bash")
    codex.script(codex.shell(LONG, "Let me wait."), said("Going on."))
    run = codex.start("Wait a while.")
    wait_until(lambda: of(ToolCall, codex, run), "the command to begin")
    wrapper = started(codex.engine, run).pid
    os.kill(wrapper, signal.SIGKILL)
    wait_until_gone(wrapper)
    (lost,) = codex.engine.wait([run.run_id], timeout=60)
    result = result_of(codex.engine, lost)
    assert ("lost", "Let me wait.") == (lost.reason, result.final_text)
    assert result.conversation and os.path.isfile(result.conversation)
    assert "done" == codex.run("Go on.", child_session=result.child_session_id).reason
    assert ["Wait a while.", "Go on."] == texts(codex.requests[-1])


SLOW = {"steps": [*CODEX.shell("ls")["steps"], {"sleep": 2}, {"text": "Listed."}]}
SLOW_TO_COUNT = """
import time
from subdeck.core.agents.codex._stream import CodexStream
real = CodexStream.paid
def paid(stream, *args, **options):
    if stream.facts.usage.turns == 1:
        time.sleep(1)
    return real(stream, *args, **options)
CodexStream.paid = paid
"""
HANDED_IN = {"status": "SUCCESS", "result": "Found."}


@pytest.mark.parametrize("talk", ["true", "false"])
@pytest.mark.parametrize(
    "turn", [CODEX.shell("ls"), CODEX.shell("true"), SLOW], ids=["lists", "does nothing", "goes on"]
)
def test_a_limit_of_turns(codex: Lab, turn: dict[str, Any], talk: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The model never gets more requests than `max_turns`."""
    run_wrappers_with(monkeypatch, SLOW_TO_COUNT)
    codex.preset("max_turns: 2", "tools: read", f"interactive: {talk}")
    codex.script(turn)
    run = codex.run()
    used = result_of(codex.engine, run).usage
    assert ("aborted", "max_turns", 2, 2) == (run.status, run.reason, used.turns, len(codex.requests))
    assert (100, 1) == (used.input, used.uncounted) or (200, 0) == (used.input, used.uncounted)


def test_the_last_turn_may_hand_over(codex: Lab) -> None:
    """A structured result can be submitted in the last turn. Codex then makes one more request."""
    codex.preset("max_turns: 2", "tools: read", "structured_result: true")
    codex.script(codex.shell("ls"), call(FINALIZE_TOOL, **HANDED_IN), said("Bye."))
    run = codex.run()
    assert ("completed", "finalized") == (run.status, run.reason)


def test_a_refused_last_turn(codex: Lab) -> None:
    """A structured result refused in the last turn can't be submitted again."""
    codex.preset("max_turns: 1", "tools: read", "structured_result: true")
    codex.script(call(FINALIZE_TOOL, status="SUCCESS"), call(FINALIZE_TOOL, **HANDED_IN))
    run = codex.run()
    assert ("aborted", "max_turns", 1) == (run.status, run.reason, len(codex.requests))


def test_a_limit_of_time(codex: Lab) -> None:
    """A time limit ends the run and keeps the unfinished text."""
    codex.preset("timeout: 3")
    codex.script({"steps": [{"text": {"repeat": ["ab", 10_000]}}], "chunk_size": 2, "chunk_delay": 0.1})
    run = codex.run()
    assert ("aborted", "timeout") == (run.status, run.reason)
    ended = result_of(codex.engine, run)
    assert ("abababab", True) == ((ended.final_text or "")[:8], ended.partial)


def test_a_limit_of_silence(codex: Lab) -> None:
    """`stall` ends a run whose model stops responding."""
    codex.preset("stall: 3")
    codex.script({"steps": [{"text": "So far."}, {"hang": True}]})
    run = codex.run()
    assert ("aborted", "stalled", "So far.") == (run.status, run.reason, result_of(codex.engine, run).final_text)


def test_a_silent_command_is_no_stall(codex: Lab) -> None:
    """`stall` doesn't end a run while a command is running, however long it takes."""
    codex.preset("stall: 2", "tools: read, bash")
    codex.script(call("exec_command", cmd="sleep 4", yield_time_ms=10_000), said("Slept."))
    run = codex.run()
    assert ("done", "Slept.") == (run.reason, result_of(codex.engine, run).final_text)


@pytest.mark.parametrize("inherits", ["true", "false"])
def test_a_parents_conversation(codex: Lab, tmp_path: Path, inherits: str) -> None:
    """The parent's conversation goes before the task if the preset asks for it."""
    parent = SessionFile(tmp_path / "parent.jsonl")
    parent.turn("where")
    codex.preset(f"inherit_context: {inherits}")
    codex.script(said("Now."))
    assert "done" == codex.run("And now?", parent_session=str(parent.path)).reason
    asked = json.dumps(codex.requests[-1]["input"])
    assert (inherits == "true", True) == ("<parent-context>" in asked and "where!" in asked, "And now?" in asked)


@pytest.mark.parametrize(
    ("turn", "reason", "words"),
    [
        ({"status": 400, "body": {"error": {"message": "too many things"}}}, "model_error", "too many things"),
        ({"status": 401}, "model_error", "the provider refused the login"),
        ({"status": 529}, "model_error", "the model's server is overloaded"),
        ({"status": 429}, "model_error", "429 Too Many Requests"),
        ({"status": 500}, "model_error", "the model's server failed"),
        ({"steps": [{"text": "It begins and"}, {"drop": True}]}, "model_error", "stream disconnected"),
        (said("It begins and", stop_reason="max_tokens"), "model_error", "max_output_tokens"),
        ({"steps": []}, "empty_answer", "without writing any text"),
    ],
)
def test_an_end_that_is_no_answer(codex: Lab, turn: dict[str, Any], reason: str, words: str) -> None:
    """If a turn ends without a complete answer, the run fails with the reason and keeps the text so far."""
    codex.preset()
    codex.script(turn)
    run = codex.run()
    ended = result_of(codex.engine, run)
    assert ("failed", reason) == (run.status, run.reason)
    assert words in (ended.error_message or "") and "{" not in (ended.error_message or "")
    if ended.final_text:
        assert ("It begins and", True) == (ended.final_text, ended.partial)


def test_a_retry(codex: Lab) -> None:
    """If the connection breaks, Codex tries again. The retry is recorded, and the answer is the complete message."""
    codex.configure(retries=1)
    codex.preset()
    codex.script({"steps": [{"text": "It begins and"}, {"drop": True}]}, said("The whole answer."))
    run = codex.run()
    (retry,) = of(Retry, codex, run)
    assert (1, 1) == (retry.attempt, retry.max_attempts)
    assert ("done", "The whole answer.") == (run.reason, result_of(codex.engine, run).final_text)


def test_hostile_text(codex: Lab) -> None:
    """Text from the model is only text, even with control characters or JSON in it."""
    text = '\x1b]0;x\x07\u2028{"method":"turn/completed"}\n' + "ü𝄞" * 5000
    codex.preset()
    codex.script(said(text))
    run = codex.run()
    assert ("done", text) == (run.reason, result_of(codex.engine, run).final_text)


def test_agents_that_codex_starts(codex: Lab) -> None:
    """The text and the end of a nested agent are not the run's answer and end."""
    codex.preset()
    spawn = {"name": "spawn_agent", "namespace": "multi_agent_v1", "arguments": {"message": "BELOW"}}
    codex.script(
        {"when": {"last_contains": "BELOW"}, **said("Of the one below.")},
        {"steps": [{"tool_calls": [spawn]}]},
        {"steps": [{"sleep": 1}, {"text": "The answer."}]},
    )
    run = codex.run()
    assert ("done", "The answer.") == (run.reason, result_of(codex.engine, run).final_text)
    assert {"The answer."} == {event.text for event in of(AssistantText, codex, run)}
    assert "spawn_agent" in [event.tool_name for event in of(ToolCall, codex, run)]


def test_no_words_of_a_prompt_stand_in_an_argv(codex: Lab) -> None:
    """The prompt and the task are never in the arguments of a process."""
    codex.preset(prompt="SECRET-PROMPT")
    codex.script({"steps": [{"hang": True}]})
    run = codex.start("SECRET-TASK")
    wait_until(lambda: codex.requests, "the model to be asked")
    argv = [Path(f"/proc/{pid}/cmdline") for pid in os.listdir("/proc") if pid.isdigit()]
    assert not any(b"SECRET" in file.read_bytes() for file in argv if file.exists())
    codex.engine.stop([run.run_id], force=True)
    codex.engine.wait([run.run_id], timeout=60)


# --- codex exec ---


def test_exec_in_its_place(by_exec: Lab) -> None:
    """If the app-server lacks a feature, the run uses `codex exec`, with a note and without live text."""
    by_exec.preset("tools: read", "thinking: low", prompt="You are a scout.")
    by_exec.script(by_exec.shell("sleep 0.5; cat notes.md"), said("Seen."), said("Again."))
    (by_exec.project / "notes.md").write_text("a note\n")
    run = by_exec.run("Look.")
    ended = result_of(by_exec.engine, run)
    assert ("done", "Seen.", 200) == (run.reason, ended.final_text, ended.usage.input)
    assert ["a note\n"] == [event.content for event in of(ToolResult, by_exec, run)]
    notices = [event.text for event in of(Notice, by_exec, run)]
    assert any("using codex exec" in text for text in notices)
    assert any(text.startswith("prompt:") for text in notices)
    assert ended.conversation and os.path.isfile(ended.conversation)
    assert "You are a scout." in texts(by_exec.requests[0])[0]
    again = by_exec.run("Look again.", child_session=ended.child_session_id)
    assert (1, 100) == (result_of(by_exec.engine, again).usage.turns, result_of(by_exec.engine, again).usage.input)


def test_exec_that_cannot_begin(by_exec: Lab) -> None:
    """If `codex exec` exits without output, the run's message has its exit code and stderr."""
    by_exec.configure(settings="no toml at all")
    by_exec.preset()
    run = by_exec.run()
    assert ("failed", "start_failed") == (run.status, run.reason)
    assert "config.toml" in (result_of(by_exec.engine, run).error_message or "")


def test_exec_is_stopped(by_exec: Lab) -> None:
    """A run with `codex exec` can be stopped during a command."""
    by_exec.preset("tools: read, bash")
    by_exec.script(by_exec.shell(LONG, "Let me wait."))
    run = by_exec.start()
    wait_until(lambda: of(ToolCall, by_exec, run), "the command to begin")
    by_exec.engine.stop([run.run_id])
    ended = by_exec.wait(run)
    assert ("aborted", "stopped") == (ended.status, ended.reason)


def test_exec_fails(by_exec: Lab) -> None:
    """A provider error fails a run with `codex exec`, with the provider's message."""
    by_exec.preset()
    by_exec.script({"status": 400, "body": {"error": {"message": "too many things"}}})
    run = by_exec.run()
    assert ("model_error", "too many things") == (run.reason, result_of(by_exec.engine, run).error_message)
