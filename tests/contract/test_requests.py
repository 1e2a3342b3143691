"""Every kind of agent: requests to people, replies, and their effect."""

from __future__ import annotations

import pytest

from .kinds import Kind, each, scripted, scripted_talks, talks
from .lab import Lab

pytestmark = pytest.mark.processes

COMMAND = "bash touch made"


@pytest.mark.parametrize("verdict", ["allow", "deny"])
@each(talks)
def test_a_permission_request(lab: Lab, kind: Kind, verdict: str) -> None:
    """The request shows the effect of the call, and nothing is done before a person has allowed it."""
    lab.preset(permissions={"ask": [kind.asked_rule]})
    run = lab.start(COMMAND, "say Asked.")
    request = run.until_request()
    assert ("permission", kind.asked_rule) == (request["kind"], request["rule"])
    assert not (lab.project / "made").exists()
    if kind.program:
        assert ("bash", "touch made") == (request["toolName"], request["command"])
    assert 0 == run.reply(verdict).code
    run.until_ended()
    assert ("completed", "done") == run.outcome
    assert (verdict == "allow" and scripted(kind)) == (lab.project / "made").exists()
    decision = run.events("decision")[0]
    assert (request["id"], verdict) == (decision["request"], decision["verdict"])
    (result,) = [each for each in run.events("tool_result") if each["toolCallId"] == request["toolCallId"]]
    assert (verdict == "deny") == result["isError"]


@each(scripted_talks)
def test_a_denial_with_a_reason(lab: Lab, kind: Kind) -> None:
    """The reason is recorded, and reaches the model if the protocol has a place for it."""
    lab.preset(permissions={"ask": [kind.asked_rule]})
    run = lab.start(COMMAND, "say I was told: {reply}")
    assert 0 == run.reply("deny", "--word", "Not on a Friday.").code
    run.until_ended()
    (decision,) = run.events("decision")
    assert "Not on a Friday." == decision["text"]
    assert kind.takes_reasons == ("Not on a Friday." in run.answer)


@each(scripted_talks)
def test_allowed_for_the_run(lab: Lab, kind: Kind) -> None:
    """A call that was allowed for the rest of the run needs no second permission."""
    lab.preset(permissions={"ask": [kind.asked_rule]})
    run = lab.start(COMMAND, COMMAND, "say Done.")
    assert 0 == run.reply("allow", "--run").code
    run.until_ended()
    assert ("completed", "done") == run.outcome
    assert 1 == len(run.events("request"))
    assert [False, False] == [result["isError"] for result in run.events("tool_result")]


@each(talks)
def test_rules_decide(lab: Lab, kind: Kind) -> None:
    """A call that a rule allows or denies is decided without a request, and the rule is recorded."""
    allowed, denied = ("bash(touch *)", "bash(rmdir *)") if kind.program else ("grep", "read(shop.py)")
    lab.preset(permissions={"allow": [allowed], "deny": [denied]})
    done, run = lab.run("bash touch made", "bash rmdir .pi", "say Ruled.")
    assert (0, []) == (done.code, run.events("request")), done
    decided = {decision["rule"]: decision["verdict"] for decision in run.events("decision")}
    assert "deny" == decided[denied]
    assert (lab.project / ".pi").is_dir()
    if kind.program:
        assert {allowed: "allow", denied: "deny"} == decided
        assert (lab.project / "made").exists()


@each(lambda kind: kind.asks)
def test_without_rules_it_asks_by_itself(lab: Lab, kind: Kind) -> None:
    """In a run without rules, requests from the agent's own settings go to a person."""
    run = lab.start(COMMAND, "say Done.")
    assert "" == run.until_request()["rule"]
    assert 0 == run.reply("allow").code
    run.until_ended()
    assert (lab.project / "made").exists()


@each(lambda kind: kind.asks)
def test_a_non_interactive_run_is_denied(lab: Lab) -> None:
    """The call is denied with a warning, without a request, and the run continues."""
    lab.preset(interactive=False)
    done, run = lab.run(COMMAND, "say I may not.")
    assert (0, "I may not.", []) == (done.code, run.answer, run.events("request")), done
    assert not (lab.project / "made").exists()
    assert [True] == [result["isError"] for result in run.events("tool_result")]
    assert any("denied" in notice["text"] for notice in run.events("notice"))


@each(scripted_talks)
def test_a_denial_as_the_last_word(lab: Lab, kind: Kind) -> None:
    """A run whose agent ends its turn after a denial, without further text, has failed."""
    lab.preset(permissions={"ask": [kind.asked_rule]})
    run = lab.start(COMMAND)
    assert 0 == run.reply("deny").code
    assert 1 == run.wait().code
    assert ("failed", "denied") == run.outcome
    assert "touch made" in run.result["errorMessage"]


@each(talks)
def test_a_request_that_nobody_answers(lab: Lab, kind: Kind) -> None:
    """After `reply_timeout` it is denied, and the decision records that."""
    lab.preset(permissions={"ask": [kind.asked_rule]}, reply_timeout=0.3)
    done, run = lab.run(COMMAND, "say Nobody was there.")
    assert 0 == done.code, done
    decision = run.events("decision")[0]
    assert ("deny", "timeout") == (decision["verdict"], decision["by"])
    assert not (lab.project / "made").exists()


@each(talks)
def test_a_question(lab: Lab, kind: Kind) -> None:
    """A question shows its choices, and the model gets the reply."""
    run = lab.start("question Which file? | auth.py | shop.py", "say You chose {reply}.")
    request = run.until_request()
    assert {"auth.py", "shop.py"} <= set(request["choices"])
    assert 0 == run.reply("auth.py").code
    run.until_ended()
    assert lab.is_answer(run, "You chose auth.py.")
    (decision,) = run.events("decision")
    assert ("reply", "auth.py") == (decision["verdict"], decision["text"])
    late = run.call("reply", request["id"], "shop.py", "--hash", request["hash"])
    assert 2 == late.code
    assert "finished" in late.err


@each(talks)
def test_an_interrupt_withdraws_what_was_asked(lab: Lab, kind: Kind) -> None:
    """The question is gone, and a reply to it has no effect."""
    run = lab.start("question Which file? | auth.py | shop.py", "say Never.", "then", "say Back.")
    run.until_request()
    assert 0 == run.call("interrupt", "--wait", "--timeout", "20").code
    assert [] == lab.cli("requests", "--json").document["requests"]
    assert "withdrawn" in [decision["verdict"] for decision in run.events("decision")]
    assert 0 == run.call("stop", "--kill").code
    run.until_ended()
