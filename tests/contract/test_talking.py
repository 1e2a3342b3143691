"""Every kind of agent: messages, interrupts, and continued conversations."""

from __future__ import annotations

import pytest

from .kinds import Kind, direct, each, scripted_talks, talks
from .lab import TASK, Lab

pytestmark = pytest.mark.processes

UNKNOWN = "6f0d1f2e-0000-4000-8000-001795323483"


@each(talks)
def test_a_message_while_it_works(lab: Lab, kind: Kind) -> None:
    """A message reaches the agent in its turn, and counts as delivered once the agent shows it."""
    run = lab.start("touch waiting", "hear", "say Heard: {reply}", "then", "say Heard: {reply}")
    run.until_working()
    assert 0 == run.call("send", "And where is `print`?").code
    if not kind.program:
        assert 0 == run.reply("auth.py").code
    assert 0 == run.wait().code
    assert lab.is_answer(run, "Heard: And where is `print`?")
    assert ["accepted", "delivered"] == [message["state"] for message in run.events("message")]
    assert [] == run.result["undelivered"]
    assert (not kind.steers) == bool([end for end in run.events("usage") if end["stopReason"] == "aborted"])


@each(scripted_talks)
def test_send_waits_for_the_delivery(lab: Lab) -> None:
    """`send --wait` exits with 0 when the message was delivered, and with 2 once the run has finished."""
    run = lab.start("touch waiting", "hear", "say Heard.", "then", "say Heard.")
    run.until_working()
    sent = run.call("send", "--wait", "--timeout", "20", "Hello.")
    assert (0, True) == (sent.code, "delivered" in sent.out), sent
    run.until_ended()
    late = run.call("send", "Too late.")
    assert (2, True) == (late.code, "has finished" in late.err), late


@each(direct)
def test_a_message_at_the_last_moment(lab: Lab) -> None:
    """A message still unread when the agent answers is also answered; that is the answer of the run."""
    run = lab.start("touch waiting", "wait-for now", "say First.")
    run.until_working()
    assert 0 == run.call("send", "And this?").code
    run.until("the message to be accepted", "message")
    (lab.project / "now").touch()
    run.until_ended()
    assert (("completed", "done"), "Heard: And this?") == (run.outcome, run.answer)
    assert ["accepted", "delivered"] == [message["state"] for message in run.events("message")]


@each(talks)
def test_interrupted_and_gone_on(lab: Lab, kind: Kind) -> None:
    """An interrupt ends the turn, not the agent: the next message continues the same conversation."""
    run = lab.start("write So far", "touch waiting", "hang", "then", "say Back: {reply}")
    run.until_working("So far")
    done = run.call("interrupt", "--wait", "--timeout", "20")
    assert (0, True) == (done.code, "interrupted" in done.out), done
    assert 124 == run.call("wait", "--timeout", "0").code
    assert 0 == run.call("send", "--wait", "--timeout", "20", f"{TASK} Now.").code
    run.until_ended()
    assert ("completed", "done") == run.outcome
    assert lab.is_answer(run, f"Back: {TASK} Now.")
    assert 1 == len(run.events("interrupted"))
    assert 1 == len(run.events("run_started"))
    if kind.program:
        assert ["So far", True] == [run.events("assistant_text")[0].get(key) for key in ("text", "partial")]


@each(talks)
def test_interrupted_and_left_alone(lab: Lab, kind: Kind) -> None:
    """Without a message within `idle_timeout` the run ends as interrupted, and keeps its text."""
    lab.preset(idle_timeout=0.3)
    run = lab.start("write So far", "touch waiting", "hang")
    run.until_working("So far")
    assert 0 == run.call("interrupt").code
    run.until_ended()
    assert ("aborted", "interrupted") == run.outcome
    if kind.program:
        assert "So far" == run.answer


@each(talks)
def test_a_message_that_comes_too_late(lab: Lab, kind: Kind) -> None:
    """Messages unread by a dying run are recorded as undelivered, and `send --wait` reports it."""
    run = lab.start("touch waiting", "wait-for now", "die SIGKILL", "then", "hang")
    run.until_working()
    assert 0 == run.call("send", "Anybody there?").code
    run.until("the message to be accepted", "message")
    if kind.steers and kind.program:
        (lab.project / "now").touch()
    else:
        assert 0 == run.call("stop", "--kill").code
    run.until_ended()
    states = [message["state"] for message in run.events("message")]
    assert ["accepted", "late"] == states
    assert 1 == len(run.result["undelivered"])


@each()
def test_a_follow_up(lab: Lab, kind: Kind) -> None:
    """A run with another's session id continues its conversation, and reports only its own usage."""
    first, earlier = lab.run("usage 700 30 0.25", "say First.", "then", "say Second: {reply}")
    session = earlier.result["childSessionId"]
    done, run = lab.run_task(f"{TASK} Again.", flags=("--session-id", session))
    assert (0, 0, ("completed", "done")) == (first.code, done.code, run.outcome), done
    assert session == run.result["childSessionId"]
    if kind.program:
        assert ("First.", f"Second: {TASK} Again.") == (earlier.answer, run.answer)
        assert 100 == run.result["usage"]["input"]
    else:
        assert "This session holds 1 earlier task" in run.answer
    assert "First." in lab.cli("logs", "--session", run.id).out or not kind.program


@each(lambda kind: kind.program != "" and kind.kind != "acp")
def test_a_conversation_that_is_gone(lab: Lab, kind: Kind) -> None:
    """An unknown session id starts no other conversation."""
    lab.run("say First.")
    done = lab.cli(
        "run", "--json", "--session-id", "6f0d1f2e-0000-4000-8000-001795323483", "--", "scout", "parts\nsay X."
    )
    assert done.code in (1, 2), done
    assert "say X." not in done.out.replace("parts\\nsay X.", "")
