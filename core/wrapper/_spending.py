"""A run's usage, over all attempts and interactive use: priced, and recorded in the ledger of its days."""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING

from msgspec.structs import replace

from ..paths import now_iso
from ..run.events import UsageReported
from ..run.fold import NESTED
from ..run.model import LARGEST, RunMeta, Usage
from ..run.prices import price_of

if TYPE_CHECKING:
    from ..budget.ledger import RunBook
    from ._alerts import Alerts
    from .records import Records

WRITE_INTERVAL_S = 10.0
"""Minimum seconds between a run's lines in the ledger, except for the last."""


class Spending:
    """Gets every usage event, in order."""

    def __init__(self, meta: RunMeta, run_dir: str, records: Records) -> None:
        self._meta = meta
        self._run_dir = run_dir
        self._records = records
        self._written_at: float | None = None
        self._book: RunBook | None = None
        self.alerts: Alerts | None = None
        """Notify the user of daily budgets that are used up."""

    def take(self, event: UsageReported) -> UsageReported:
        """Count usage, and return it with a price from the user's table if the agent reported none."""
        event = self._priced(event)
        if self._meta.is_in_spool:
            return event
        now = time.monotonic()
        if self._book is None:
            self._book = self._opened()
        self._book.add(event, now_iso())
        if self._written_at is None or now >= self._written_at + WRITE_INTERVAL_S:
            self._written_at = now
            self._write(is_over=False)
        return event

    def settle(self) -> None:
        """Write the total spending, and release the rest of the reserved budget."""
        if self._book is None and self._meta.limits.budget is not None and not self._meta.is_in_spool:
            self._book = self._opened()
        if self._book is not None:
            self._write(is_over=True)

    def _priced(self, event: UsageReported) -> UsageReported:
        used = (event.input, event.output, event.cache_read, event.cache_write)
        if not self._meta.prices or (event.priced and (event.cost or event.stop_reason == NESTED)) or not any(used):
            return event
        prices, usual = self._meta.prices, self._meta.resolved_model
        price = price_of(event.model or usual, prices) or price_of(usual, prices)
        return replace(event, cost=price.of(*used), priced=True, estimated=True) if price else event

    def _opened(self) -> RunBook:
        from ..budget.ledger import RunBook

        home = os.path.dirname(os.path.dirname(os.path.dirname(os.path.dirname(self._run_dir))))
        return RunBook(home, self._meta.run_id, self._meta.limits.budget or 0.0, self._meta.created_at)

    def _write(self, *, is_over: bool) -> None:
        if self._book is None:
            return
        try:
            self._book.write(is_over=is_over)
        except OSError as error:
            self._records.note_trouble("the spending ledger", error)
        if self.alerts:
            self.alerts.spent()


def added(before: Usage, used: Usage) -> Usage:
    """Return the sums of both."""
    sums = (min(getattr(before, name) + getattr(used, name), LARGEST) for name in Usage.__struct_fields__)
    return Usage(*sums)
