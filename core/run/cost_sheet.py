"""Costs of runs: by period, and by preset, model or agent; pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import datetime, time, timedelta
from enum import StrEnum

from msgspec import Struct

from ..text.plain import one_line
from .describe import AND_MORE, UNKNOWN, known_cost, moment, tokens
from .model import readable_preset
from .snapshot import RunSnapshot


class Period(StrEnum):
    TODAY = "today"
    """Since midnight in the reader's time zone."""
    WEEK = "week"
    """Today and the six days before."""
    ALL = "all"


class Spent(Struct, frozen=True, rename="camel"):
    """Sums over some runs; cost in dollars."""

    runs: int = 0
    tokens: int = 0
    cost: float = 0.0
    failed: int = 0
    unpriced: int = 0
    """Tokens without a reported price: not in the cost."""

    def plus(self, run: RunSnapshot) -> Spent:
        return Spent(
            self.runs + 1,
            self.tokens + run.usage.tokens,
            self.cost + run.usage.cost,
            self.failed + (run.status == "failed"),
            self.unpriced + run.usage.unpriced,
        )


class CostLine(Struct, frozen=True):
    """Cost of the runs of one preset, model or agent in each period."""

    name: str
    spent: dict[Period, Spent]


class CostSheet(Struct, frozen=True, rename="camel"):
    """A line for each name, the most expensive of all time first."""

    total: dict[Period, Spent]
    by_preset: tuple[CostLine, ...]
    by_model: tuple[CostLine, ...]
    by_agent: tuple[CostLine, ...]


NOT_COUNTED = "Deleted and untrusted runs are not counted."
NO_MODEL = "no model"
_NAMES: tuple[Callable[[RunSnapshot], str], ...] = (
    lambda run: run.meta.stored_title,
    lambda run: run.meta.resolved_model or run.meta.requested_model or NO_MODEL,
    lambda run: run.meta.agent or "unknown",
)


def cost_sheet(runs: Iterable[RunSnapshot], now: datetime) -> CostSheet:
    """Add up runs by launch time; untrusted runs cost this user nothing. `now` has the reader's time zone."""
    begins = period_begins(now)
    dated_runs = [(run, periods_of(run, begins)) for run in runs if not run.foreign]
    total = _added(dated_runs, lambda _: "")
    lines = [
        tuple(sorted((CostLine(name, spent) for name, spent in _added(dated_runs, named).items()), key=_dearest))
        for named in _NAMES
    ]
    return CostSheet(total.get("", _nothing()), *lines)


HEADINGS = (*(period.value for period in Period), "tokens", "runs")
"""Columns of a row: cost by period, then tokens and runs of all time."""


def sections(sheet: CostSheet) -> list[tuple[str, list[tuple[str, ...]]]]:
    """Format the sheet: `preset`, `model` and `agent`, each with rows of a name and its figures."""
    return [
        (title, [(readable_preset(line.name), *_figures(line.spent)) for line in lines])
        for title, lines in (("preset", sheet.by_preset), ("model", sheet.by_model), ("agent", sheet.by_agent))
    ]


def remarks(sheet: CostSheet) -> str:
    """Describe what the figures omit."""
    unpriced = sheet.total[Period.ALL].unpriced
    unknown = f" {UNKNOWN} and {AND_MORE}: the agent reported no price for some tokens, {tokens(unpriced)} in total."
    return NOT_COUNTED + unknown * bool(unpriced)


def total_row(sheet: CostSheet) -> tuple[str, ...]:
    return ("total", *_figures(sheet.total))


def money(cost: float, unpriced: int = 0) -> str:
    """`$0.31`, `$1,204.50`, `<$0.01`; a dash for nothing. `$0.31+` and `?` if some tokens have no reported price."""
    amount = f"${cost:,.2f}" if cost >= 0.005 else "<$0.01" if cost > 0 else ""
    return known_cost(amount, unpriced)


def _figures(spent: dict[Period, Spent]) -> tuple[str, ...]:
    whole = spent[Period.ALL]
    figures = (money(spent[period].cost, spent[period].unpriced) for period in Period)
    return (*figures, tokens(whole.tokens), f"{whole.runs:,}")


def period_begins(now: datetime) -> dict[Period, datetime]:
    """Return the start of each period that has one."""
    midnight = datetime.combine(now.date(), time()).astimezone()
    week = datetime.combine(now.date() - timedelta(days=6), time()).astimezone()
    return {Period.TODAY: midnight, Period.WEEK: week}


def periods_of(run: RunSnapshot, begins: dict[Period, datetime]) -> list[Period]:
    launched = moment(run.meta.created_at)
    return [*(period for period, begin in begins.items() if launched and launched >= begin), Period.ALL]


def _added(
    dated_runs: Iterable[tuple[RunSnapshot, list[Period]]], named: Callable[[RunSnapshot], str]
) -> dict[str, dict[Period, Spent]]:
    sums: dict[str, dict[Period, Spent]] = {}
    for run, periods in dated_runs:
        spent = sums.setdefault(one_line(named(run), 100), _nothing())
        for period in periods:
            spent[period] = spent[period].plus(run)
    return sums


def _nothing() -> dict[Period, Spent]:
    return {period: Spent() for period in Period}


def _dearest(line: CostLine) -> tuple[float, int, str]:
    spent = line.spent[Period.ALL]
    return (-spent.cost, -spent.tokens, line.name)
