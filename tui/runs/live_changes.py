"""The changes so far of the runs on the screen: read in a thread now and then, only while they are shown."""

from __future__ import annotations

from time import monotonic
from typing import TYPE_CHECKING

from ...core.run.snapshot import Running
from ..feed.repeater import Repeater
from ..feed.supervision import SLOW_S

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ...core.run.changes import Changes
    from ...core.run.snapshot import RunSnapshot
    from ..feed.bridge import Bridge
    from .list import RunList
    from .store import RunStore

EVERY_S = 5.0
"""Minimum seconds between two reads; the engine reads slow runs less often."""


class ChangesWatch:
    def __init__(self, bridge: Bridge, run_store: RunStore, runs: RunList) -> None:
        self._bridge = bridge
        self._run_store = run_store
        self._runs = runs
        self._due_at = 0.0
        self._to_read: Sequence[RunSnapshot] = ()
        self._looking = Repeater(bridge, self._look, "Changes stopped", patience=SLOW_S)
        self._seen: dict[str, int] = {}
        """Number of a run's tool calls at the last read."""

    def tick(self) -> None:
        """Read again if it is time and the changes may differ."""
        now = monotonic()
        if self._looking.is_busy or now < self._due_at:
            return
        if runs := [run for run in self._runs.changing_in_sight() if self._may_have_changed(run)]:
            self._due_at = now + EVERY_S
            self._to_read = runs
            self._looking.ask()

    def _may_have_changed(self, run: RunSnapshot) -> bool:
        """Return whether it used tools since the last read, or may be using one; an idle run costs nothing."""
        state = run.state
        if not isinstance(state, Running) or run.is_left_alone or run.elsewhere:
            return False
        is_at_work = state.patience is None and not (state.requests or state.interrupted)
        return is_at_work or self._seen.get(run.run_id) != run.usage.tool_uses

    async def _look(self) -> None:
        runs = self._to_read
        changes_by_id = await self._bridge.read(self._changes, runs)
        self._seen = {run_id: uses for run_id, uses in self._seen.items() if self._goes_on(run_id)}
        self._seen |= {run.run_id: run.usage.tool_uses for run in runs}
        changed = {
            run_id: changes
            for run_id, changes in changes_by_id.items()
            if changes != self._run_store.changing.get(run_id) and self._goes_on(run_id)
        }
        self._run_store.changing |= changed
        self._runs.redraw(changed)

    def _goes_on(self, run_id: str) -> bool:
        run = self._run_store.get(run_id)
        return run is not None and not run.has_ended

    def _changes(self, runs: Sequence[RunSnapshot]) -> dict[str, Changes]:
        work = self._bridge.engine.work
        changes_by_id: dict[str, Changes] = {}
        for run in runs:
            if changes := work.changes(run):
                changes_by_id[run.run_id] = changes
            self._looking.beat()
        return changes_by_id
