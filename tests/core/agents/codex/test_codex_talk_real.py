"""Messages, interrupts and questions during runs of Codex."""

from __future__ import annotations

import os
import signal

import pytest
from subdeck.core.run.events import ToolCall, ToolResult
from subdeck.core.run.model import MessageState, Verdict

from tests.factories import result_of, started
from tests.real.lab import Lab
from tests.real.model_server import call, said, texts
from tests.real.programs import CODEX
from tests.waiting import wait_until

from ...conversed import current, decisions, of, reached, wait_for_request, wait_until_interrupted

pytestmark = pytest.mark.agents

ASKING = 'approval_policy = "on-request"\nsandbox_mode = "read-only"'
WHOLE = [MessageState.ACCEPTED, MessageState.DELIVERED]


def escalated(words: str) -> dict[str, object]:
    """A model's turn that requests to run a command outside the sandbox."""
    return call("exec_command", cmd=words, sandbox_permissions="require_escalated", justification="It is needed.")


def test_a_message_in_the_middle_of_a_command(codex: Lab) -> None:
    """A message during a command is in the next request to the model, and counts as delivered then."""
    codex.preset("tools: read, bash")
    codex.script(call("exec_command", cmd="echo begun; sleep 1.5", yield_time_ms=10_000), said("With bananas."))
    run = codex.start("Count.")
    assert run.can_talk
    wait_until(lambda: of(ToolCall, codex.engine, run), "the command to begin")
    sent = codex.engine.send(run.run_id, "Say bananas.")
    ended = codex.wait(run)
    assert ("done", "With bananas.") == (ended.reason, result_of(codex.engine, ended).final_text)
    assert WHOLE == reached(codex.engine, run, sent.id)
    assert [["Count."], ["Count.", "Say bananas."]] == [texts(request) for request in codex.requests]


def test_an_interrupted_run_goes_on(codex: Lab) -> None:
    """An interrupt ends the turn and keeps Codex running. Your next message continues the same conversation."""
    codex.preset("tools: read, bash")
    codex.script(codex.shell("echo begun; sleep 300", "Let me wait."), said("Without waiting."))
    run = codex.start("Wait.")
    wait_until(lambda: of(ToolCall, codex.engine, run), "the command to begin")
    pid = started(codex.engine, run).child_pid
    codex.engine.interrupt(run.run_id)
    assert "operator" == wait_until_interrupted(codex.engine, run).by
    assert current(codex.engine, run).is_interrupted
    sent = codex.engine.send(run.run_id, "Do not wait.")
    ended = codex.wait(run)
    assert ("done", "Without waiting.") == (ended.reason, result_of(codex.engine, ended).final_text)
    assert WHOLE == reached(codex.engine, run, sent.id)
    assert ["Wait.", "Do not wait."] == texts(codex.requests[-1])
    assert pid == started(codex.engine, run).child_pid


def test_a_command_is_allowed_once_for_the_run_and_denied(codex: Lab) -> None:
    """A command allowed for the run is not asked about again. A denied command doesn't run, and the model gets the
    reason.
    """
    codex.configure(settings=ASKING)
    codex.preset()
    codex.script(
        escalated("echo one >> made.txt"),
        escalated("echo one >> made.txt"),
        escalated("echo one >> made.txt"),
        escalated("rm made.txt"),
        said("Done."),
    )
    run = codex.start()
    for number, (verdict, word) in enumerate(
        ((Verdict.ALLOW, ""), (Verdict.ALLOW_RUN, ""), (Verdict.DENY, "Keep that file.")), 1
    ):
        request = wait_for_request(codex.engine, run, number)
        assert ("echo one >> made.txt" if number < 3 else "rm made.txt") == request.command
        assert current(codex.engine, run).is_waiting
        codex.engine.reply(run.run_id, request.id, verdict, word)
    ended = codex.wait(run)
    assert "done" == ended.reason
    assert "one\none\none\n" == (codex.project / "made.txt").read_text()
    assert [
        (Verdict.ALLOW, "operator"),
        (Verdict.ALLOW_RUN, "operator"),
        (Verdict.ALLOW, "rule"),
        (Verdict.DENY, "operator"),
    ] == [(decision.verdict, decision.by) for decision in decisions(codex.engine, run)]
    assert [False, False, False, True] == [result.is_error for result in of(ToolResult, codex.engine, run)]
    assert any("Keep that file." in text for text in texts(codex.requests[-1]))


def test_an_edit_is_shown_before_it_is_made(codex: Lab) -> None:
    """A request to edit a file shows the path and the diff, and nothing is written before you allow it."""
    codex.configure(settings=ASKING)
    codex.preset()
    patch = "*** Begin Patch\n*** Add File: made.txt\n+hello\n*** End Patch"
    codex.script(codex.shell(f"apply_patch <<'EOF'\n{patch}\nEOF"), said("Done."))
    run = codex.start()
    request = wait_for_request(codex.engine, run)
    assert ("edit", (str(codex.project / "made.txt"),)) == (request.tool_name, request.paths)
    assert "+hello" in request.diff
    assert not (codex.project / "made.txt").exists()
    codex.engine.reply(run.run_id, request.id, Verdict.ALLOW)
    ended = codex.wait(run)
    assert ("done", "hello\n") == (ended.reason, (codex.project / "made.txt").read_text())


