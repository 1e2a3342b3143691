"""Daily budgets on the deck."""

from __future__ import annotations

from threading import current_thread

import pytest
from subdeck.core.budget.allowance import DaySpending, Spent
from subdeck.core.paths import now_iso
from subdeck.core.run.model import Usage
from subdeck.tui.deck._bars import UsedUp
from subdeck.tui.feed import bridge

from ..fake_engine import FakeEngine, a_run
from ..open_deck import opened


@pytest.mark.parametrize(("spent", "words"), [(6.12, "today $6.12 of $20.00"), (21.0, "$21.00 of $20.00, used up")])
async def test_the_header_says_what_was_spent_of_the_budget(spent: float, words: str) -> None:
    """With a daily budget the header shows spending against it instead of sums, with a warning if little is left."""
    engine = FakeEngine(a_run(1, "completed", meta_created_at=now_iso(), usage=Usage(input=3000, cost=0.31)))
    engine.spent_today = DaySpending("", Spent(spent, 0.0, 20.0, 0), Spent(1.0, 0.0, None, 0))
    async with opened(engine) as deck:
        await deck.until_text(words)


def stands(spent: float, day: str = "2026-11-23", project: float = 0.0) -> DaySpending:
    return DaySpending(day, Spent(spent, 0.0, 20.0, 0), Spent(project, 0.0, 5.0, 0))


async def test_a_budget_that_is_used_up_is_told_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """A used-up budget is reported once, even without news of this project's runs; the engine's thread reads it."""
    monkeypatch.setattr(bridge, "SPENDING_S", 0.0)
    engine, threads = FakeEngine(a_run(1)), set[str]()
    engine.spent_today = stands(19.0)
    monkeypatch.setattr(engine, "limited_spending", lambda: threads.add(current_thread().name) or engine.spent_today)
    async with opened(engine) as deck:
        await deck.until_text("today $19.00 of $20.00, nearly used up")
        for spent in (20.5, 21.0):
            engine.spent_today = stands(spent)
            engine.tell()
            await deck.until_text(f"today ${spent:.2f} of $20.00, used up")
        assert [
            "The day's budget is used up: $20.50 of $20.00 spent.\nNew runs are refused. Still running: 1 run."
        ] == [toast.text for toast in deck.main.toasts._kept]
    assert "MainThread" not in threads


def test_each_budget_of_each_day_is_told_once() -> None:
    """Each day's budget is reported once, unless it was used up before the app was opened."""
    used_up = UsedUp()
    looks = [stands(20.0), stands(20.0, project=5.0), stands(30.0, project=6.0), stands(0.0, "24"), stands(20.0, "24")]
    assert ["", "The project's", "", "", "The day's"] == [used_up.look(one, 0).partition(" budget")[0] for one in looks]
    assert "" == UsedUp().look(None, 0)
