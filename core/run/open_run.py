"""A run without a result, read as it grows.

The times of its events decide when its agent counts as idle. The current idle time is measured by a clock that pauses
while the machine sleeps and that cannot be set: otherwise all agents would be idle after a night with the lid closed.
"""

from __future__ import annotations

import math
import os
import time
from collections import Counter

from ..paths import EVENTS, Project
from ..system.line_file import HeldFile
from .artifacts import ActivityRecord, decode_activity
from .describe import moment, unreadable_lines
from .events import Event, EventTail, HandedBack, Retry, RunEnded, RunStarted, TakenOver, decode_event
from .fold import Fold, OpenCalls
from .model import RunMeta, RunnerKind, WaitsFor
from .placement import Place, PlaceReader, PlaceState
from .snapshot import Checking, Queued, Running, RunSnapshot

ACTIVITY_BYTES = 16 * 1024
"""More than an activity record needs: 2 KB of a sentence, escaped."""

BROKEN_ACTIVITY = "its record in active/ cannot be read"


class OpenRun:
    """A run without a result: its events so far, and the read position. Its files stay open."""

    def __init__(self, project: Project, meta: RunMeta) -> None:
        self.meta = meta
        self.fold = Fold()
        self.is_elsewhere = False
        self.unwritable = ""
        self.is_foreign = False
        self.stop_waits = False
        self.is_vouched_for = False
        """For a remote run: whether its relay vouched for it at the last check."""
        self._run_dir = project.run_dir(meta.run_id)
        self._place: PlaceReader | None = None
        """For a remote run, from the first read on."""
        self._tail = EventTail(os.path.join(self._run_dir, EVENTS), held=True)
        self._activity_file = HeldFile(os.path.join(project.active, meta.run_id))
        self._activity_bytes = b""
        self._activity = ActivityRecord()
        self._activity_fault = ""
        self._pulse = Pulse()
        self._heard_at: float | None = None
        """By `time.monotonic`; None before the first read."""

    def drain(self) -> bool:
        """Read new data; return whether there was any."""
        before, restarts = self._tail.offset, self._tail.restarts
        events = self._tail.read()
        if self._tail.restarts != restarts:  # a different file: the old events do not belong to it
            self.fold, self._pulse = Fold(), Pulse()
        for event in events:
            self.fold.apply(event)
            self._pulse.apply(event)
        is_new = self._read_activity() or self._tail.offset != before
        if is_new:
            # The first data may be old; later data is read soon after it was written, even if the clock was set.
            self._heard_at = time.monotonic() - (self._age() if self._heard_at is None else 0.0)
        return self._read_place() or is_new

    def _read_place(self) -> bool:
        """Read the place of a remote run; return whether it has changed."""
        if not self.is_remote:
            return False
        self._place = self._place or PlaceReader(self._run_dir)
        return self._place.read()

    def has_moved(self) -> bool:
        """Return whether the relay has rewritten the place of a remote run."""
        return self._place is not None and self._place.has_changed()

    @property
    def is_well_placed(self) -> bool:
        """Whether a live relay would report that the run got a host, or that its host became unreachable."""
        if self.place is None:
            return False
        return self.place.is_waiting or (self.is_vouched_for and self.place.state is PlaceState.PLACED)

    @property
    def is_remote(self) -> bool:
        return self.meta.runner is RunnerKind.HOSTS

    @property
    def place(self) -> Place | None:
        """Its place according to the relay, as of the last read; None if unknown."""
        return self._place.place if self._place else None

    def _age(self) -> float:
        """Return the seconds since the run last wrote, by the wall clock."""
        last = moment(self.fold.last_event_at or "")
        activity = self._activity_file.status()
        self._activity_file.release()
        times = (last.timestamp() if last else 0.0, activity.st_mtime if activity else 0.0)
        return max(0.0, time.time() - max(times)) if any(times) else 0.0

    def has_grown(self) -> bool:
        """Return whether there are new events or a new place; a sweep calls this for every run."""
        return self._tail.has_grown() or self.has_moved()

    @property
    def may_have_ended(self) -> bool:
        """Whether its last event is an end, or its activity file is gone."""
        if self.fold.ended is not None:
            return True
        status = self._activity_file.status()
        self._activity_file.release()
        return status is None

    @property
    def is_queued(self) -> bool:
        return self.fold.started_at is None

    @property
    def stands_in_queue(self) -> bool:
        """Whether it is queued and counts in the queue. An untrusted run does not count. A run that has a host, or
        whose worktree is being created, has its slot already.
        """
        if self.is_foreign or not self.is_queued:
            return False
        return self._waits_for_host if self.is_remote else self.fold.waits_for is not WaitsFor.WORKTREE

    @property
    def is_passed_over(self) -> bool:
        """Whether runs behind it in the queue go first, because no host can take it."""
        return self.place is not None and self.place.passed_over

    def snapshot(self, ahead: int = 0, *, held: bool = False) -> RunSnapshot:
        """Return the run as of the last `drain`; `ahead` is the number of runs before it in the queue, and `held`
        whether the queue is paused.
        """
        fold = self.fold
        if fold.started_at is None:
            state = Queued(WaitsFor.HOST if self._waits_for_host else fold.waits_for, ahead, held)
        else:
            sentence = self._activity.sentence if self._activity.seq >= fold.last_seq else ""
            checking = Checking(fold.checking.name, fold.checking.ts) if fold.checking else None
            is_idle = bool(fold.requests) or fold.interrupted or fold.hand is not None or checking is not None
            state = Running(
                started_at=fold.started_at,
                attempt=fold.attempt,
                activity=fold.activity,
                sentence=sentence,
                heard_at=self._heard_at or 0.0,
                patience=None if is_idle else self._pulse.patience(self.meta.limits.stall),
                requests=tuple(fold.requests.values()),
                interrupted=fold.interrupted,
                undelivered=len(fold.undelivered),
                taken_over=isinstance(fold.hand, TakenOver),
                handed_back=isinstance(fold.hand, HandedBack),
                checking=checking,
            )
        warnings = fold.warnings or self.meta.all_warnings
        faults = filter(None, (unreadable_lines(self._tail.unreadable), self._activity_fault))
        fault = ", ".join(faults)
        return RunSnapshot(
            meta=self.meta,
            state=state,
            elsewhere=self.is_elsewhere,
            unwritable=self.unwritable,
            place=self.place,
            stop_waits=self.stop_waits,
            foreign=self.is_foreign,
            newer_schema=self.meta.schema_version if self.meta.is_newer else None,
            told_session=fold.session.id if fold.session else None,
            usage=fold.usage,
            last_event_at=fold.last_event_at,
            last_seq=fold.last_seq,
            fault=fault,
            warnings=(*warnings, fault) if fault else warnings,
        )

    @property
    def _waits_for_host(self) -> bool:
        """Whether it needs a host and has none yet."""
        return self.is_remote and (self.place is None or self.place.is_waiting)

    def _read_activity(self) -> bool:
        """Read the activity file; return whether it has changed."""
        content = self._activity_file.read(ACTIVITY_BYTES, 0)
        if content == self._activity_bytes:
            self._activity_file.release()
            return False
        if (record := decode_activity(content)) is None:  # it may be half written
            content = self._activity_file.read(ACTIVITY_BYTES, 0)
            record = decode_activity(content)
        self._activity_file.release()
        self._activity_bytes = content
        self._activity_fault = BROKEN_ACTIVITY if record is None else ""
        self._activity = record or ActivityRecord()
        return True


