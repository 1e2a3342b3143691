"""Every kind of agent: structured results, and the attempts to get one."""

from __future__ import annotations

import pytest

from .kinds import Kind, direct, each, scripted, scripted_talks
from .lab import Lab

pytestmark = pytest.mark.processes


@pytest.fixture(autouse=True)
def preset(lab: Lab) -> None:
    lab.preset(structured_result=True, max_attempts=2)


@each()
def test_a_structured_result(lab: Lab, kind: Kind) -> None:
    """The submitted result is the answer of the run."""
    done, run = lab.run("think Hm.", "hand-over SUCCESS It is in auth.py:4.")
    assert (0, ("completed", "finalized"), 1) == (done.code, run.outcome, run.result["attempts"]), done
    assert lab.is_answer(run, "It is in auth.py:4.")
    assert "SUCCESS" == run.result["finalized"]["status"]
    assert [] == run.events("request")


@each(scripted)
def test_a_second_attempt(lab: Lab, kind: Kind) -> None:
    """An agent that submits nothing is asked again in the same conversation."""
    done, run = lab.run("say I looked.", "then", "hand-over SUCCESS Found it.")
    assert (0, ("completed", "finalized"), 2) == (done.code, run.outcome, run.result["attempts"]), done
    assert ("Found it.", [1, 2]) == (run.answer, [start["attempt"] for start in run.events("run_started")])


@each(scripted_talks)
def test_nothing_is_submitted(lab: Lab) -> None:
    """After the last attempt the run has failed, even if the agent wrote an answer."""
    done, run = lab.run("say I looked.", "then", "say I looked again.")
    assert (1, ("failed", "finalize_missing"), 2) == (done.code, run.outcome, run.result["attempts"]), done


@each(direct)
def test_an_error_is_submitted(lab: Lab) -> None:
    """The agent itself may report that it has failed."""
    done, run = lab.run("hand-over ERROR No network.")
    assert (1, ("failed", "finalize_error")) == (done.code, run.outcome), done
    assert "No network." in run.result["errorMessage"]


@each(scripted_talks)
def test_a_refused_result(lab: Lab) -> None:
    """A result without content is refused, and the agent can correct it in the same turn."""
    done, run = lab.run("hand-over SUCCESS", "hand-over SUCCESS Found it.")
    assert (0, ("completed", "finalized"), "Found it.") == (done.code, run.outcome, run.answer), done
    assert 1 == run.result["attempts"]
    assert [True, False] == [result["isError"] for result in run.events("tool_result")]


@each(direct)
def test_an_error_of_the_model_is_not_asked_again(lab: Lab) -> None:
    """An error of the model ends the run at its first attempt."""
    done, run = lab.run("fail 401 the key is wrong", "then", "hand-over SUCCESS Never.")
    assert (1, ("failed", "model_error"), 1) == (done.code, run.outcome, run.result["attempts"]), done
