"""Every kind of agent: ends of a run before its agent has finished."""

from __future__ import annotations

import pytest

from .kinds import ACP, Kind, direct, each, scripted, scripted_talks
from .lab import Lab

pytestmark = pytest.mark.processes

QUICK, LONG = "bash true", "bash sleep 60"
"""A run that reaches a limit is ended during the second one."""
HANGS = ("write So far", "touch waiting", "hang")


@pytest.mark.parametrize(("flag", "reason"), [((), "stopped"), (("--kill",), "killed")], ids=["stop", "kill"])
@each()
def test_a_stop(lab: Lab, kind: Kind, flag: tuple[str, ...], reason: str) -> None:
    """Stopping and killing end the agent, and keep the text so far."""
    run = lab.start(*HANGS)
    run.until_working("So far")
    assert 0 == run.call("stop", *flag).code
    assert 3 == run.wait().code
    assert ("aborted", reason) == run.outcome
    if kind.program:
        assert ("So far", True) == (run.answer, run.result["partial"])
    again = run.call("stop")
    assert 0 == again.code, again


@each(scripted_talks)
def test_a_stop_in_the_middle_of_a_command(lab: Lab, kind: Kind) -> None:
    """No process of the agent is left."""
    if kind.asks:
        lab.preset(permissions={"allow": ["bash"]})
    run = lab.start("bash touch waiting; sleep 1000 & sleep 1000; wait", "say Never.")
    run.until_working()
    assert 0 == run.call("stop").code
    run.until_ended()
    assert ("aborted", "stopped") == run.outcome


@each(scripted_talks)
def test_an_agent_that_ignores_signals(lab: Lab) -> None:
    """After the grace period it is killed."""
    run = lab.start("deaf", "write So far", "touch waiting", "wait-for never")
    run.until_working("So far")
    assert 0 == run.call("stop").code
    run.until_ended()
    assert (("aborted", "stopped"), "So far") == (run.outcome, run.answer)


@each(scripted)
def test_a_limit_of_time(lab: Lab, kind: Kind) -> None:
    """A run over its time ends, and keeps the text so far."""
    check_time(lab, "timeout", 6 if kind is ACP else 2)


@each(direct)
def test_a_limit_of_silence(lab: Lab) -> None:
    """A run whose agent is idle for too long ends, and keeps the text so far."""
    check_time(lab, "stall", 2, reason="stalled")


def check_time(lab: Lab, limit: str, seconds: float, reason: str = "timeout") -> None:
    lab.preset(**{limit: seconds})
    done, run = lab.run("write So far", "hang")
    assert (3, ("aborted", reason), "So far") == (done.code, run.outcome, run.answer), done


@each(lambda kind: kind.counts_turns)
def test_max_turns(lab: Lab, kind: Kind) -> None:
    """The model gets no further request after `max_turns`."""
    lab.preset(max_turns=2, permissions={"allow": ["bash"]} if kind.asks else {})
    done, run = lab.run(QUICK, LONG, "say Never.", SUBDECK_OFFLINE_PACE="0.1")
    assert (3, ("aborted", "max_turns")) == (done.code, run.outcome), done
    assert 1 <= len(run.events("tool_call")) <= 2  # it ends with the request that asks for the second
    assert "Never" not in run.answer


@each(lambda kind: not kind.counts_turns)
def test_max_turns_that_nobody_counts(lab: Lab) -> None:
    """A run with such a limit is refused if the agent doesn't report its turns."""
    lab.preset(max_turns=2)
    assert "max_turns" in lab.refused()


@each(lambda kind: scripted(kind) and kind.priced and kind.reports_each_message)
def test_a_budget(lab: Lab, kind: Kind) -> None:
    """A run ends once it has spent its budget."""
    lab.preset(permissions={"allow": ["bash"]} if kind.asks else {})
    done, run = lab.run("usage 100 20 0.25", QUICK, LONG, "say Never.", flags=("--budget", "0.4"))
    assert (3, ("aborted", "budget")) == (done.code, run.outcome), done
    assert 0.5 == run.result["usage"]["cost"]


@each(lambda kind: scripted(kind) and kind.reports_each_message)
def test_max_tokens(lab: Lab, kind: Kind) -> None:
    """A run ends once it has used its tokens."""
    lab.preset(permissions={"allow": ["bash"]} if kind.asks else {})
    calls = (QUICK, QUICK, LONG) if kind.reports_after_calls else (QUICK, LONG)
    done, run = lab.run(*calls, "say Never.", flags=("--max-tokens", "200"))
    assert (3, ("aborted", "budget")) == (done.code, run.outcome), done
    assert 240 == run.result["usage"]["input"] + run.result["usage"]["output"]


@pytest.mark.parametrize("flags", [("--budget", "0.4"), ("--max-tokens", "200")], ids=["budget", "max_tokens"])
@each(lambda kind: not kind.reports_each_message)
def test_a_limit_that_nobody_reports(lab: Lab, flags: tuple[str, ...]) -> None:
    """A run with such a limit is refused if the agent reports its usage only after each turn."""
    assert flags[0].removeprefix("--").replace("-", "_") in lab.refused(*flags)