# --- silence ---------------------------------------------------------------------------------------------------------

LEAST_S = 60.0
"""No agent counts as idle before."""
FACTOR = 4
"""How many times its usual pause an agent may be silent."""
SHARE = 0.95
"""Share of its pauses that are at most as long as the usual one."""
LONG_S = LEAST_S / FACTOR
"""Shorter pauses are only counted: they cannot raise the limit above `LEAST_S`."""
LONGEST_S = 900
"""Longer pauses count as this long: the machine may have slept, or its clock was set."""
_TENS = len("2026-11-22T18:41:5")
"""Leading characters that times within the same ten seconds share."""


class Pulse:
    """Follows the events of a run: whether a tool is running, and how long its pauses were."""

    def __init__(self) -> None:
        self._calls = OpenCalls()
        self._last_at = ""
        """Time of the last event; empty before the first."""
        self._delay_s = 0.0
        """Delay before the agent continues, as the last event announces."""
        self._is_over = True
        self._pauses = 0
        self._long: Counter[int] = Counter()
        """Pauses longer than `LONG_S` by their whole seconds, rounded up."""
        self._long_count = 0

    def apply(self, event: Event) -> None:
        last_at, self._last_at = self._last_at, event.ts
        self._delay_s = event.delay_ms / 1000 if isinstance(event, Retry) else 0.0
        if isinstance(event, RunStarted | RunEnded):
            self._is_over = isinstance(event, RunEnded)
        elif last_at and not self._calls:
            self._pauses += 1
            if event.ts[:_TENS] != last_at[:_TENS]:
                self._note_pause(last_at, event.ts)
        self._calls.apply(event)

    def _note_pause(self, begin: str, end: str) -> None:
        before, after = moment(begin), moment(end)
        seconds = (after - before).total_seconds() if before and after else 0.0
        if seconds > LONG_S:
            self._long_count += 1
            self._long[min(LONGEST_S, math.ceil(seconds))] += 1

    @property
    def usual_pause(self) -> float:
        """Seconds that nearly all of its pauses did not exceed; 0 if too short to matter."""
        longer = self._pauses - math.ceil(SHARE * self._pauses)
        if self._long_count <= longer:
            return 0.0
        for seconds in sorted(self._long, reverse=True):
            longer -= self._long[seconds]
            if longer < 0:
                return seconds
        return 0.0

    def patience(self, stall: float | None) -> float | None:
        """Return the seconds of silence that are normal; None if any silence is: a tool is running, or the run is
        over.
        """
        return None if self._is_over or self._calls else self.normal_silence(stall)

    def normal_silence(self, stall: float | None) -> float:
        """Return the same for an agent that certainly works, without a tool."""
        seconds = max(LEAST_S, FACTOR * self.usual_pause)
        if stall is not None:
            seconds = min(seconds, stall / 2)
        return seconds + self._delay_s


READ_BYTES = 1024 * 1024
"""Bytes of events from which `usual_patience` learns how long an agent's pauses are."""


def usual_patience(run_dir: str, stall: float | None) -> float:
    """Return the seconds of silence that are normal for a running agent without a running tool, by its latest events.

    For a process that does not follow the run.
    """
    pulse = Pulse()
    file = HeldFile(os.path.join(run_dir, EVENTS))
    status = file.status()
    content = file.read(READ_BYTES, max(0, status.st_size - READ_BYTES)) if status else b""
    file.close()
    for line in content.split(b"\n"):
        if event := decode_event(line):
            pulse.apply(event)
    return pulse.normal_silence(stall)
