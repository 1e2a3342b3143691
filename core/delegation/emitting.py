"""Turn the updates of an engine into emissions: paced, and the last progress before the end."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from ..project.follower import Update
from ..run.model import RunMeta, RunSnapshot, RunStatus
from ..system.iterate_in_thread import arriving
from .channels import Emission, created, ended, started
from .live_run import LiveRun
from .preset_names import PresetNames

if TYPE_CHECKING:
    from ..engine import Engine


def emissions(
    engine: Engine, stop: threading.Event, *, wanted: Callable[[RunMeta], bool] | None = None, whole: bool = False
) -> Iterator[Emission]:
    """Yield one `started` for each active run, then all that happens until `stop` is set; blocks in between.

    `wanted` chooses runs; with `whole` progress carries all entries. Who ends the iteration early ends the following.
    """
    emitter = Emitter(engine, wanted=wanted, whole=whole)

    def follow(put: Callable[[Update], None]) -> None:
        for update in engine.updates(stop):
            put(update)

    try:
        for update in arriving(follow, emitter.due_in):
            yield from emitter.flush() if update is None else emitter.take(update)
    finally:
        stop.set()


class Emitter:
    """Knows what was emitted of the runs that go on; costs nothing for those that are over."""

    def __init__(self, engine: Engine, *, wanted: Callable[[RunMeta], bool] | None = None, whole: bool = False) -> None:
        self._engine = engine
        self._wanted = wanted
        self._whole = whole
        self._names = PresetNames(engine)
        self._live: dict[str, LiveRun] = {}
        self._has_begun = False

    def take(self, update: Update) -> Iterator[Emission]:
        """Yield what an update gives rise to now; progress that comes too soon is left to `flush`."""
        if update.presets_changed:
            self._names.forget()
        news = {run.run_id for run in update.ended}
        for run in reversed(update.runs):
            if self._wanted is None or self._wanted(run.meta):
                yield from self._take(run, is_news=run.run_id in news)
        for run_id in update.removed:
            self._live.pop(run_id, None)
        self._has_begun = True
        yield from self.flush()

    def flush(self) -> Iterator[Emission]:
        """Yield the progress that is due."""
        for live in tuple(self._live.values()):
            if live.due_in() == 0.0:
                yield self._progress(live)

    def due_in(self) -> float | None:
        """Seconds until `flush` has something to yield; None when only an update can change that."""
        return min((due for live in self._live.values() if (due := live.due_in()) is not None), default=None)

    def _take(self, run: RunSnapshot, *, is_news: bool) -> Iterator[Emission]:
        live = self._live.get(run.run_id)
        if live is None:
            if run.is_terminal and not is_news:
                return
            live = LiveRun(self._engine, run, display_name=self._names.of(run.meta), whole=self._whole)
            if self._has_begun:
                yield created(live.announce())
                live.is_pending = run.status is RunStatus.RUNNING
            if not run.is_terminal:
                self._live[run.run_id] = live
        if run.is_terminal:
            yield from self._end(live, run)
        elif run.status is RunStatus.RUNNING:
            live.see(run)

    def _end(self, live: LiveRun, run: RunSnapshot) -> Iterator[Emission]:
        known = self._live.pop(run.run_id, None)
        if known and (known.drain() or known.is_pending):
            yield self._progress(known)
        result = self._engine.result(run.run_id)
        yield ended(run.status, live.final(run, result), result)

    def _progress(self, live: LiveRun) -> Emission:
        first = not live.was_reported
        return started(live.report(), first=first)
