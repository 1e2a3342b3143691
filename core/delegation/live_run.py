"""A run that somebody follows, and the reports that are due of it."""

from __future__ import annotations

import time
from datetime import UTC, datetime

from ..engine import Engine
from ..errors import SubdeckError
from ..run.model import RunMeta, RunResult
from ..run.snapshot import RunSnapshot
from .report import RECENT, AgentDetails, EntryFold, Timeline, details_of, fold_entries

REPORT_INTERVAL_S = 0.25
"""The least time between two reports of one run's progress."""


class LiveRun:
    """Reads the events of one run only when a report is made."""

    def __init__(self, engine: Engine, run: RunSnapshot, *, display_name: str = "", whole: bool = False) -> None:
        """`whole`: reports carry all entries, not only the last ones."""
        self.run = run
        """As last seen."""
        self._engine = engine
        self._display_name = display_name
        self._fold = EntryFold(None if whole else RECENT)
        self._tail = engine.events(run.run_id)
        self._reported_at: float | None = None
        self.is_pending = True
        """Whether something changed since the last report."""

    @property
    def was_reported(self) -> bool:
        return self._reported_at is not None

    def see(self, run: RunSnapshot) -> None:
        self.is_pending = self.is_pending or run != self.run
        self.run = run

    def is_due(self) -> bool:
        """Tell whether there is something to report, and the last report is old enough."""
        return self.is_pending and (
            self._reported_at is None or time.monotonic() - self._reported_at >= REPORT_INTERVAL_S
        )

    def drain(self) -> bool:
        """Take in new events; return whether there were any."""
        events = self._tail.read()
        for event in events:
            self._fold.apply(event)
        return bool(events)

    def report(self) -> AgentDetails:
        """Return its details with the entries up to now."""
        self.drain()
        self._reported_at = time.monotonic()
        self.is_pending = False
        return self._details(self._fold.timeline)

    def announce(self) -> AgentDetails:
        """Return what is known before there are any entries."""
        return self._details()

    def final(self, run: RunSnapshot, result: RunResult | None) -> AgentDetails:
        """Return the details of its end, with the whole timeline."""
        self.run = run
        return self._details(fold_entries(self._engine.events(run.run_id).read()), result)

    def _details(self, timeline: Timeline | None = None, result: RunResult | None = None) -> AgentDetails:
        return details_of(self.run, timeline, result, now=datetime.now(UTC), display_name=self._display_name)


class PresetNames:
    """What presets call themselves; read once, and again after `forget`."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._names: dict[str, str] | None = None
        """By path."""

    def of(self, meta: RunMeta) -> str:
        """Return the description of a run's preset; "" where there is none any more."""
        if not meta.preset_path:
            return ""
        if self._names is None:
            self._names = self._read()
        return self._names.get(meta.preset_path, "")

    def forget(self) -> None:
        self._names = None

    def _read(self) -> dict[str, str]:
        try:
            return {preset.path: preset.description for preset in self._engine.presets().presets}
        except SubdeckError:
            return {}
