"""What a run on a host spends, told to the ledger of this machine from the events that have come of it."""

from __future__ import annotations

import os
import time

from ... import paths
from ...budget.ledger import RunBook
from ...run.events import EventTail, UsageReported
from ...run.model import RunMeta

WRITE_S = 10.0
"""Least time between two lines of a run in the ledger, but for its last."""


class Spending:
    """Both methods raise OSError."""

    def __init__(self, project: paths.Project, meta: RunMeta) -> None:
        self._budget = meta.limits.budget or 0.0
        self._book = RunBook(project.root, meta.run_id, self._budget, meta.created_at)
        self._tail = EventTail(os.path.join(project.run_dir(meta.run_id), paths.EVENTS))
        self._has_spent = self._is_new = False
        self._written_at = 0.0

    def look(self) -> None:
        """Read what has come, and write it down where that is due."""
        if time.monotonic() - self._written_at < WRITE_S:
            return
        self._written_at = time.monotonic()
        self._read()
        if self._is_new:
            self._is_new = False
            self._book.write(is_over=False)

    def settle(self) -> None:
        """Write what was spent in all; what was reserved beyond that is free again."""
        self._read()
        if self._has_spent or self._budget:
            self._book.settle()

    def _read(self) -> None:
        for event in self._tail.read():
            if isinstance(event, UsageReported):
                self._book.add(event, event.ts)
                self._has_spent = self._is_new = True
