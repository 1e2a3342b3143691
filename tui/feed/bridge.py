"""The app's only connection to the engine: threads on the engine's side, messages on the app's."""

from __future__ import annotations

import asyncio
import os
import threading
import time
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from contextvars import copy_context
from functools import partial
from typing import TYPE_CHECKING, ParamSpec, TypeVar, cast

from msgspec import structs
from textual import on
from textual.worker import Worker, WorkerState

from ...core.config.workspace import settings_stamp
from ...core.errors import SubdeckError, explained, reason
from ...core.system.log import log_fault
from ..terminal.after_close import carry_out, was_closed
from ..terminal.process import freeze_once
from ..terminal.textual_internals import set_timer
from ..text.format import format_error
from .lines import View
from .messages import (
    AgentChosen,
    EngineFailed,
    PresetsRead,
    ProjectWent,
    RunsChanged,
    SettingsRead,
    SpendingRead,
    TranscriptRead,
    UnseenFound,
    WorkersStopped,
)
from .reader import RunReader
from .repeater import Repeater, SupervisingWidget
from .supervision import SLOW_S, TICK_S, Supervised, Supervisor

if TYPE_CHECKING:
    from ...core.budget.allowance import DaySpending
    from ...core.project.follower import Told, Update
    from ...core.run.snapshot import RunSnapshot
    from ...core.system.line_file import LineFile
    from ..engine_api import EngineApi

T = TypeVar("T")
P = ParamSpec("P")

FRAME_S = 1 / 40
"""Minimum seconds between two frames."""
PER_RUN_S = 1 / 800
"""Additional seconds for each changed run."""
SLOWEST_S = 1 / 6
PER_TILE_S = 1 / 28
"""Seconds between two frames for each changed tile: every row of it is drawn again."""
LEAVE_S = 1.0
"""Seconds that the app's end waits for the thread that follows the engine."""
SPENDING_S = 3.0
"""Seconds between two reads of the spending, by runs of any project."""
SETTINGS_S = 1.0
"""Seconds between two looks at the settings files."""
RECENTLY_S = 0.5
"""Seconds for which the busiest frame sets the pace: hidden runs are updated together, a few times a second."""


class FramePace:
    """Computes the time between two frames: the more runs change, the longer."""

    def __init__(self) -> None:
        self._most = 0
        self._most_at = 0.0

    def next_after(self, now: float, changed: int) -> float:
        """Return when the next frame is due, after one at `now` with `changed` runs."""
        if changed >= self._most or now - self._most_at > RECENTLY_S:
            self._most, self._most_at = changed, now
        return now + min(SLOWEST_S, FRAME_S + self._most * PER_RUN_S)


def merged(earlier: Update | None, later: Update) -> Update:
    """Merge two updates: the later state of each run, every result."""
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


def in_thread(work: Callable[[], None]) -> threading.Thread:
    """Do this in a separate daemon thread: the app's end does not wait for it, and a hung one takes no place in a
    pool.
    """
    thread = threading.Thread(target=copy_context().run, args=(work,), daemon=True)
    thread.start()
    return thread


class Attempt:
    """One thread that follows the engine, until another replaces it."""

    def __init__(self, taken_updates: Told) -> None:
        self.taken_updates = taken_updates
        """The updates taken by the attempts before it."""
        self.stop = threading.Event()
        self.thread: threading.Thread | None = None


