"""Budgets and token limits of a run."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace
from subdeck.core.agents.child import Start
from subdeck.core.agents.claude.program import child_command
from subdeck.core.agents.pi.stream import PiStream
from subdeck.core.delegation._arguments import subagent_arguments
from subdeck.core.delegation.results import CallRejected
from subdeck.core.run.events import UsageReported
from subdeck.core.run.fold import NESTED, add_usage
from subdeck.core.run.model import Limits, RunReason, Usage
from subdeck.core.run.prices import Price, price_of
from subdeck.core.spec.request import RunRequest
from subdeck.core.wrapper._limits import LAST_WORDS_S, Watchdog

from tests.core.command_line import subdeck, write_preset
from tests.factories import PUPPET, end_of, events_of, make_meta, open_engine, request, result_of, run_to_end

pytestmark = pytest.mark.usefixtures("forked_commands")


def used(cost: float, *, stop: str = "toolUse", tokens: int = 100, **more: bool) -> UsageReported:
    return UsageReported(
        input=tokens, output=0, cache_read=0, cache_write=0, cost=cost, model="m", stop_reason=stop, **more
    )


@pytest.mark.processes
@pytest.mark.parametrize(
    ("limits", "figures"),
    [({"budget": 1.2}, "spent $1.50 of $1.20"), ({"max_tokens": 40}, "used 54 of 40 tokens")],
)
def test_an_overstepped_budget_ends_a_run(project_dir: Path, limits: dict, figures: str) -> None:
    """The run is aborted with the figures, and keeps its partial answer."""
    engine = open_engine(project_dir, limits=limits)
    run = run_to_end(engine, "ask-for-more a", "ask-for-more b", "ask-for-more c", "hang")
    result = result_of(engine, run)
    assert ("aborted", "budget", "c") == (result.status, result.reason, result.final_text)
    assert f"the run reached its budget: {figures}" == result.error_message == end_of(run).message


@pytest.mark.processes
def test_who_has_finished_has_not_overstepped(project_dir: Path) -> None:
    """An answer that uses up the budget with its last message is complete."""
    run = run_to_end(open_engine(project_dir, limits={"budget": 0.5}), "answer The answer.")
    assert ("completed", "The answer.") == (run.status, end_of(run).message)


def test_last_words() -> None:
    """An agent without a further request gets time to finish. One that continues is ended."""
    watchdog = Watchdog(Limits(budget=1.0), 0.0)
    assert None is watchdog.exceeded(5.0, Usage(cost=0.9), True)
    assert None is watchdog.exceeded(6.0, Usage(cost=1.0), False)
    assert 6.0 + LAST_WORDS_S == watchdog.due()
    assert RunReason.BUDGET is watchdog.exceeded(6.1, Usage(cost=1.0), True)
    assert RunReason.BUDGET is watchdog.exceeded(6.0 + LAST_WORDS_S, Usage(cost=1.0), False)


@pytest.mark.processes
def test_attempts_count_together(project_dir: Path) -> None:
    """The first agent's costs count against the second attempt."""
    write_preset(project_dir, extra="structured_result: true\nbudget: 0.5\n")
    engine = open_engine(project_dir)
    run = run_to_end(engine, "answer no result", "end", preset="scout")
    result = result_of(engine, run)
    assert ("aborted", "budget", 1) == (result.status, result.reason, result.attempts)


@pytest.mark.processes
def test_a_call_counts_instead_of_the_preset(project_dir: Path) -> None:
    """The settings' limit always holds, and a parent can only lower a limit."""
    write_preset(project_dir, extra="budget: 0.5\nmax_tokens: 1000\n")
    engine = open_engine(project_dir, limits={"budget": 3})
    found = [
        run_to_end(engine, "answer a", preset="scout", **asked).meta.limits
        for asked in ({}, {"budget": 2.0, "max_tokens": 5}, {"budget": 9.0}, {"budget": 2.0, "only_lowers": True})
    ]
    assert [(0.5, 1000), (2.0, 5), (3.0, 1000), (0.5, 1000)] == [(found.budget, found.max_tokens) for found in found]


@pytest.mark.processes
def test_the_command_line(project_dir: Path) -> None:
    """The amount must be above 0, and the error at the end has the amount spent."""
    open_engine(project_dir)
    assert "above 0 and at most" in subdeck("run", "--no-preset", "--budget", "0", "x", cwd=project_dir).err
    done = subdeck("run", "--no-preset", "--budget", "$0.40", "ask-for-more a\nhang", cwd=project_dir)
    assert (3, True) == (done.code, "spent $0.50 of $0.40" in done.err)


PRICES = (Price("gpt-*", 1.0, 8.0, 0.1), Price("gpt-5", 2.0, 10.0), Price("acme/gpt-5", 4.0, 4.0))


