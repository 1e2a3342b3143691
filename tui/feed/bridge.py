"""The one place where the app meets the engine: threads on that side, messages on this one."""

from __future__ import annotations

import asyncio
import os
import threading
import time
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, ParamSpec, TypeVar

from msgspec import structs
from textual import on
from textual.widget import Widget
from textual.worker import Worker, WorkerState

from ...core.errors import SubdeckError, reason
from ...core.system.log import log_fault
from ..terminal.closing import was_closed
from ..terminal.process import freeze_once
from ..text.format import format_error
from .lines import View
from .messages import (
    AgentChosen,
    EngineFailed,
    PresetsRead,
    ProjectWent,
    RunsChanged,
    SpendingRead,
    TranscriptRead,
    UnseenFound,
    UpdatesStopped,
)
from .reader import RunReader

if TYPE_CHECKING:
    from ...core.budget.allowance import Standing
    from ...core.project.follower import Update
    from ...core.run.snapshot import RunSnapshot
    from ...core.system.line_file import LineFile
    from ..engine_api import EngineApi

T = TypeVar("T")
P = ParamSpec("P")

FRAME_S = 1 / 40
"""Seconds between two frames at the least."""
PER_RUN_S = 1 / 800
"""Seconds more for each run that changes."""
SLOWEST_S = 1 / 6
PER_TILE_S = 1 / 28
"""Seconds between two frames for each tile that changes: drawn anew, every row of it is another one."""
SPENDING_S = 3.0
"""Seconds between two looks at what was spent, by runs of whatever project."""
RECENTLY_S = 0.5
"""The runs that nobody looks at come all at once, a few times a second: frames in between are not to be faster."""


class FramePace:
    """Says how long to wait between two frames: the longer, the more runs change."""

    def __init__(self) -> None:
        self._most = 0
        self._most_at = 0.0

    def next_after(self, now: float, changed: int) -> float:
        """Return when the next frame is due after one at `now` in which so many runs have changed."""
        if changed >= self._most or now - self._most_at > RECENTLY_S:
            self._most, self._most_at = changed, now
        return now + min(SLOWEST_S, FRAME_S + self._most * PER_RUN_S)


def merged(earlier: Update | None, later: Update) -> Update:
    """Return one update that says what both say: the later state of each run, every end."""
    if earlier is None:
        return later
    gone = set(later.removed)
    runs = {run.run_id: run for run in earlier.runs if run.run_id not in gone}
    runs.update((run.run_id, run) for run in later.runs)
    removed = dict.fromkeys((*earlier.removed, *later.removed))
    return structs.replace(
        later,
        runs=tuple(runs.values()),
        removed=tuple(run_id for run_id in removed if run_id not in runs),
        ended=(*earlier.ended, *later.ended),
        presets_changed=earlier.presets_changed or later.presets_changed,
    )


class Repeater:
    """Does some work whenever it is asked for, never twice at a time; asked for meanwhile, once more afterwards."""

    def __init__(self, bridge: Bridge, work: Callable[[], Awaitable[None]]) -> None:
        self._bridge = bridge
        self._work = work
        self._is_wanted = False
        self._is_running = False

    def ask(self) -> None:
        self._is_wanted = True
        if not self._is_running:
            self._is_running = True
            self._bridge.spawn(self._repeat, self._work)

    async def _repeat(self, work: Callable[[], Awaitable[None]]) -> None:
        try:
            while self._is_wanted:
                self._is_wanted = False
                await work()
        finally:
            self._is_running = False