def test_an_interrupt_takes_a_question_back(codex: Lab) -> None:
    """An interrupt withdraws the pending permission request, and the command doesn't run."""
    codex.configure(settings=ASKING)
    codex.preset()
    codex.script(escalated("touch made.txt"), said("Then not."))
    run = codex.start()
    wait_for_request(codex.engine, run)
    codex.engine.interrupt(run.run_id)
    wait_until_interrupted(codex.engine, run)
    assert [Verdict.WITHDRAWN] == [decision.verdict for decision in decisions(codex.engine, run)]
    codex.engine.send(run.run_id, "Leave it.")
    ended = codex.wait(run)
    assert ("done", False) == (ended.reason, (codex.project / "made.txt").exists())


def test_a_child_that_ends_while_a_message_is_on_its_way(codex: Lab) -> None:
    """If Codex dies before it reads a message, the run's result lists the message as undelivered."""
    codex.preset("tools: read, bash")
    codex.script(codex.shell("echo begun; sleep 300", "Let me wait."), said("Never."))
    run = codex.start()
    wait_until(lambda: of(ToolCall, codex.engine, run), "the command to begin")
    sent = codex.engine.send(run.run_id, "Hurry up.")
    wait_until(lambda: reached(codex.engine, run, sent.id), "the message to be accepted")
    os.kill(started(codex.engine, run).child_pid, signal.SIGKILL)
    ended = codex.wait(run)
    assert [MessageState.ACCEPTED, MessageState.LATE] == reached(codex.engine, run, sent.id)
    result = result_of(codex.engine, ended)
    assert ("agent_exit", "Let me wait.") == (ended.reason, result.final_text)
    assert [(sent.id, "Hurry up.")] == [(message.id, message.text) for message in result.undelivered]


def test_a_stop_ends_the_turn_first(codex: Lab) -> None:
    """A stop ends the turn through Codex's own protocol, without a signal, and the conversation records it."""
    codex.preset("tools: read, bash")
    codex.script(codex.shell("echo begun; sleep 300", "Let me wait."), said("Going on."))
    run = codex.start("Wait.")
    wait_until(lambda: of(ToolCall, codex.engine, run), "the command to begin")
    codex.engine.stop([run.run_id])
    ended = codex.wait(run)
    result = result_of(codex.engine, ended)
    assert ("stopped", 0, None) == (ended.reason, result.exit_code, result.signal)


def test_rules_decide_before_a_person_does(codex: Lab) -> None:
    """Rules deny, allow or ask, and each decision is recorded with its rule."""
    codex.preset(
        "tools: read, bash, edit",
        "permissions: {allow: ['bash(touch *)'], ask: ['bash(mkdir *)'], deny: ['bash(rm *)', 'edit(kept.txt)']}",
    )
    (codex.project / "kept.txt").write_text("kept\n")
    patch = "*** Begin Patch\n*** Update File: kept.txt\n-kept\n+changed\n*** End Patch"
    codex.script(
        CODEX.shell("touch made.txt"),
        CODEX.shell("rm made.txt"),
        CODEX.shell(f"apply_patch <<'EOF'\n{patch}\nEOF"),
        CODEX.shell("mkdir sub"),
        said("Done."),
    )
    run = codex.start()
    request = wait_for_request(codex.engine, run)
    assert ("mkdir sub", "bash(mkdir *)") == (request.command, request.rule)
    codex.engine.reply(run.run_id, request.id, Verdict.ALLOW)
    ended = codex.wait(run)
    assert "done" == ended.reason
    assert [
        (Verdict.ALLOW, "bash(touch *)"),
        (Verdict.DENY, "bash(rm *)"),
        (Verdict.DENY, "edit(kept.txt)"),
        (Verdict.ALLOW, ""),
    ] == [(decision.verdict, decision.rule) for decision in decisions(codex.engine, run)]
    assert {"made.txt", "kept.txt", "sub"} <= {path.name for path in codex.project.iterdir()}
    assert "kept\n" == (codex.project / "kept.txt").read_text()


def test_what_no_rule_mentions_is_asked_where_there_is_a_sandbox(codex: Lab) -> None:
    """In a run with rules, Codex asks about a command that no rule covers."""
    codex.preset("tools: read", "permissions: {deny: ['bash(rm *)']}")
    codex.script(codex.shell("touch made.txt"), said("I may not."))
    run = codex.start()
    request = wait_for_request(codex.engine, run)
    codex.engine.reply(run.run_id, request.id, Verdict.DENY)
    ended = codex.wait(run)
    assert ("done", False) == (ended.reason, (codex.project / "made.txt").exists())
