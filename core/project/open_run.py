"""A run that has not ended, drawn from its events as they come."""

from __future__ import annotations

import os

from .. import paths
from ..run import artifacts
from ..run.artifacts import ActivityRecord
from ..run.describe import unreadable_lines
from ..run.events import EventTail
from ..run.fold import Fold
from ..run.model import RunMeta
from ..run.snapshot import Queued, Running, RunSnapshot
from ..system.line_file import HeldFile

ACTIVITY_BYTES = 16 * 1024
"""More than an activity record has: 2 KB of a sentence, escaped."""


class OpenRun:
    """A run without a result: its events so far, and how far they were read. Its files are kept open."""

    def __init__(self, project: paths.Project, meta: RunMeta) -> None:
        self.meta = meta
        self.fold = Fold()
        self.is_elsewhere = False
        self._tail = EventTail(os.path.join(project.run_dir(meta.run_id), paths.EVENTS), held=True)
        self._activity_file = HeldFile(os.path.join(project.active, meta.run_id))
        self._activity_bytes = b""
        self._activity = ActivityRecord()

    def drain(self) -> bool:
        """Read what is new; return whether there was anything."""
        before = self._tail.offset
        for event in self._tail.read():
            self.fold.apply(event)
        return self._read_activity() or self._tail.offset != before

    def has_grown(self) -> bool:
        """Tell whether there are events to read; a sweep asks this of every run."""
        return self._tail.has_grown()

    @property
    def may_have_ended(self) -> bool:
        """Whether its last event says so, or its activity file is not there any more."""
        if self.fold.ended is not None:
            return True
        status = self._activity_file.status()
        self._activity_file.release()
        return status is None

    @property
    def is_queued(self) -> bool:
        return not self.fold.has_started

    def snapshot(self, ahead: int = 0) -> RunSnapshot:
        """Return the run as it was last drained; `ahead` is how many go first while it is queued."""
        fold = self.fold
        warnings = fold.warnings or self.meta.all_warnings
        unreadable = unreadable_lines(self._tail.unreadable)
        return RunSnapshot(
            meta=self.meta,
            state=Queued(fold.waits_for, ahead) if fold.started_at is None else self._running(fold.started_at),
            elsewhere=self.is_elsewhere,
            newer_schema=self.meta.schema_version if self.meta.is_newer else None,
            usage=fold.usage,
            last_event_at=fold.last_event_at,
            last_seq=fold.last_seq,
            warnings=(*warnings, unreadable) if unreadable else warnings,
        )

    def _running(self, started_at: str) -> Running:
        fold = self.fold
        sentence = self._activity.sentence if self._activity.seq >= fold.last_seq else ""
        return Running(started_at=started_at, attempt=fold.attempt, activity=fold.activity, sentence=sentence)

    def _read_activity(self) -> bool:
        """Read the activity file; return whether it says something else than before."""
        content = self._activity_file.read(ACTIVITY_BYTES, 0)
        self._activity_file.release()
        if content == self._activity_bytes:
            return False
        self._activity_bytes = content
        self._activity = artifacts.decode_activity(content)
        return True
