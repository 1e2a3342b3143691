"""A run that has not ended, drawn from its events as they come."""

from __future__ import annotations

import os

from .. import paths
from ..run import artifacts
from ..run.artifacts import ActivityRecord
from ..run.fold import Fold
from ..run.model import Queued, RunMeta, Running, RunSnapshot
from ..run.tail import EventTail


class OpenRun:
    """A run without a result: its events so far, and how far they were read."""

    def __init__(self, project: paths.Project, meta: RunMeta) -> None:
        self.meta = meta
        self.fold = Fold()
        self.is_elsewhere = False
        self._bell_path = os.path.join(project.active, meta.run_id)
        self._events_path = os.path.join(project.run_dir(meta.run_id), paths.EVENTS)
        self._tail = EventTail(self._events_path)
        self._bell = ActivityRecord()
        self._bell_rung = 0

    def drain(self) -> None:
        self._bell_rung = _modified(self._bell_path)
        for event in self._tail.read():
            self.fold.apply(event)
        self._bell = artifacts.read_activity(self._bell_path)

    def has_news(self) -> bool:
        """Tell by a size and a time whether draining would bring anything; a sweep asks this of every run."""
        return self.has_grown() or _modified(self._bell_path) != self._bell_rung

    def has_grown(self) -> bool:
        try:
            return os.stat(self._events_path).st_size > self._tail.offset
        except OSError:
            return False

    @property
    def is_queued(self) -> bool:
        return not self.fold.has_started

    def snapshot(self, ahead: int = 0) -> RunSnapshot:
        """Return the run as it was last drained; `ahead` is how many go first while it is queued."""
        fold = self.fold
        return RunSnapshot(
            meta=self.meta,
            state=Queued(fold.waits_for, ahead) if fold.started_at is None else self._running(fold.started_at),
            elsewhere=self.is_elsewhere,
            usage=fold.usage,
            last_event_at=fold.last_event_at,
            last_seq=fold.last_seq,
            warnings=fold.warnings or self.meta.all_warnings,
        )

    def _running(self, started_at: str) -> Running:
        fold = self.fold
        sentence = self._bell.sentence if self._bell.seq >= fold.last_seq else ""
        return Running(started_at=started_at, attempt=fold.attempt, activity=fold.activity, sentence=sentence)


def _modified(path: str) -> int:
    try:
        return os.stat(path).st_mtime_ns
    except OSError:
        return 0
