"""Follow the runs of a project: first what is there, then every change, as frozen updates."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Collection, Container, Iterator

from msgspec import Struct

from ..paths import Project
from ..run.snapshot import Counts, RunSnapshot
from .registry import Registry
from .watch import Stop, watch

NEWEST = 200
"""Runs in the first update, besides the unfinished ones."""
BATCH = 1000
"""Runs read between two updates while the older ones are loaded."""
SWEEP = 1.0
"""Seconds between two looks at whether anything that is open has grown."""
REST = 0.25
"""Seconds between two looks at a run that writes and is not shown."""
PROOF = 2.0
"""Seconds between two proofs of life of runs whose wrapper is not known to be alive."""
PROOF_OF_ALL = 10.0
"""Seconds between two looks at everything that is open, with proof of life."""


class Update(Struct, frozen=True):
    """What changed since the update before; the first one has the newest runs and all unfinished ones.

    One comes at least five times a second, so that whoever follows gets a turn; `is_quiet` when nothing changed.
    """

    runs: tuple[RunSnapshot, ...]
    """New or changed."""
    removed: tuple[str, ...]
    """Ids of runs whose directory is gone."""
    ended: tuple[RunSnapshot, ...]
    """Those of `runs` that ended while they were followed."""
    counts: Counts
    """Of all runs known so far."""
    background: Counts
    """Of the background runs known so far."""
    complete: bool
    """Every run directory has been read."""
    presets_changed: bool
    is_quiet: bool = False
    """Nothing changed."""


class Follower:
    """Turns changes into updates; `updates` is its one loop."""

    def __init__(
        self,
        project: Project,
        registry: Registry,
        preset_dirs: Callable[[], tuple[str, ...]],
        shown: Callable[[], Container[str]] | None = None,
    ) -> None:
        """`shown` returns the ids of the runs that somebody looks at: the others are read at most every `REST` seconds.

        Without it all are read at once.
        """
        self._project = project
        self._registry = registry
        self._preset_dirs = preset_dirs
        self._shown = shown
        self._waiting: set[str] = set()
        """Runs that have written and were not looked at since."""
        self._recent: set[str] = set()
        """Runs that were looked at since the last time all were."""
        self._rested = 0.0
        self._open: frozenset[str] = frozenset()
        self._old: set[str] = set()
        """Ids that were there before, so that their ends are no news: at the start, or told and then removed."""
        self._complete = False
        self._swept = self._proved = self._proved_all = 0.0
        self._listed: tuple[int, ...] = ()

    def updates(self, stop: Stop) -> Iterator[Update]:
        """Yield updates until `stop` is set; blocks in between."""
        names = self._registry.names()
        self._old.update(names)
        first = self._registry.look({*names[:NEWEST], *self._registry.active_names()}, prove=True)
        self._complete = len(names) <= NEWEST
        yield self._update(first, presets_changed=True)
        yield from self._older(names[NEWEST:], stop)
        for changes in watch(self._project, self._preset_dirs, stop):
            self._waiting |= changes.runs
            touched = self._registry.look(due) if (due := self._due()) else set[str]()
            if changes.restarted:
                self._swept = self._proved_all = 0.0
            if time.monotonic() - self._swept >= SWEEP:
                touched |= self._sweep()
            yield self._update(touched, presets_changed=changes.presets)

    def _older(self, names: list[str], stop: Stop) -> Iterator[Update]:
        for start in range(0, len(names), BATCH):
            if stop.is_set():
                return
            touched = self._registry.look(names[start : start + BATCH])
            self._complete = start + BATCH >= len(names)
            yield self._update(touched)

    def _due(self) -> set[str]:
        """Return which of the waiting runs are to be looked at now."""
        if not self._waiting:
            return set()
        now = time.monotonic()
        if self._shown is None or now - self._rested >= REST:
            due = self._recent = self._waiting
            self._waiting = set()
            self._rested = now
        else:
            shown = self._shown()
            due = {run_id for run_id in self._waiting if run_id in shown or run_id not in self._recent}
            self._recent |= due
            self._waiting -= due
        return due

    def _sweep(self) -> set[str]:
        """Look at what is open, and at the list of runs when it changed; finds all that the watch did not tell."""
        now = time.monotonic()
        touched = self._registry.look(self._registry.grown_ids - self._waiting)
        doubtful = self._registry.take_dead_ids()
        if now - self._proved_all >= PROOF_OF_ALL:
            self._proved = self._proved_all = now
            doubtful.update(self._registry.open_ids, self._registry.active_names())
        elif now - self._proved >= PROOF:
            self._proved = now
            new = (name for name in self._registry.active_names() if name not in self._registry)
            doubtful.update(self._registry.unwatched_ids, new)
        if doubtful:
            touched |= self._registry.look(doubtful, prove=True)
        listed = _modified(self._project.runs)
        if listed != self._listed:
            self._listed = listed
            names = self._registry.names()
            touched |= self._registry.look(name for name in names if name not in self._registry)
            touched |= self._registry.forget_missing(names)
        self._swept = time.monotonic()
        return touched

    def _update(self, touched: Collection[str], *, presets_changed: bool = False) -> Update:
        runs = tuple(run for run_id in sorted(touched, reverse=True) if (run := self._registry.get(run_id)))
        ended = tuple(run for run in runs if run.has_ended and self._is_news(run.run_id))
        if touched:
            self._open = frozenset(self._registry.open_ids)
            self._old.update(run.run_id for run in runs)
        return Update(
            runs=runs,
            removed=tuple(run_id for run_id in touched if run_id not in self._registry),
            ended=ended,
            counts=self._registry.counts,
            background=self._registry.background,
            complete=self._complete,
            presets_changed=presets_changed,
            is_quiet=not touched and not presets_changed,
        )

    def _is_news(self, run_id: str) -> bool:
        """Return whether a run that was open has ended, or one came and ended between two looks."""
        return run_id in self._open or run_id not in self._old


def _modified(directory: str) -> tuple[int, ...]:
    try:
        stat = os.stat(directory)
    except OSError:
        return ()
    return (stat.st_mtime_ns, stat.st_ino)
