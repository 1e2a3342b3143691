"""Follow the runs of a project: first their current state, then every change, as frozen updates.

One watch covers all active runs and the presets. Its notices are only hints: the kernel may drop some silently, so the
follower also sweeps. Only this module uses watchfiles.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Collection, Container, Iterator
from typing import TYPE_CHECKING, Protocol

from msgspec import Struct, structs

from ..errors import FollowingFailed, SubdeckError, reason
from ..paths import Project, is_run_id, now_iso
from ..run.snapshot import Counts, RunSnapshot
from ..system.files import is_directory
from ..system.imports import import_part
from ..system.log import log_fault
from .registry import Registry

if TYPE_CHECKING:
    from watchfiles._rust_notify import RustNotify

NEWEST = 200
"""Runs in the first update, besides the unfinished ones."""
BATCH = 1000
"""Runs read between two updates while the older ones are loaded."""
SWEEP = 2.0
"""Seconds between two sweeps for open runs that have grown without a notice."""
REST = 0.25
"""Seconds between two reads of a run that writes and is not shown."""
PROOF = 2.0
"""Seconds between two proofs of life of runs whose wrapper is not known to be alive."""
FINISHED_PER_SWEEP = 500
"""Finished runs whose directories are checked in one sweep; the others follow in the next ones."""
PROOF_OF_ALL = 60.0
"""Seconds between two checks of all open runs, with proof of life."""

BEAT_S = 0.1
"""Seconds after which an update is yielded even without changes; slightly more in a quiet period."""
STEP_S = 0.011
DEBOUNCE_S = 0.02
CALM_PAUSE_S = 0.18
"""Seconds added to a step after `CALM_AFTER_S` without changes: wake-ups are most of a quiet period's cost."""
CALM_AFTER_S = 3.0
_NATIVE = (False, False, 0, False, False)
"""No debug output, no polling (and no delay for it), not recursive, permission errors not ignored."""
CHECK_S = 2.0
"""Seconds between checks of the directories, in case the notice of a created or removed one is lost."""


class Stop(Protocol):
    """Ends a watch, a `threading.Event` for instance; it is polled."""

    def is_set(self) -> bool: ...


class Update(Struct, frozen=True):
    """The changes since the previous update; the first one has the newest runs and all unfinished ones.

    One comes at least five times a second, `is_quiet` without changes, so that the consumer gets a turn.
    """

    runs: tuple[RunSnapshot, ...]
    """New or changed."""
    removed: tuple[str, ...]
    """Ids of runs whose directory is gone."""
    ended: tuple[RunSnapshot, ...]
    """Members of `runs` that ended while they were followed; never an untrusted run."""
    counts: Counts
    """Of all runs known so far."""
    background: Counts
    """Of the background runs among them."""
    complete: bool
    """Whether every run directory has been read."""
    presets_changed: bool

    @property
    def is_quiet(self) -> bool:
        return not (self.runs or self.removed or self.presets_changed)


