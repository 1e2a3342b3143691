"""What may be spent in a day, by all runs and by those of a project; and what a launch may still reserve of it."""

from __future__ import annotations

import os
from collections.abc import Sequence
from enum import StrEnum

from msgspec import Struct

from .. import paths
from ..config.settings import Settings
from ..errors import BudgetExceeded, LaunchError, UsageError
from ..run.model import RunMeta
from ..run.prices import dollars
from .ledger import DayBook, Entry, Locked, Sum, append, local_day, this_launcher

NEAR = 0.8
"""The share of a budget from which on it is nearly used up."""
_ROUNDING = 1e-9
_TODAY, _PROJECT = "today", "this project"
BUDGETS = {_TODAY: "the day's budget", _PROJECT: "the project's budget for today"}
"""The parts of a standing, and what limits them."""


class Level(StrEnum):
    """How much of a budget is left, in the word for it."""

    FINE = ""
    NEAR = "nearly used up"
    OVER = "used up"


class Spent(Struct, frozen=True, rename="camel"):
    """Of one budget of a day; dollars."""

    spent: float
    held: float
    """What runs at work may still spend of what they have reserved."""
    budget: float | None
    unpriced: int
    """Tokens of which nobody knows the price."""

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


class Standing(Struct, frozen=True):
    """What was spent today."""

    day: str
    today: Spent
    project: Spent

    @property
    def parts(self) -> tuple[tuple[str, Spent], ...]:
        """Those that are limited, each with what it is about."""
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
    """Return what the runs of a project may spend in a day: the lower of what is said for it and for each project."""
    named = {os.path.realpath(os.path.expanduser(name)): amount for name, amount in settings.project_budgets.items()}
    root = os.path.realpath(project)
    above = [name for name in named if os.path.commonpath((name, root)) == name] if named else []
    own = named[max(above, key=len)] if above else None
    return min((amount for amount in (own, settings.project_budget) if amount is not None), default=None)


def standing(book: DayBook, project: str, settings: Settings) -> Standing:
    def of(total: Sum, budget: float | None) -> Spent:
        return Spent(total.spent, total.held, budget, total.unpriced)

    today = of(book.sum(), settings.day_budget)
    return Standing(book.day, today, of(book.sum(project), budget_of(project, settings)))


def reserve(project: str, metas: Sequence[RunMeta], settings: Settings, *, over_budget: bool) -> None:
    """Reserve the budgets of runs that are about to be launched, all or none; a run without one reserves nothing.

    Raises BudgetExceeded where that is more than the day's budget or the project's has left, unless `over_budget`.
    """
    if over_budget and paths.is_child():
        raise UsageError("an agent cannot exceed the budget", where="over budget", hint="ask the user")
    budgets = {meta.run_id: meta.limits.budget for meta in metas if meta.limits.budget}
    now, day = paths.now_iso(), local_day()
    try:
        launcher = this_launcher() if budgets else None
        entries = [Entry(run, project, now, reserved=most, launcher=launcher) for run, most in budgets.items()]
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
    """Give back what was reserved for runs that were not started after all; whoever launches next would see it, too."""
    entries = [Entry(meta.run_id, project, paths.now_iso(), over=True) for meta in metas if meta.limits.budget]
    try:
        append(local_day(), entries)
    except OSError:
        return


def _check(book: DayBook, project: str, wanted: float, settings: Settings) -> None:
    """Raise BudgetExceeded; only then it is looked whether all that is held is still held by a run."""
    book.look()
    for attempt in range(2):
        stands = standing(book, project, settings)
        full = [part for part in stands.parts if not _has_room(part[1], wanted)]
        if not full:
            return
        if attempt == 0:
            book.release_dead()
        else:
            raise _refusal(*full[0], wanted)


def _has_room(spent: Spent, wanted: float) -> bool:
    used, most = spent.spent + spent.held, spent.budget or 0.0
    return used < most and used + wanted <= most + _ROUNDING


def _refusal(name: str, spent: Spent, wanted: float) -> BudgetExceeded:
    figures = f"{spent.figures} spent"
    if spent.held:
        figures += f", {dollars(spent.held)} reserved by active runs"
    if wanted:
        figures += f", and this run may spend {dollars(wanted)}"
    key = "day_budget" if name == _TODAY else "project_budget"
    return BudgetExceeded(
        f"{BUDGETS[name]} does not allow this launch: {figures}",
        where="budget",
        hint=f"raise {key} in {paths.user_settings_file()}, or allow it once with --over-budget",
        brief_hint="launch again to allow it once",
    )
