"""The best of compared runs."""

from __future__ import annotations

from subdeck.core.run.comparison import Side, best
from subdeck.core.run.model import Usage

from ...tui.fake_engine import a_run


def side(number: int, status: str = "completed", *, cost: float = 0.0, unpriced: int = 0, seconds: int = 31) -> Side:
    fields = {"duration_ms": seconds * 1000} if status not in ("queued", "running") else {}
    return Side(run=a_run(number, status, usage=Usage(cost=cost, unpriced=unpriced), **fields))


def test_the_cheapest_and_the_fastest_of_the_completed_runs() -> None:
    """Failed and unfinished runs are neither cheapest nor fastest; runs that are alike are all named."""
    sides = [
        side(1, cost=0.3, seconds=9),
        side(2, cost=0.2, seconds=12),
        side(3, "failed", cost=0.1, seconds=1),
        side(4, "running"),
        side(5, cost=0.2, seconds=9),
    ]
    assert best(sides) == {"cost": {1, 4}, "time": {0, 4}}


def test_runs_that_are_all_alike_have_no_best_one() -> None:
    """One completed run, or equal figures, are not compared."""
    assert best([side(1, cost=0.3), side(2, cost=0.3)]) == {"cost": set(), "time": set()}
    assert best([side(1, cost=0.3, seconds=9), side(2, "failed")]) == {"cost": set(), "time": set()}


def test_an_unknown_price_is_not_zero() -> None:
    """Without the price of a run that may be cheaper, none is called the cheapest; one that costs more is no doubt."""
    sides = [side(1, cost=0.3), side(2, cost=0.2)]
    assert best([*sides, side(3, unpriced=500)])["cost"] == set()
    assert best([*sides, side(3, cost=0.4, unpriced=500)])["cost"] == {1}
