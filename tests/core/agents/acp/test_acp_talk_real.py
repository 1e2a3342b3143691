"""Messages, interrupts and questions during runs of ACP agents."""

from __future__ import annotations

import os
import signal

import pytest
from subdeck.core.run.events import ToolCall
from subdeck.core.run.model import MessageState, RunReason, Verdict
from subdeck.core.run.snapshot import RunSnapshot

from tests.factories import result_of, started
from tests.real.lab import PATIENCE, Lab
from tests.real.model_server import call, said, texts
from tests.real.programs import CODEX, Acp
from tests.waiting import wait_until

from ...conversed import current, decisions, of, reached, wait_for_request, wait_until_interrupted

pytestmark = [pytest.mark.agents, pytest.mark.processes]

WHOLE = [MessageState.ACCEPTED, MessageState.DELIVERED]
LONG = {"steps": [{"text": "So far so good"}, {"hang": True}]}


def writing(acp: Lab[Acp], run: RunSnapshot) -> None:
    """Wait until the agent is in the middle of a sentence."""
    wait_until(lambda: "good" in acp.engine.snapshots([run.run_id])[0].sentence, "the sentence", PATIENCE)


def test_a_message_ends_the_turn_and_begins_the_next(acp: Lab[Acp]) -> None:
    """A message ends the turn and starts the next one. The text so far is kept."""
    acp.script(LONG, said("With bananas."))
    run = acp.start("Count.")
    writing(acp, run)
    sent = acp.engine.send(run.run_id, "Say bananas.")
    ended = acp.wait(run)
    assert ("done", "With bananas.") == (ended.reason, result_of(acp.engine, ended).final_text)
    assert WHOLE == reached(acp.engine, run, sent.id)
    assert any("Say bananas." in text for request in acp.requests for text in texts(request))


def test_an_interrupted_run_goes_on(acp: Lab[Acp]) -> None:
    """An interrupted run continues in the same process and the same conversation."""
    acp.script(LONG, said("Without waiting."))
    run = acp.start("Wait.")
    writing(acp, run)
    pid = started(acp.engine, run).child_pid
    acp.engine.interrupt(run.run_id)
    assert "operator" == wait_until_interrupted(acp.engine, run).by
    assert current(acp.engine, run).is_interrupted
    sent = acp.engine.send(run.run_id, "Do not wait.")
    ended = acp.wait(run)
    assert ("done", "Without waiting.") == (ended.reason, result_of(acp.engine, ended).final_text)
    assert (WHOLE, pid) == (reached(acp.engine, run, sent.id), started(acp.engine, run).child_pid)


def test_a_stop_of_an_interrupted_run(acp: Lab[Acp]) -> None:
    """Stopping an interrupted run keeps its text, and the agent exits normally."""
    acp.script(LONG)
    run = acp.start("Wait.")
    writing(acp, run)
    acp.engine.interrupt(run.run_id)
    wait_until_interrupted(acp.engine, run)
    acp.engine.stop([run.run_id])
    ended = acp.wait(run)
    result = result_of(acp.engine, ended)
    assert (RunReason.STOPPED, "So far so good", 0) == (ended.reason, result.final_text, result.exit_code)


def test_a_child_that_ends_while_a_message_is_on_its_way(acp: Lab[Acp]) -> None:
    """If the agent dies before it reads a message, the run's result lists the message as undelivered."""
    acp.script(LONG)
    run = acp.start("Wait.")
    writing(acp, run)
    os.kill(started(acp.engine, run).child_pid, signal.SIGSTOP)
    sent = acp.engine.send(run.run_id, "Hurry up.")
    wait_until(lambda: reached(acp.engine, run, sent.id), "the message to be accepted")
    os.kill(started(acp.engine, run).child_pid, signal.SIGKILL)
    ended = acp.wait(run)
    assert [MessageState.ACCEPTED, MessageState.LATE] == reached(acp.engine, run, sent.id)
    result = result_of(acp.engine, ended)
    assert ("agent_exit", ["Hurry up."]) == (ended.reason, [message.text for message in result.undelivered])


def test_a_command_is_allowed_once_for_the_run_and_denied(acp: Lab[Acp]) -> None:
    """A command allowed for the run is not asked about again. A denied command doesn't run."""
    if acp.agent.behind is CODEX:
        pytest.skip("not for this agent: it runs commands in its sandbox and asks nothing")
    target = acp.project / "made"
    append = acp.shell("echo one >> made")
    acp.script(append, append, append, acp.shell("rm made"), said("I may not."))
    run = acp.start()
    for number, verdict in enumerate((Verdict.ALLOW, Verdict.ALLOW_RUN, Verdict.DENY), 1):
        request = wait_for_request(acp.engine, run, number)
        assert ("bash", "rm made" if verdict is Verdict.DENY else "echo one >> made") == (
            request.tool_name,
            request.command,
        )
        assert current(acp.engine, run).is_waiting
        acp.engine.reply(run.run_id, request.id, verdict)
    ended = acp.wait(run)
    assert ("done", "one\none\none\n") == (ended.reason, target.read_text())
    assert [(Verdict.ALLOW, "operator"), (Verdict.ALLOW_RUN, "operator"), (Verdict.ALLOW, "rule")] == [
        (decision.verdict, decision.by) for decision in decisions(acp.engine, run)
    ][:3]
    assert 4 == len(of(ToolCall, acp.engine, run))


def test_an_interrupt_takes_a_question_back(acp: Lab[Acp]) -> None:
    """An interrupt withdraws the pending permission request, and the command doesn't run."""
    if acp.agent.behind is CODEX:
        pytest.skip("not for this agent: it asks nothing")
    acp.script(acp.shell("touch made"), said("Then not."))
    run = acp.start()
    wait_for_request(acp.engine, run)
    acp.engine.interrupt(run.run_id)
    wait_until_interrupted(acp.engine, run)
    assert [Verdict.WITHDRAWN] == [decision.verdict for decision in decisions(acp.engine, run)]
    acp.engine.send(run.run_id, "Leave it.")
    assert ("done", False) == (acp.wait(run).reason, (acp.project / "made").exists())


def test_a_question_of_the_model(acp: Lab[Acp]) -> None:
    """A question from Claude Code's model arrives as a form, and the model gets the reply."""
    if acp.agent.behind is CODEX:
        pytest.skip("not for this agent: its model has no tool to ask with")
    options = [{"label": "Red", "description": "warm"}, {"label": "Blue", "description": "cold"}]
    question = {"question": "Which colour?", "header": "Colour", "options": options, "multiSelect": False}
    acp.script(call("AskUserQuestion", questions=[question]), said("Blue, then."))
    run = acp.start()
    request = wait_for_request(acp.engine, run)
    assert "Which colour?" in request.text
    field = next(field for field in request.fields if field.choices)
    assert ("Red", "Blue") == field.choices
    acp.engine.reply(run.run_id, request.id, Verdict.REPLY, f"{field.name}: Blue")
    assert "done" == acp.wait(run).reason
    assert any("Blue" in text and "Which colour?" in text for request in acp.requests for text in texts(request)), (
        "the answer"
    )
