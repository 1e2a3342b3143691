"""Continue after what follows the runs has failed: nothing of the runs is lost, and no end is reported twice."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator

from msgspec import structs

from ..errors import FollowingFailed, SubdeckError, reason
from ..paths import now_iso
from ..run.snapshot import RunSnapshot
from ..system.log import log_fault
from .follower import BEAT_S, Stop, Update

DELAYS_S = (0.2, 0.5, 1.0, 2.0, 5.0)
"""Seconds before each new beginning; one failure more in a row ends it."""
STEADY_S = 60.0
"""Seconds without a failure after which the next one is the first of its row."""


class Told:
    """What a reader of updates has been told, so that a fresh stream can continue where another one broke off."""

    def __init__(self) -> None:
        self.since = now_iso()
        """When the reader began: an earlier end is not news."""
        self.last: Update | None = None
        self.open: set[str] = set()
        """Runs that had not ended."""
        self.ended: set[str] = set()
        """Runs that had."""
        self.reported: set[str] = set()
        """Runs whose ends the reader was told."""

    def copy(self) -> Told:
        copied = Told()
        copied.since, copied.last, copied.open, copied.ended = self.since, self.last, {*self.open}, {*self.ended}
        copied.reported = {*self.reported}
        return copied

    def note(self, update: Update) -> None:
        """Remember an update that the reader has got."""
        self.last = update
        self.reported.update(run.run_id for run in update.ended)
        for run_id in update.removed:
            self.open.discard(run_id)
            self.ended.discard(run_id)
        for run in update.runs:
            into, out = (self.ended, self.open) if run.has_ended else (self.open, self.ended)
            into.add(run.run_id)
            out.discard(run.run_id)

    def is_news(self, run: RunSnapshot) -> bool:
        """Return whether the end of a run has to be reported to the reader."""
        if run.end is None or run.foreign or run.run_id in self.ended or run.run_id in self.reported:
            return False
        return run.run_id in self.open or self.since <= (run.end.ended_at or "") <= now_iso()


def resumed(updates: Iterator[Update], told: Told) -> Iterator[Update]:
    """Yield a fresh stream of updates as the continuation of another: the first one that has news is complete, and has
    the ends and the removals that were missed.
    """
    last = told.last
    if last is None:
        yield from updates
        return
    runs: dict[str, RunSnapshot] = {}
    news: dict[str, RunSnapshot] = {}
    for update in updates:
        runs |= {run.run_id: run for run in update.runs}
        news |= {run.run_id: run for run in update.runs if told.is_news(run)}
        for run_id in update.removed:
            runs.pop(run_id, None)
            news.pop(run_id, None)
        if update.complete:
            gone = (told.open | told.ended) - runs.keys()
            yield structs.replace(
                update,
                runs=tuple(runs.values()),
                removed=tuple(gone),
                ended=tuple(runs[run_id] for run_id in news if runs[run_id].has_ended),
                presets_changed=True,
            )
            break
        yield _quiet(last)
    yield from updates


def steady(begin: Callable[[], Iterator[Update]], stop: Stop) -> Iterator[Update]:
    """Yield updates until `stop` is set; where they fail, begin again and continue.

    Raises FollowingFailed after several failures in a row, and the errors that a person can act on at once.
    """
    told, failures, failed_at = Told(), 0, 0.0
    while True:
        try:
            for update in resumed(begin(), told.copy()):
                told.note(update)
                yield update
            return
        except Exception as error:
            if isinstance(error, SubdeckError):
                raise
            log_fault("while following the runs", error)
            now = time.monotonic()
            failures = failures + 1 if now - failed_at < STEADY_S else 1
            failed_at = now
            delay = DELAYS_S[min(failures, len(DELAYS_S)) - 1]
            if failures > len(DELAYS_S):
                raise FollowingFailed(
                    f"the runs can no longer be followed: {reason(error)}",
                    hint="they continue; subdeck status shows them. Set SUBDECK_LOG=FILE to log details",
                ) from error
        while time.monotonic() < failed_at + delay:
            if stop.is_set():
                return
            if told.last is not None:
                yield _quiet(told.last)  # who waits may have had enough
            time.sleep(BEAT_S)


def _quiet(last: Update) -> Update:
    return structs.replace(last, runs=(), removed=(), ended=(), presets_changed=False)