class Bridge(Widget):
    """An invisible node: one worker iterates the engine's updates, another reads the shown run.

    Everything else asks the engine through `call`, and never waits for it on the event loop.
    """

    DEFAULT_CSS = "Bridge { display: none; }"

    def __init__(self, engine: EngineApi, *, readonly: bool = False) -> None:
        super().__init__()
        self.engine = engine
        self.readonly = readonly
        """Whether nothing is written from here: no end is claimed, so that another app reports it too."""
        self._stop = threading.Event()
        self._pending: Update | None = None
        self._pieces: list[TranscriptRead] = []
        """Of the shown run, in the order of its file."""
        self._lock = threading.Lock()
        """Guards `_pending` and `_pieces`, which threads fill and the event loop takes."""
        self._file_lock = threading.Lock()
        """Held by the thread that reads the shown run."""
        self._pace = FramePace()
        self._due_at = 0.0
        """When the next frame may be drawn."""
        self._waiting = False
        """True while a timer will take what is pending."""
        self._project_is_here = False
        self._standing: Standing | None = None
        """What was spent today when it was last looked at."""
        self._spending_due_at = 0.0
        self._reader: RunReader | None = None
        self._tiles: dict[str, RunReader] = {}
        """Of the runs that are read along beside the shown one; replaced as a whole."""
        self._behind: set[str] = set()
        """Those of them that have written since they were read."""
        self._tiles_due_at = 0.0
        """When they are to be read again."""
        self._reading = Repeater(self, self._read_piece)

    def start(self) -> None:
        """Begin following the engine; called after the first paint."""
        self.run_worker(self._follow_engine, thread=True, group="engine", exit_on_error=False)

    def on_unmount(self) -> None:
        self._stop.set()

    async def call(self, function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Await an engine method in a thread; raises what it raises."""
        return await asyncio.to_thread(function, *args, **kwargs)

    def spawn(self, work: Callable[P, Awaitable[object]], *args: P.args, **kwargs: P.kwargs) -> None:
        """Run what the operator asked for beside the event loop; what goes wrong becomes an `EngineFailed`.

        Work of a screen that has been closed ends without a word when it uses that screen: `work` is a method of it, or
        `args` have the screen or a method of it. The work is called in its own task: a coroutine made here would never
        be awaited where the app ends first.
        """

        async def begun() -> None:
            try:
                await work(*args, **kwargs)
            except Exception as error:
                if not was_closed(error, work, *args):
                    raise

        self.run_worker(begun, exit_on_error=False)

    # --- updates -------------------------------------------------------------------------------------------------

    def _follow_engine(self) -> None:
        self._project_is_here = os.path.isdir(self.engine.project.root)
        self._read_presets()
        unseen: frozenset[str] | None = None
        from ...core.project.resuming import steady  # after the first paint

        updates = partial(self.engine.updates, self._stop, shown=self._shown_runs)
        for update in steady(updates, self._stop, self._updates_stopped):
            if self._stop.is_set():
                return
            if unseen is None:  # not before the first update, or nobody is told of what ends between the two
                unseen = self._report_unseen()
            if any(run.run_id in unseen for run in update.ended):
                update = structs.replace(update, ended=tuple(run for run in update.ended if run.run_id not in unseen))
            self._look_for_project()
            self._look_at_spending()
            self._read_tiles(update)
            if update.is_quiet:
                continue
            if update.presets_changed:
                self._read_presets()
            self._claim(update.ended)
            self._read_along(update)
            with self._lock:
                is_first = self._pending is None
                self._pending = merged(self._pending, update)
            if is_first:
                self.call_later(self._take_when_due)

    def _updates_stopped(self, error: Exception, seconds: float) -> None:
        self.post_message(UpdatesStopped(f"Updates stopped: {reason(error)}. Retrying in {seconds:g} s"))

    def _shown_runs(self) -> tuple[str, ...]:
        """Return the runs that are read along: of the others the list shows a line each."""
        reader = self._reader
        return (*self._tiles, *(() if reader is None else (reader.run_id,)))

    def _look_for_project(self) -> None:
        is_here = os.path.isdir(self.engine.project.root)
        if is_here != self._project_is_here:
            self._project_is_here = is_here
            self.post_message(ProjectWent(is_here))

    def _look_at_spending(self) -> None:
        """Tell what was spent where that has changed."""
        if (now := time.monotonic()) < self._spending_due_at:
            return
        self._spending_due_at = now + SPENDING_S
        try:
            standing = self.engine.standing()
        except (SubdeckError, OSError):
            return  # what was known is still shown
        if standing != self._standing:
            self._standing = standing
            self.post_message(SpendingRead(standing))

    def _read_presets(self) -> None:
        try:
            self.post_message(PresetsRead(self.engine.presets()))
        except (SubdeckError, OSError) as error:
            self.post_message(EngineFailed(f"The presets could not be read: {reason(error)}"))
        try:
            self.post_message(AgentChosen(self.engine.agent()))
        except SubdeckError as error:
            self.post_message(AgentChosen(None, error.what))

    def _report_unseen(self) -> frozenset[str]:
        """Report what has ended and was reported to nobody; return its ids."""
        try:
            unseen = tuple(run for run in self.engine.unseen() if self.readonly or self.engine.claim(run))
        except (SubdeckError, OSError) as error:
            self.post_message(EngineFailed(f"What ended unseen could not be read: {reason(error)}"))
            return frozenset()
        if unseen:
            self.post_message(UnseenFound(unseen))
        return frozenset(run.run_id for run in unseen)

    def _claim(self, ended: tuple[RunSnapshot, ...]) -> None:
        """Note in the session that these ends are reported, so that nobody reports them again."""
        if self.readonly:
            return
        try:
            for run in ended:
                if run.meta.background:
                    self.engine.claim(run)
        except (SubdeckError, OSError) as error:
            self.post_message(EngineFailed(f"The session's file could not be written: {reason(error)}"))

    def _take_when_due(self) -> None:
        if self._waiting:
            return
        due = self._due_at - time.monotonic()
        if due <= 0:
            self._take()
        else:
            self._waiting = True
            self.set_timer(due, self._take)

    def _take(self) -> None:
        self._waiting = False
        with self._lock:
            update, self._pending = self._pending, None
        self._hand_out_pieces()
        if update is not None:
            # In one frame with the tiles, whose edges change with it.
            self._due_at = max(self._pace.next_after(time.monotonic(), len(update.runs)), self._tiles_due_at)
            self.post_message(RunsChanged(update))
            if update.complete:
                freeze_once(self)

    # --- the shown run -------------------------------------------------------------------------------------------

    def show_run(self, run_id: str | None, view: View = View.READABLE) -> None:
        """Read one file of this run from its end; None reads nothing any more."""
        self._reader = None if run_id is None else RunReader(run_id, view, self.engine.line_file(run_id, view.file))
        self.read_on()

    def read_on(self) -> None:
        """Read the next piece of the shown run, one at a time; it comes as `TranscriptRead`."""
        self._reading.ask()

    def show_tiles(self, run_ids: Sequence[str]) -> None:
        """Read these runs along too, from their ends; none any more without ids."""
        self._tiles = {run_id: RunReader(run_id, View.READABLE, self._events_of(run_id)) for run_id in run_ids}
        self.read_on()

    def _events_of(self, run_id: str) -> LineFile:
        return self.engine.line_file(run_id, View.READABLE.file)

    def is_of_tile(self, reader: RunReader) -> bool:
        return self._tiles.get(reader.run_id) is reader

    async def _read_piece(self) -> None:
        await self.call(self._read_next)
        self._hand_out_pieces()

    def _read_along(self, update: Update) -> None:
        """Read what the shown run has written, so that it is drawn in one frame with its row in the list.

        Not while a piece is being read anyway: who gets it asks for the next one.
        """
        reader = self._reader
        if reader is not None and any(run.run_id == reader.run_id for run in update.runs):
            self._read_next((reader,), wait=False)

    def _read_tiles(self, update: Update) -> None:
        """Read what the runs in the tiles have written, all at once and a few times a second."""
        tiles = self._tiles
        self._behind.update(run.run_id for run in update.runs if run.run_id in tiles)
        if self._behind and (now := time.monotonic()) >= self._tiles_due_at:
            behind, self._behind = self._behind, set()
            self._tiles_due_at = now + len(behind) * PER_TILE_S
            self._read_next([tiles[run_id] for run_id in behind if run_id in tiles])
            self.call_later(self._take_when_due)

    def _read_next(self, readers: Sequence[RunReader] | None = None, *, wait: bool = True) -> None:
        """Read a piece of each of these, else of all; without `wait` nothing where another thread is reading."""
        if not self._file_lock.acquire(blocking=wait):
            return
        try:
            shown = self._reader
            everybody = [*self._tiles.values(), *(() if shown is None else (shown,))]
            for reader in everybody if readers is None else readers:
                piece = reader.read()
                with self._lock:
                    self._pieces.append(TranscriptRead(reader, piece))
        finally:
            self._file_lock.release()

    def _hand_out_pieces(self) -> None:
        with self._lock:
            pieces, self._pieces = self._pieces, []
        for message in pieces:
            self.post_message(message)

    @on(TranscriptRead)
    def drop_stale_piece(self, message: TranscriptRead) -> None:
        """Keep from the screen what was still on its way when another run was chosen."""
        if message.reader is not self._reader and not self.is_of_tile(message.reader):
            message.stop()

    @on(Worker.StateChanged)
    def worker_ended(self, event: Worker.StateChanged) -> None:
        error = event.worker.error
        if event.state is WorkerState.ERROR and error is not None and not self._stop.is_set():
            log_fault(f"in the worker {event.worker.name or event.worker.group}", error)
            self.post_message(EngineFailed(format_error(error)))