class Follower:
    """Turns changes into updates; `updates` is its only loop."""

    def __init__(
        self,
        project: Project,
        registry: Registry,
        preset_dirs: Callable[[], tuple[str, ...]],
        shown: Callable[[], Container[str]] | None = None,
    ) -> None:
        """`shown` returns the ids of the runs on screen: the others are read only every `REST` seconds."""
        self._project = project
        self._registry = registry
        self._preset_dirs = preset_dirs
        self._shown = shown
        self._waiting: set[str] = set()
        """Runs that have written since they were last read."""
        self._recent: set[str] = set()
        """Runs that were read since the last time all were."""
        self._rested = 0.0
        self._past: set[str] = set()
        """Runs whose ends are not news: they had ended when first seen, or their ends were reported."""
        self._open: set[str] = set()
        """Runs that were first seen before they had ended."""
        self._reported: set[str] = set()
        """Runs whose ends were reported: a run whose result was removed looks open until the result is written
        again.
        """
        self._began = ""
        """When the first read began, an ISO time."""
        self._complete = False
        self._swept = self._proved = self._proved_all = 0.0
        self._listed: tuple[int, ...] = ()

    def updates(self, stop: Stop) -> Iterator[Update]:
        """Yield updates until `stop` is set; blocks in between."""
        self._began = now_iso()
        names = self._registry.names()
        self._past.update(names)
        first = self._registry.look({*names[:NEWEST], *self._registry.active_names()}, prove=True)
        self._complete = len(names) <= NEWEST
        yield self._update(first, presets_changed=True)
        caught_up_at = now_iso()  # by now the consumer has asked for ends that it missed
        for start in range(NEWEST, len(names), BATCH):
            if stop.is_set():
                return
            touched = self._registry.look(names[start : start + BATCH])
            self._past.difference_update(run_id for run_id in touched if self._has_ended_since(caught_up_at, run_id))
            self._complete = start + BATCH >= len(names)
            yield self._update(touched)
        for changes in watch(self._project, self._preset_dirs, stop):
            self._waiting |= changes.runs
            touched = self._registry.look(due) if (due := self._due()) else set[str]()
            if changes.restarted:
                self._swept = self._proved_all = 0.0
            if dead := self._registry.take_dead_ids():
                touched |= self._registry.look(dead, prove=True)
            if time.monotonic() - self._swept >= SWEEP:
                touched |= self._sweep()
            yield self._update(touched, presets_changed=changes.presets)

    def _is_news(self, run: RunSnapshot) -> bool:
        """Return whether a run has just ended: it was not trusted or restored after its end, or copied here."""
        if not run.has_ended or run.foreign or run.run_id in self._past or run.run_id in self._reported:
            return False
        return run.run_id in self._open or self._has_ended_since(self._began, run.run_id)

    def _has_ended_since(self, moment: str, run_id: str) -> bool:
        run = self._registry.get(run_id)
        ended_at = run.end.ended_at if run and run.end else None
        return ended_at is not None and moment <= ended_at <= now_iso()

    def _due(self) -> set[str]:
        """Return the waiting runs to read now."""
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
        """Read open runs, and the list of runs if it changed; finds everything that the watch missed."""
        now = time.monotonic()
        touched = self._registry.look(self._registry.grown_ids - self._waiting)
        doubtful = set[str]()
        if now - self._proved_all >= PROOF_OF_ALL:
            self._proved = self._proved_all = now
            doubtful.update(self._registry.open_ids, self._registry.active_names())
        elif now - self._proved >= PROOF:
            self._proved = now
            new = (name for name in self._registry.active_names() if name not in self._registry)
            doubtful.update(self._registry.unwatched_ids, self._registry.lost_on_hosts, new)
        if doubtful:
            touched |= self._registry.look(doubtful, prove=True)
        touched |= self._registry.look_at_finished(FINISHED_PER_SWEEP)
        listed = _modified(self._project.runs)
        if listed != self._listed:
            self._listed = listed
            names = self._registry.names()
            touched |= self._registry.look(
                name for name in names if (run := self._registry.get(name)) is None or run.foreign
            )
            touched |= self._registry.forget_missing(names)
        self._swept = time.monotonic()
        return touched

    def _update(self, touched: Collection[str], *, presets_changed: bool = False) -> Update:
        runs = tuple(run for run_id in sorted(touched, reverse=True) if (run := self._registry.get(run_id)))
        ended = tuple(run for run in runs if self._is_news(run))
        self._reported.update(run.run_id for run in ended)
        over = {run.run_id for run in runs if run.has_ended}
        active = {run.run_id for run in runs} - over
        self._open.difference_update(over)
        self._open.update(active)
        self._past.difference_update(active)
        self._past.update(over)
        return Update(
            runs=runs,
            removed=tuple(run_id for run_id in touched if run_id not in self._registry),
            ended=ended,
            counts=self._registry.counts,
            background=self._registry.background,
            complete=self._complete,
            presets_changed=presets_changed,
        )


def _modified(directory: str) -> tuple[int, ...]:
    try:
        stat = os.stat(directory)
    except OSError:
        return ()
    return (stat.st_mtime_ns, stat.st_ino)


class Changes(Struct, frozen=True):
    """Changes since the last time; empty at a tick without any."""

    runs: frozenset[str] = frozenset()
    """Ids of runs whose activity file was written, created or removed."""
    presets: bool = False
    restarted: bool = False
    """The watch has just started or restarted: earlier changes were not seen."""


class _PacedStop:
    """Makes watchfiles poll less often in a quiet period: it checks for the stop before each poll."""

    def __init__(self, stop: Stop) -> None:
        self._stop = stop
        self.pause = 0.0
        """Seconds to sleep at each check."""

    def is_set(self) -> bool:
        if self.pause:
            time.sleep(self.pause)
        return self._stop.is_set()


def watch(project: Project, preset_dirs: Callable[[], tuple[str, ...]], stop: Stop) -> Iterator[Changes]:
    """Yield changes in `active/` and the preset directories, at least at each tick, until `stop` is set.

    Created and removed directories are followed: the nearest existing ancestor stands for a missing one.
    """
    while not stop.is_set():
        try:
            yield from _watch(project, preset_dirs, stop)
        except (OSError, RuntimeError):
            # Out of inotify watches, or a directory was removed: the sweep still finds everything.
            time.sleep(BEAT_S)
            yield Changes()


