"""The worktree of a run, on the wrapper's side: locked while the run uses it, created before its agent starts."""

from __future__ import annotations

import os
import time
from collections.abc import Callable

import msgspec

from .. import paths
from ..run.events import Notice, RunQueued
from ..run.model import NoticeLevel, RunMeta, RunReason, RunStatus, WaitsFor
from ..run.outcome import Outcome
from ..run.proven import has_stop
from ..system import files
from ..system.log import log_fault
from ._queue import Signals
from ._recorder import Job, wait
from .records import Records

LOOK_S = 0.1
"""Seconds between two checks for a stop."""
REMOVAL_S = 60.0


class Worktree:
    """The worktree of one run."""

    def __init__(self, meta: RunMeta, run_dir: str, records: Records, signals: Signals) -> None:
        from ..work.snapshots import project_of  # most runs have none

        self._meta = meta
        self._plan = meta.worktree
        self._run_dir = run_dir
        self._records = records
        self._signals = signals
        self._project = project_of(run_dir)
        host = self._plan.host if self._plan else ""
        self._directory = paths.work_dir(self._project, host or meta.run_id)
        self._lock = -1

    def prepare(self) -> Outcome | None:
        """Create it, unless the run continues in another run's; return the run's result if that fails.

        It is not created if the run must end.
        """
        from ..work.records import LOCK, read_record, tree_of

        record = read_record(paths.work_dir(self._project, self._meta.run_id))
        if record is None:
            return _failed("its worktree is no longer known")
        try:
            self._lock = files.open_lock(os.path.join(self._directory, LOCK))
            files.lock(self._lock, shared=True)
        except OSError as error:
            log_fault("locking the worktree", error)
        if record.host:
            if not os.path.isdir(tree_of(self._directory)):
                return _failed(f"the worktree of run {record.host[-6:]} no longer exists")
            text = f"continuing in the worktree of run {record.host[-6:]}: {record.branch}"
            self._records.event(Notice(level=NoticeLevel.INFO, text=text))
            return None
        if self._is_stopped():
            self._take_back()
            return None
        self._records.event(RunQueued(waits_for=WaitsFor.WORKTREE))
        fault, notes = self._made()
        for note in notes:
            self._records.event(Notice(level=NoticeLevel.INFO, text=note))
        if fault or self._is_stopped():
            self._take_back()
        return _failed(fault) if fault and not self._is_stopped() else None

    def close(self) -> None:
        """Allow its removal."""
        if self._lock >= 0:
            os.close(self._lock)
            self._lock = -1

    def _made(self) -> tuple[str, tuple[str, ...]]:
        """Create it; return an error, empty on success, and notes on what was done."""
        from ..text.decoder import UNDECODABLE, decode
        from ..work.records import read_making
        from ..work.worktree import MAKING_S, Made, make

        directory, log = self._directory, os.path.join(self._run_dir, paths.SETUP_LOG)
        patience = MAKING_S + read_making(directory).setup_timeout
        report = self._done(lambda: msgspec.json.encode(make(directory, log)), patience)
        try:
            made = decode(report, Made)
        except UNDECODABLE:
            return "cannot create its worktree: it took too long or was ended", ()
        return made.fault, made.notes

    def _take_back(self) -> None:
        """Remove it again: the agent never works there."""
        from ..work.worktree import take_back

        def work() -> bytes:
            take_back(self._project, (self._meta.run_id,))
            return b"done"

        self.close()
        self._done(work, REMOVAL_S, is_over=lambda: False)

    def _done(self, work: Callable[[], bytes], patience: float, is_over: Callable[[], bool] | None = None) -> bytes:
        """Run this in a separate process, unless the run must end; return its report."""
        is_over = is_over or self._is_stopped
        try:
            job = Job(work, patience)
        except OSError as error:
            log_fault("creating the worktree", error)
            return b""
        while not job.read() and time.monotonic() < job.deadline and not is_over():
            wait(job.descriptor, min(job.deadline, time.monotonic() + LOOK_S))
        return job.end()

    def _is_stopped(self) -> bool:
        return bool(self._signals.caught) or has_stop(self._run_dir)


def _failed(why: str) -> Outcome:
    return Outcome(RunStatus.FAILED, RunReason.START_FAILED, why)