class Bridge(SupervisingWidget):
    """An invisible node: one worker iterates the engine's updates, another reads the shown run.

    Everything else calls the engine through `call`, and never blocks the event loop.
    """

    DEFAULT_CSS = "Bridge { display: none; }"

    def __init__(self, engine: EngineApi, *, readonly: bool = False) -> None:
        super().__init__()
        self.engine = engine
        self.readonly = readonly
        """Whether the app writes nothing: it claims no results, so another app reports them again."""
        self._stop = threading.Event()
        self._pending: Update | None = None
        self._pieces: list[TranscriptRead] = []
        """Of the shown run, in the order of its file."""
        self._lock = threading.Lock()
        """Guards the state shared by threads and the event loop: `_pending`, `_pieces`, and the taken updates."""
        self._file_lock = threading.Lock()
        """Held by the thread that reads the shown run."""
        self._pace = FramePace()
        self._due_at = 0.0
        """When the next frame may be drawn."""
        self._waiting = False
        """Whether a timer is set to take the pending update."""
        self._project_is_here = False
        self._last_spending: DaySpending | None = None
        """Today's spending at the last read."""
        self._spending_due_at = 0.0
        self._reported_settings = engine.settings
        """The settings that were last reported, or read at the start."""
        self._settings_stamp = self._settings_looked = settings_stamp(engine.project)
        """Of the files when they were last read, and at the last look."""
        self._settings_due_at = 0.0
        self._are_settings_broken = False
        self._reader: RunReader | None = None
        self._tiles: dict[str, RunReader] = {}
        """Readers of the runs on the grid; replaced as a whole."""
        self._behind: set[str] = set()
        """Those of them with unread output."""
        self._tiles_due_at = 0.0
        """When they are read again."""
        self.supervisor = Supervisor(self._show_stopped)
        self._reading = Repeater(self, self._read_piece, "Transcript stopped")
        self._presets = Repeater(self, self._read_presets, "Presets stopped", patience=SLOW_S)
        self._claims = Repeater(self, self._claim, "Notifications stopped", patience=SLOW_S)
        self._spending = Repeater(self, self._look_at_spending, "Costs stopped", patience=SLOW_S)
        self._settings = Repeater(self, self._read_settings, "Settings stopped", patience=SLOW_S)
        self._following = Supervised(self.supervisor, "Updates stopped", self._follow, self._abandon_following)
        self._attempt: Attempt | None = None
        """The thread that follows the engine; None if there is none whose updates are taken."""
        self._taken_updates: Told | None = None
        """The updates taken from the engine."""
        self._reported: set[str] = set()
        """Runs whose results were reported as they came."""
        self._unseen: set[str] = set()
        """Runs whose results are reported as unseen."""
        self._unclaimed: dict[str, RunSnapshot] = {}
        """Reported results that are not yet in the session file."""
        self._has_looked_for_unseen = False

    def start(self) -> None:
        """Start to follow the engine; called after the first paint."""
        self._project_is_here = os.path.isdir(self.engine.project.root)
        self._presets.ask()
        self._follow()
        self.set_interval(TICK_S, self.supervisor.tick)

    async def on_unmount(self) -> None:
        self._stop.set()
        if (attempt := self._attempt) is not None and attempt.thread is not None:
            attempt.stop.set()
            await self.read(attempt.thread.join, LEAVE_S)

    async def call(self, function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Await an engine method in a thread, which is called even if the app ends first; raises its errors."""
        return await carry_out(function, *args, **kwargs)

    async def read(self, function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Do the same in a thread that the app's end does not wait for: for work that writes nothing of value."""
        loop = asyncio.get_running_loop()
        future: asyncio.Future[T] = loop.create_future()

        def settle(result: T | None, error: BaseException | None) -> None:
            if future.done():
                return  # the work was abandoned
            if error is None:
                future.set_result(cast(T, result))
            else:
                future.set_exception(error)

        def run() -> None:
            result, error = None, None
            try:
                result = function(*args, **kwargs)
            except Exception as raised:
                error = raised
            with suppress(RuntimeError):  # the app has ended
                loop.call_soon_threadsafe(settle, result, error)

        in_thread(run)
        return await future

    def spawn(self, work: Callable[P, Awaitable[object]], *args: P.args, **kwargs: P.kwargs) -> None:
        """Run an action beside the event loop; its error becomes an `EngineFailed`.

        Work of a closed screen ends silently when it uses that screen: `work` is a method of it, or `args` contain the
        screen or a method of it. The work is called in its own task: a coroutine made here would never be awaited if
        the app ends first.
        """

        async def begun() -> None:
            try:
                await work(*args, **kwargs)
            except Exception as error:
                if not was_closed(error, work, *args):
                    raise

        self.run_worker(begun, exit_on_error=False)

    # --- updates -------------------------------------------------------------------------------------------------

    def _follow(self) -> None:
        """Start a thread that continues after the last taken update."""
        from ...core.project.follower import Told  # after the first paint

        with self._lock:
            self._taken_updates = self._taken_updates or Told()
            self._attempt = attempt = Attempt(self._taken_updates.copy())
        self._following.begin()
        attempt.thread = in_thread(partial(self._follow_engine, attempt))

    def _follow_engine(self, attempt: Attempt) -> None:
        from ...core.project.follower import resumed

        try:
            for update in resumed(self.engine.updates(attempt.stop, shown=self._shown_runs), attempt.taken_updates):
                if attempt.stop.is_set() or not self._take_update(attempt, update):
                    return
        except Exception as error:
            log_fault("while following the runs", error)
            if not attempt.stop.is_set():
                self.call_later(self._following_failed, attempt, error)

    def _following_failed(self, attempt: Attempt, error: Exception) -> None:
        if attempt is self._attempt and not self._stop.is_set():
            self._following.fail(error)

    def _abandon_following(self) -> None:
        """Stop the thread that follows the engine when it can; its later updates are ignored."""
        with self._lock:
            attempt, self._attempt = self._attempt, None
        if attempt is not None:
            attempt.stop.set()
        self._renew_readers()
        self.read_on()

    def _take_update(self, attempt: Attempt, update: Update) -> bool:
        """Keep an update for the next frame; return whether this attempt is still the current one."""
        self._look_for_project()
        self._look_at_settings()
        self._read_tiles(update)
        if not update.is_quiet:
            self._read_along(update)
        with self._lock:
            if attempt is not self._attempt or self._taken_updates is None:
                return False
            is_first_of_all = self._taken_updates.last is None
            self._taken_updates.note(update)
            ended = tuple(run for run in update.ended if run.run_id not in self._unseen)
            self._reported.update(run.run_id for run in ended)
            self._unclaimed |= {run.run_id: run for run in ended if run.meta.background}
            is_first = self._pending is None
            if not update.is_quiet:
                self._pending = merged(self._pending, structs.replace(update, ended=ended))
        self._following.beat()
        if update.presets_changed and not is_first_of_all:
            self.call_later(self._presets.ask)
        if ended or is_first_of_all:  # not before the first update, or results between the two are not reported
            self.call_later(self._claims.ask)
        if (now := time.monotonic()) >= self._spending_due_at:
            self._spending_due_at = now + SPENDING_S
            self.call_later(self._spending.ask)
        if is_first and not update.is_quiet:
            self.call_later(self._take_when_due)
        return True

    def _show_stopped(self, banner: str) -> None:
        self.post_message(WorkersStopped(banner))

    def _shown_runs(self) -> tuple[str, ...]:
        """Return the runs that are read live: the list shows only a line for the others."""
        reader = self._reader
        return (*self._tiles, *(() if reader is None else (reader.run_id,)))

    def _look_for_project(self) -> None:
        is_here = os.path.isdir(self.engine.project.root)
        if is_here != self._project_is_here:
            self._project_is_here = is_here
            self.post_message(ProjectWent(is_here))

    def _look_at_settings(self) -> None:
        """Have changed settings files read, once two looks have found the same: an editor may still be writing."""
        if (now := time.monotonic()) < self._settings_due_at:
            return
        self._settings_due_at = now + SETTINGS_S
        former, self._settings_looked = self._settings_looked, settings_stamp(self.engine.project)
        if former == self._settings_looked != self._settings_stamp:
            self._settings_stamp = former
            self.call_later(self._settings.ask)

    async def _read_settings(self) -> None:
        """Read the settings again, and report what changed, or why the files cannot be used."""
        try:
            settings = await self.read(self.engine.read_settings)
        except (SubdeckError, OSError) as error:
            self._are_settings_broken = True
            self.post_message(SettingsRead(problem=explained(error)))
            return
        from ...core.config.files import changed_keys  # loads the YAML reader, which a file has just needed

        former, self._reported_settings = self._reported_settings, settings
        wrong = {fault.key for fault in settings.faults}
        changed = tuple(key for key in changed_keys(former, settings) if key not in wrong)
        faults = (f"{fault.error}\n  The app keeps its earlier value." for fault in settings.faults)
        warnings = (*faults, *(notice for notice in settings.notices if notice not in former.notices))
        if changed or warnings or self._are_settings_broken:
            self.post_message(SettingsRead(changed, warnings))
        self._are_settings_broken = False
        self._presets.ask()
        self._spending.ask()

    async def _look_at_spending(self) -> None:
        """Post the spending if it has changed."""
        try:
            spending = await self.read(self.engine.limited_spending)
        except (SubdeckError, OSError):
            return  # the last known figures stay
        if spending != self._last_spending:
            self._last_spending = spending
            self.post_message(SpendingRead(spending))

    async def _read_presets(self) -> None:
        try:
            self.post_message(PresetsRead(await self.read(self.engine.presets)))
        except (SubdeckError, OSError) as error:
            self.post_message(EngineFailed(f"Cannot read the presets: {reason(error)}"))
            self.post_message(PresetsRead(None))
        try:
            self.post_message(AgentChosen(await self.read(self.engine.agent)))
        except SubdeckError as error:
            self.post_message(AgentChosen(None, error.what))

    async def _claim(self) -> None:
        """Record reported results in the session file, so that no other app reports them again."""
        if not self._has_looked_for_unseen:
            await self.read(self._report_unseen)
            self._has_looked_for_unseen = True
        await self.read(self._claim_ended)

    def _report_unseen(self) -> None:
        """Report results that no app has reported."""
        try:
            unseen = tuple(filter(self._takes_unseen, self.engine.unseen()))
        except (SubdeckError, OSError) as error:
            self.post_message(EngineFailed(f"Cannot read unread results: {reason(error)}"))
            return
        if unseen:
            self.post_message(UnseenFound(unseen))

    def _takes_unseen(self, run: RunSnapshot) -> bool:
        """Return whether to report a run as unseen: its result was not reported as it came, nor by another app."""
        with self._lock:
            if run.run_id in self._reported:
                return False
            self._unseen.add(run.run_id)
        if self.readonly or self.engine.claim(run):
            return True
        with self._lock:
            self._unseen.discard(run.run_id)
        return False

    def _claim_ended(self) -> None:
        with self._lock:
            unclaimed = tuple(self._unclaimed.values())
        try:
            for run in unclaimed:
                if not self.readonly:
                    self.engine.claim(run)
                with self._lock:
                    self._unclaimed.pop(run.run_id, None)
        except (SubdeckError, OSError) as error:
            with self._lock:
                self._unclaimed.clear()
            self.post_message(EngineFailed(f"Cannot write the session file: {reason(error)}"))

    def _take_when_due(self) -> None:
        if self._waiting:
            return
        due = self._due_at - time.monotonic()
        if due <= 0:
            self._take()
        else:
            self._waiting = True
            set_timer(self, due, self._take)

    def _take(self) -> None:
        self._waiting = False
        with self._lock:
            update, self._pending = self._pending, None
        self._hand_out_pieces()
        if update is not None:
            # In the same frame as the tiles, whose borders change with it.
            self._due_at = max(self._pace.next_after(time.monotonic(), len(update.runs)), self._tiles_due_at)
            self.post_message(RunsChanged(update))
            if update.complete:
                freeze_once(self)

    # --- the shown run -------------------------------------------------------------------------------------------

    def show_run(self, run_id: str | None, view: View = View.READABLE) -> None:
        """Read one file of this run from its end; None stops reading."""
        self._reader = None if run_id is None else RunReader(run_id, view, self.engine.line_file(run_id, view.file))
        self.read_on()

    def read_on(self) -> None:
        """Read the next piece of the shown run, one at a time; it is posted as `TranscriptRead`."""
        self._reading.ask()

    def show_tiles(self, run_ids: Sequence[str]) -> None:
        """Read these runs live, from their ends; without ids, stop."""
        self._tiles = {run_id: RunReader(run_id, View.READABLE, self._events_of(run_id)) for run_id in run_ids}
        self.read_on()

    def _events_of(self, run_id: str) -> LineFile:
        return self.engine.line_file(run_id, View.READABLE.file)

    def is_of_tile(self, reader: RunReader) -> bool:
        return self._tiles.get(reader.run_id) is reader

    async def _read_piece(self) -> None:
        try:
            await self.read(self._read_next)
        except asyncio.CancelledError:  # it hangs
            self._renew_readers()
            raise
        self._hand_out_pieces()

    def _renew_readers(self) -> None:
        """Read the shown runs from the start: it is unknown how much a failed or hung thread has read."""
        self._file_lock = threading.Lock()
        self._tiles = {run_id: RunReader(run_id, View.READABLE, self._events_of(run_id)) for run_id in self._tiles}
        if (reader := self._reader) is not None:
            self._reader = RunReader(reader.run_id, reader.view, self.engine.line_file(reader.run_id, reader.view.file))

    def _read_along(self, update: Update) -> None:
        """Read the shown run's new output, to draw it in one frame with its row in the list.

        Not while another read is running: its result asks for the next piece.
        """
        reader = self._reader
        if reader is not None and any(run.run_id == reader.run_id for run in update.runs):
            self._read_next((reader,), wait=False)

    def _read_tiles(self, update: Update) -> None:
        """Read the new output of the runs on the grid, all at once and a few times a second."""
        tiles = self._tiles
        self._behind.update(run.run_id for run in update.runs if run.run_id in tiles)
        if self._behind and (now := time.monotonic()) >= self._tiles_due_at:
            behind, self._behind = self._behind, set()
            self._tiles_due_at = now + len(behind) * PER_TILE_S
            if self._read_next([tiles[run_id] for run_id in behind if run_id in tiles], wait=False):
                self.call_later(self._take_when_due)
            else:
                self._behind |= behind

    def _read_next(self, readers: Sequence[RunReader] | None = None, *, wait: bool = True) -> bool:
        """Read a piece of each of these, by default of all; without `wait` only if no other thread is reading.

        Return whether it was read.
        """
        lock = self._file_lock
        if not lock.acquire(blocking=wait):
            return False
        try:
            shown = self._reader
            everybody = [*self._tiles.values(), *(() if shown is None else (shown,))]
            for reader in everybody if readers is None else readers:
                piece = reader.read()
                with self._lock:
                    self._pieces.append(TranscriptRead(reader, piece))
        except Exception:
            self._renew_readers()
            raise
        finally:
            lock.release()
        return True

    def _hand_out_pieces(self) -> None:
        with self._lock:
            pieces, self._pieces = self._pieces, []
        for message in pieces:
            self.post_message(message)

    @on(TranscriptRead)
    def drop_stale_piece(self, message: TranscriptRead) -> None:
        """Drop a piece that was still on its way when another run was chosen."""
        if message.reader is not self._reader and not self.is_of_tile(message.reader):
            message.stop()

    @on(Worker.StateChanged)
    def worker_ended(self, event: Worker.StateChanged) -> None:
        error = event.worker.error
        if event.state is WorkerState.ERROR and error is not None and not self._stop.is_set():
            log_fault(f"in the worker {event.worker.name or event.worker.group}", error)
            self.post_message(EngineFailed(format_error(error)))
