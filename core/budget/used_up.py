"""Notify the user that a daily budget is used up: the wrappers that spend it find that out, even without an open app.

They do not read the settings, which needs the YAML reader: the sender of alerts keeps the budgets of the user's file.
"""

from __future__ import annotations

import os
import time
from collections.abc import Mapping

from ..alerts.alert import budget_alert
from ..alerts.dispatch import dispatch, start_sender
from ..alerts.wanted import budgets, is_wanted
from ..run.enumerations import AlertKind
from ..run.prices import dollars
from ..system.log import log_fault
from .ledger import DayBook


def lowest_budget(root: str, everyone: float | None, named: Mapping[str, float]) -> float | None:
    """Return the budget of a project for a day: the lower of the one set for it and the one for every project."""
    by_path = {os.path.realpath(os.path.expanduser(name)): amount for name, amount in named.items()}
    real = os.path.realpath(root)
    above = [path for path in by_path if os.path.commonpath((path, real)) == path] if by_path else []
    of_project = by_path[max(above, key=len)] if above else None
    return min((amount for amount in (of_project, everyone) if amount is not None), default=None)


def report_used_up(day: str, root: str, words: str, *, reaps: bool = True) -> int | None:
    """Notify the user of a budget that is used up; `root` is empty for that of all projects, `words` has its figures.

    Return the pid of a sender that was started.
    """
    return dispatch(lambda: budget_alert(day, root, words, at=time.time()), reaps=reaps)


class BudgetWatch:
    """The daily budgets that a run counts for, in its wrapper."""

    def __init__(self, root: str) -> None:
        self._root = root
        self._book: DayBook | None = None

    def look(self, day: str) -> list[int]:
        """Report the budgets that are used up; return the pids of senders that were started."""
        if not is_wanted(AlertKind.BUDGET):
            return []
        limits = budgets()
        if limits is None:
            return [pid for pid in (_read_settings(),) if pid]
        of_project = lowest_budget(self._root, limits.project, limits.projects)
        if limits.day is None and of_project is None:
            return []
        if self._book is None or self._book.day != day:
            self._book = DayBook(day)
        self._book.look()
        senders: list[int | None] = []
        for root, budget in (("", limits.day), (self._root, of_project)):
            spent = self._book.sum(root or None)
            if budget is not None and spent.spent >= budget:
                words = f"{'at least ' * bool(spent.unpriced)}{dollars(spent.spent)} of {dollars(budget)}"
                senders.append(report_used_up(day, root, words, reaps=False))
        return [pid for pid in senders if pid]


def _read_settings() -> int | None:
    """Let a sender read the settings, which have changed: it records the budgets."""
    try:
        return start_sender(wakes=True, reaps=False)
    except (OSError, NotImplementedError) as error:
        log_fault("starting the sender of alerts", error)
        return None
