"""Every kind of agent: its answer, and the result of a run without a complete one."""

from __future__ import annotations

import pytest

from .kinds import Kind, direct, each, scripted, scripted_talks
from .lab import Lab

pytestmark = pytest.mark.processes


@each()
def test_an_answer(lab: Lab, kind: Kind) -> None:
    """The answer, tokens, cost and conversation are in the result, and each command prints the answer."""
    done, run = lab.run("usage 700 30 0.25", "think Hm.", "say It is in auth.py:4.")
    assert (0, ("completed", "done")) == (done.code, run.outcome), done
    assert lab.is_answer(run, "It is in auth.py:4.")
    assert (False, 1, "") == (run.result["partial"], run.result["attempts"], run.result["errorMessage"] or "")
    assert run.result["childSessionId"]
    assert {"runId": run.id, "finalText": run.answer}.items() <= done.document.items()
    assert f"{run.answer}\n" == lab.cli("answer", run.id).out
    assert "auth.py:4" in run.call("logs").out
    assert ("completed", "done") == tuple(run.call("status", "--json").document["runs"][0][key] for key in STATE)
    if kind.program:
        usage = run.result["usage"]
        assert (700, 30, 1) == (usage["input"], usage["output"], usage["turns"])
        assert (0.25 if kind.priced else None) == done.document["usage"]["cost"]
        assert ["Hm."] == [event["text"] for event in run.events("thinking")]


STATE = ("status", "reason")


@each()
def test_tool_calls(lab: Lab, kind: Kind) -> None:
    """Each call is an event with its arguments, followed by an event with its result."""
    if kind.asks:
        lab.preset(permissions={"allow": ["bash"]}, interactive=True)
    done, run = lab.run("bash echo found", "bash exit 3", "say It is in auth.py:4.")
    assert (0, True) == (done.code, lab.is_answer(run, "It is in auth.py:4.")), done
    calls, results = run.events("tool_call"), run.events("tool_result")
    assert [call["toolCallId"] for call in calls] == [result["toolCallId"] for result in results]
    assert len(calls) == run.result["usage"]["toolUses"] > 0
    if kind.program:
        assert [(kind.command_tool, "echo found"), (kind.command_tool, "exit 3")] == [
            (call["toolName"], call["args"]["command"]) for call in calls
        ]
        assert [False, True] == [result["isError"] for result in results]
        assert "found" in results[0]["content"]
    else:
        assert ["ls", "grep", "read"] == [call["toolName"] for call in calls][:3]


@each(scripted)
def test_an_error_of_the_model(lab: Lab) -> None:
    """The run fails with the model's error, which isn't treated as an answer."""
    check_error(lab, 401)
    assert 1 == lab.cli("answer", "--", lab.runs[0].name).code


@pytest.mark.parametrize("status", [429, 529])
@each(direct)
def test_a_busy_model(lab: Lab, status: int) -> None:
    """The same for an overloaded model, after the agent's last retry."""
    check_error(lab, status)


def check_error(lab: Lab, status: int) -> None:
    done, run = lab.run(f"fail {status} the key is wrong")
    assert (1, ("failed", "model_error"), "") == (done.code, run.outcome, run.answer), done
    assert str(status) in run.result["errorMessage"]
    assert "the key is wrong" in run.result["errorMessage"]
    assert "the key is wrong" in done.err


@each(direct)
def test_a_retry(lab: Lab) -> None:
    """An error after which the agent tries again is recorded, and the run completes."""
    done, run = lab.run("retry 529 overloaded", "say At last.")
    assert (0, ("completed", "done"), "At last.") == (done.code, run.outcome, run.answer), done
    (retry,) = run.events("retry")
    assert "overloaded" in retry["reason"]


@each(scripted)
def test_a_cut_answer(lab: Lab, kind: Kind) -> None:
    """An answer that reaches the length limit is kept, and is never `done`."""
    done, run = lab.run("cut It is in")
    status = "completed" if kind.cut == "truncated" else "failed"
    assert (status != "completed", (status, kind.cut)) == (bool(done.code), run.outcome), done
    assert "It is in" in run.answer


@each(scripted_talks)
def test_no_answer(lab: Lab) -> None:
    """An agent that ends its turn without text has failed."""
    done, run = lab.run("empty")
    assert (1, ("failed", "empty_answer"), "") == (done.code, run.outcome, run.answer), done


@each(scripted)
def test_an_agent_that_is_killed(lab: Lab) -> None:
    """The run fails, reports how the agent ended, and keeps the text so far."""
    check_death(lab, "die SIGKILL")


@pytest.mark.parametrize("code", [0, 3])
@each(direct)
def test_an_agent_that_exits(lab: Lab, code: int) -> None:
    """The same if it exits before its turn has ended, with any exit code."""
    check_death(lab, f"leave {code}")


def check_death(lab: Lab, death: str) -> None:
    done, run = lab.run("write So far", "complain out of luck", death)
    assert (1, ("failed", "agent_exit")) == (done.code, run.outcome), done
    assert ("So far", True) == (run.answer, run.result["partial"])
    assert run.result["errorMessage"]
    assert "out of luck" in run.call("logs", "--stderr").out


@each(scripted_talks)
def test_garbage(lab: Lab) -> None:
    """A line that is not a message of the protocol is a warning, and the run continues."""
    done, run = lab.run("garbage", "say Done.", "garbage")
    assert (0, ("completed", "done"), "Done.") == (done.code, run.outcome, run.answer), done
    (notice,) = [event for event in run.events("notice") if "not an event" in event["text"]]
    assert "warning" == notice["level"]


@each(scripted_talks)
def test_a_closed_stdout(lab: Lab) -> None:
    """An agent that closes its output before its turn has ended is ended, and the run fails."""
    done, run = lab.run("write So far", "close-stdout")
    assert (1, ("failed", "agent_exit"), "So far") == (done.code, run.outcome, run.answer), done


@each(scripted_talks)
def test_an_agent_that_is_slow_to_exit(lab: Lab) -> None:
    """After its answer an agent gets the grace period to exit, then it is ended. The answer counts."""
    done, run = lab.run("linger 1000", "say Done.")
    assert (0, ("completed", "done"), "Done.") == (done.code, run.outcome, run.answer), done
