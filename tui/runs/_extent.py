"""How much of each column the listed runs need: which columns are empty, how long presets and tasks are; pure."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from ...core.run.columns import COLUMNS, RunColumn
from ..text.cells import cells

if TYPE_CHECKING:
    from ...core.run.snapshot import RunSnapshot

LONGEST_PRESET, LONGEST_TASK = 23, 72
"""Cells up to which presets and tasks are measured."""


class Extent(NamedTuple):
    """It only grows while the app is open: columns that appear and disappear as runs come and go are hard to read."""

    empty: frozenset[RunColumn]
    """Columns in which no run has had a text so far."""
    preset: int
    """Cells of the longest preset, with the size of its group."""
    task: int
    """Cells of the longest task."""

    def including(self, run: RunSnapshot) -> Extent:
        """Return the extent with another run; the same object if that one needs no more."""
        empty, preset, task = self
        for column in self.empty:
            if column.has_text is None or column.has_text(run):
                empty -= {column}
        meta = run.meta
        if preset < LONGEST_PRESET:
            size = f" ×{meta.group.size}" if meta.group and meta.group.size > 1 else ""
            preset = max(preset, cells(f"{meta.title[:LONGEST_PRESET]}{size}"))
        if task < LONGEST_TASK:
            task = max(task, cells((meta.description or meta.task)[:LONGEST_TASK]))
        is_enough = empty is self.empty and preset == self.preset and task == self.task
        return self if is_enough else Extent(empty, preset, task)

    def with_column(self, column: RunColumn) -> Extent:
        return self._replace(empty=self.empty - {column})


NO_RUNS = Extent(frozenset(column for column in COLUMNS if column.has_text), 0, 0)
FULL = Extent(frozenset(), LONGEST_PRESET, LONGEST_TASK)
"""No column is empty, and the texts are long."""