@pytest.mark.parametrize(
    ("model", "price"), [("gpt-5", 2.0), ("openai/gpt-5", 2.0), ("openai/gpt-4", 1.0), ("acme/x", None), ("", None)]
)
def test_which_price_counts(model: str, price: float | None) -> None:
    """A full name overrides one with a star, with or without its provider."""
    found = price_of(model, PRICES)
    assert price == (found and found.input)


def test_a_price_of_all_kinds_of_tokens() -> None:
    """Without its own price, cached input costs the same as input."""
    assert 1.0 + 8.0 + 0.1 + 1.0 == pytest.approx(PRICES[0].of(10**6, 10**6, 10**6, 10**6))


def test_the_agents_sum_takes_the_place_of_estimates() -> None:
    """The agent's total price replaces the estimates before it."""
    sum_ = Usage()
    for event in (used(0.0, priced=False), used(0.3, estimated=True), used(0.5, stop=NESTED, tokens=0)):
        sum_ = add_usage(sum_, event)
    assert (0.5, 0.0, 0) == (sum_.cost, sum_.estimated, sum_.unpriced)


@pytest.mark.processes
def test_the_users_prices_are_in_events_and_result(project_dir: Path) -> None:
    """Event, snapshot and result have the same price, and the budget uses it."""
    puppet = {"command": list(PUPPET), "env": {"PUPPET_COST": "0"}}
    prices = {"puppet": {"input": 100_000, "output": 0}}
    engine = open_engine(project_dir, agents={"puppet": puppet}, prices=prices, limits={"budget": 1.5})
    run = run_to_end(engine, "ask-for-more a", "ask-for-more b", "hang")
    result = result_of(engine, run)
    priced = [(event.cost, event.estimated) for event in events_of(engine, run) if isinstance(event, UsageReported)]
    assert [(1.3, True)] * 2 == [(pytest.approx(cost), estimated) for cost, estimated in priced]
    assert ("aborted", "budget", 2.6) == (result.status, result.reason, pytest.approx(result.usage.cost))
    assert (run.usage, 2.6) == (result.usage, pytest.approx(run.usage.estimated))


@pytest.mark.parametrize(("usage", "priced"), [({"input": 3, "cost": {"total": 0.1}}, True), ({"input": 3}, False)])
def test_what_pi_tells_no_price_of_is_unknown(usage: dict, priced: bool) -> None:
    """A message without a cost has an unknown price, not 0."""
    line = {
        "type": "message_end",
        "message": {"role": "assistant", "content": [], "usage": usage, "stopReason": "stop"},
    }
    events = PiStream().feed(json.dumps(line).encode())
    assert [priced] == [event.priced for event in events if isinstance(event, UsageReported)]


def test_claude_code_gets_the_rest_of_the_budget() -> None:
    """It reports prices only after its turns, so it gets the limit itself. A later attempt gets the rest of
    the budget.
    """
    meta = make_meta(agent="claude", agent_kind="claude", limits=Limits(budget=0.5))
    argv = child_command(Start(meta, "/nowhere", spent=0.2)).argv
    assert "0.3000" == argv[argv.index("--max-budget-usd") + 1]
    assert "--max-budget-usd" not in child_command(Start(make_meta(agent="claude"), "/nowhere")).argv


@pytest.mark.parametrize("amounts", [{"budget": 0}, {"budget": True}, {"maxTokens": 1.5}, {"maxTokens": "9"}])
def test_a_parents_amounts_are_checked(amounts: dict) -> None:
    """An amount that is not a number above 0 is rejected by name."""
    with pytest.raises(CallRejected) as caught:
        subagent_arguments({"preset": "p", "task": "t", **amounts}, isolated=False)
    assert list(amounts) == [error.field for error in caught.value.errors]


def test_a_parent_sets_amounts() -> None:
    """The amounts are part of each task."""
    _, (task,) = subagent_arguments({"preset": "p", "task": "t", "budget": 0.5, "maxTokens": 100}, isolated=False)
    assert (0.5, 100) == (task.spec.budget, task.spec.max_tokens)


def test_a_budget_needs_a_price(project_dir: Path) -> None:
    """An agent that reports no price is refused, unless its price is set or tokens are limited."""
    program = project_dir / "qwen"  # it reports tokens with each request, but no price
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    acp = {"robot": {"command": [str(program)], "kind": "acp"}}
    asked = request("x", agent="robot", budget=1.0, model="acme/x")

    def problems(asked: RunRequest, **settings: Any) -> list[str]:
        return [
            problem.where for problem in open_engine(project_dir, agents=acp, agent="robot", **settings).check(asked)
        ]

    assert ["budget"] == problems(asked)
    assert [] == problems(replace(asked, max_tokens=1000))
    assert [] == problems(asked, prices={"acme/*": {"input": 1, "output": 2}})