def _watch(project: Project, preset_dirs: Callable[[], tuple[str, ...]], stop: Stop) -> Iterator[Changes]:
    """Watch the directories that exist now, until one of them is created or removed."""
    active, presets = project.active, preset_dirs()
    directories = (active, *presets)
    watched = _existing(directories, project.root)
    paced_stop = _PacedStop(stop)
    newest = checked = time.monotonic()
    restarted = True
    for batch in _batches(watched, paced_stop):
        now = time.monotonic()
        entries = [os.path.split(path) for _, path in batch]
        runs = frozenset(name for parent, name in entries if parent == active and is_run_id(name))
        touches_presets = any(parent in presets for parent, _ in entries)
        if runs or touches_presets:
            newest = now  # activity in the parent directories does not end a quiet period
        paced_stop.pause = CALM_PAUSE_S if now - newest >= CALM_AFTER_S else 0.0
        yield Changes(runs, presets=restarted or touches_presets, restarted=restarted)
        restarted = False
        if touches_presets and preset_dirs() != presets:
            return  # the list of directories has changed, as for agent files in a new directory
        if len(entries) > len(runs) or now - checked >= CHECK_S:
            checked = now
            if _existing(directories, project.root) != watched or any(path in watched for _, path in batch):
                return  # a directory was created or removed; a recreated one is a different one


def _batches(directories: Collection[str], stop: Stop) -> Iterator[Collection[tuple[int, str]]]:
    """Yield notices about these directories, empty at a tick without any, as `watchfiles.watch` does.

    The native part is enough: the package around it loads anyio, json and multiprocessing, for 25 ms.
    """
    native: type[RustNotify] = import_part("watchfiles", "_rust_notify").RustNotify
    with native(list(directories), *_NATIVE) as watcher:
        while (notices := watcher.watch(_ms(DEBOUNCE_S), _ms(STEP_S), _ms(BEAT_S), stop)) != "stop":
            if notices == "signal":
                raise KeyboardInterrupt
            yield () if notices == "timeout" else notices


def _ms(seconds: float) -> int:
    return int(seconds * 1000)


def _existing(directories: tuple[str, ...], root: str) -> tuple[str, ...]:
    """Return each directory itself or its nearest existing ancestor, without repeats.

    A removed project, with this root, is omitted: changes above it do not matter, and its return is checked often
    enough.
    """
    existing: dict[str, None] = {}
    for directory in directories:
        top = root if f"{directory}/".startswith(f"{root}/") else "/"
        while not is_directory(directory) and directory != top and directory != os.path.dirname(directory):
            directory = os.path.dirname(directory)
        if directory != root or is_directory(directory):
            existing[directory] = None
    return tuple(existing)


# --- updates that continue after a fault -----------------------------------------------------------------------------

DELAYS_S = (0.2, 0.5, 1.0, 2.0, 5.0)
"""Seconds before each restart; one more failure in a row is final."""
STEADY_S = 60.0
"""Seconds without a failure after which a new row of failures begins."""


class Told:
    """The updates that a reader has received, so that a new stream can continue after a broken one."""

    def __init__(self) -> None:
        self.since = now_iso()
        """When the reader began: earlier ends are not news."""
        self.last: Update | None = None
        self.open: set[str] = set()
        """Runs that had not ended."""
        self.ended: set[str] = set()
        """Runs that had ended."""
        self.reported: set[str] = set()
        """Runs whose ends the reader has received."""

    def copy(self) -> Told:
        copied = Told()
        copied.since, copied.last, copied.open, copied.ended = self.since, self.last, {*self.open}, {*self.ended}
        copied.reported = {*self.reported}
        return copied

    def note(self, update: Update) -> None:
        """Remember an update that the reader has received."""
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
        """Return whether a run's end still has to be reported to the reader."""
        if run.end is None or run.foreign or run.run_id in self.ended or run.run_id in self.reported:
            return False
        return run.run_id in self.open or self.since <= (run.end.ended_at or "") <= now_iso()


def resumed(updates: Iterator[Update], received: Told) -> Iterator[Update]:
    """Yield a new stream of updates as the continuation of another. Its first update with changes is complete, and has
    the ends and removals that were missed.
    """
    last = received.last
    if last is None:
        yield from updates
        return
    runs: dict[str, RunSnapshot] = {}
    news: dict[str, RunSnapshot] = {}
    for update in updates:
        runs |= {run.run_id: run for run in update.runs}
        news |= {run.run_id: run for run in update.runs if received.is_news(run)}
        for run_id in update.removed:
            runs.pop(run_id, None)
            news.pop(run_id, None)
        if update.complete:
            gone = (received.open | received.ended) - runs.keys()
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
    """Yield updates until `stop` is set; after a failure, start again and continue.

    Raises FollowingFailed after several failures in a row, and any error that the user can act on at once.
    """
    received, failures, failed_at = Told(), 0, 0.0
    while True:
        try:
            for update in resumed(begin(), received.copy()):
                received.note(update)
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
            if received.last is not None:
                yield _quiet(received.last)  # the consumer may want to stop
            time.sleep(BEAT_S)


def _quiet(last: Update) -> Update:
    return structs.replace(last, runs=(), removed=(), ended=(), presets_changed=False)
