"""Budgets for a day, of all runs and of each project; and the reservations of a launch."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum

from msgspec import Struct

from .. import paths
from ..config.settings import Settings
from ..errors import BudgetExceeded, LaunchError, UsageError, not_for_agents
from ..run.model import RunMeta
from ..run.prices import dollars
from .ledger import DayBook, LedgerEntry, Locked, Sum, append, local_day, this_launcher
from .used_up import lowest_budget, report_used_up

NEAR = 0.8
"""Share of a budget from which it counts as nearly used up."""
_ROUNDING = 1e-9
_TODAY, _PROJECT = "today", "this project"
BUDGETS = {_TODAY: "the day's budget", _PROJECT: "the project's budget for today"}
"""The parts of a `DaySpending`, and the names of their budgets."""


class Level(StrEnum):
    """How far a budget is used, in words."""

    FINE = ""
    NEAR = "nearly used up"
    OVER = "used up"


class Spent(Struct, frozen=True, rename="camel"):
    """State of one budget on a day; dollars."""

    spent: float
    held: float
    """Reserved by active runs, and not spent yet."""
    budget: float | None
    unpriced: int
    """Tokens without a known price."""

    @property
    def level(self) -> Level:
        if self.budget is None or self.spent < NEAR * self.budget:
            return Level.FINE
        return Level.OVER if self.spent >= self.budget else Level.NEAR

    @property
    def is_used_up(self) -> bool:
        return self.level is Level.OVER

    @property
    def figures(self) -> str:
        """`$6.12 of $20.00`, `at least $6.12`."""
        of = "" if self.budget is None else f" of {dollars(self.budget)}"
        return f"{'at least ' * bool(self.unpriced)}{dollars(self.spent)}{of}"

    @property
    def words(self) -> str:
        """`$6.12 of $20.00`, `at least $19.00 of $20.00, nearly used up`."""
        return f"{self.figures}{', ' * bool(self.level)}{self.level}"


class DaySpending(Struct, frozen=True):
    """The spending of today."""

    day: str
    today: Spent
    project: Spent

    @property
    def parts(self) -> tuple[tuple[str, Spent], ...]:
        """The parts that have a budget, each with its name."""
        both = ((_TODAY, self.today), (_PROJECT, self.project))
        return tuple((name, spent) for name, spent in both if spent.budget is not None)

    @property
    def level(self) -> Level:
        levels = [spent.level for _, spent in self.parts]
        return next((level for level in (Level.OVER, Level.NEAR) if level in levels), Level.FINE)

    @property
    def words(self) -> str:
        """`today $6.12 of $20.00, this project $1.00 of $5.00`; empty without a budget."""
        return ", ".join(f"{name} {spent.words}" for name, spent in self.parts)


def budget_of(project: str, settings: Settings) -> float | None:
    """Return the budget of a project for a day: the lower of the one set for it and the one for every project."""
    return lowest_budget(project, settings.project_budget, settings.project_budgets)


def day_spending(book: DayBook, project: str, settings: Settings) -> DaySpending:
    def of(total: Sum, budget: float | None) -> Spent:
        return Spent(total.spent, total.held, budget, total.unpriced)

    today = of(book.sum(), settings.day_budget)
    return DaySpending(book.day, today, of(book.sum(project), budget_of(project, settings)))


def report(spending: DaySpending, project: str) -> None:
    """Notify the user of the budgets that are used up, each once a day."""
    for name, spent in spending.parts:
        if spent.is_used_up:
            report_used_up(spending.day, project if name == _PROJECT else "", spent.figures)


def reserve(project: str, metas: Sequence[RunMeta], settings: Settings, *, over_budget: bool) -> None:
    """Reserve the budgets of runs that are about to be launched, all or none; a run without one reserves nothing.

    Raises BudgetExceeded if the day's budget or the project's has less left, unless `over_budget`.
    """
    if over_budget and paths.is_child():
        raise not_for_agents("exceed the budget", where="over budget", hint="ask the user", kind=UsageError)
    budgets = {meta.run_id: meta.limits.budget for meta in metas if meta.limits.budget}
    now, day = paths.now_iso(), local_day()
    try:
        launcher = this_launcher() if budgets else None
        entries = [LedgerEntry(run, project, now, reserved=most, launcher=launcher) for run, most in budgets.items()]
        with Locked():
            if not over_budget:
                _check(DayBook(day), project, sum(entry.reserved for entry in entries), settings)
            if entries:
                append(day, entries)
    except OSError as error:
        what = f"cannot read or write today's spending: {error.strerror or error}"
        raise LaunchError(
            what, where=str(error.filename or "budget"), hint="check disk space and permissions"
        ) from error


def release(project: str, metas: Sequence[RunMeta]) -> None:
    """Release the reservations of runs that were not started; a later launch would also release them."""
    entries = [LedgerEntry(meta.run_id, project, paths.now_iso(), over=True) for meta in metas if meta.limits.budget]
    try:
        append(local_day(), entries)
    except OSError:
        return


def _check(book: DayBook, project: str, amount: float, settings: Settings) -> None:
    """Raise BudgetExceeded if there is no room; reservations of dead runs are released first."""
    book.look()
    for attempt in range(2):
        spending = day_spending(book, project, settings)
        full = [part for part in spending.parts if not _has_room(part[1], amount)]
        if not full:
            return
        if attempt == 0:
            book.release_dead()
        else:
            raise _refusal(*full[0], amount)


def _has_room(spent: Spent, amount: float) -> bool:
    used, most = spent.spent + spent.held, spent.budget or 0.0
    return used < most and used + amount <= most + _ROUNDING


def _refusal(name: str, spent: Spent, amount: float) -> BudgetExceeded:
    figures = f"{spent.figures} spent"
    if spent.held:
        figures += f", {dollars(spent.held)} reserved by active runs"
    if amount:
        figures += f", and this run may spend {dollars(amount)}"
    key = "budget.day" if name == _TODAY else "budget.project"
    return BudgetExceeded(
        f"{BUDGETS[name]} does not allow this launch: {figures}",
        where="budget",
        hint=f"raise {key} in {paths.user_settings_file()}, or allow it once with --over-budget",
        brief_hint="launch again to allow it once",
    )
