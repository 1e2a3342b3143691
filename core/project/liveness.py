"""Who is responsible for a run, proven by a kernel lock; and the finishing of runs that nobody is responsible for."""

from __future__ import annotations

import contextlib
import os
import select
import time
from enum import Enum

from .. import paths
from ..run import artifacts
from ..run.artifacts import RunnerFacts
from ..run.events import EventTail, RunStarted
from ..run.fold import Fold
from ..run.model import STATUS_OF, RunMeta, RunReason, RunResult, RunStatus, StopReason
from ..system import files, processes
from ..system.line_file import MOST_HELD
from ..text.plain import one_line, plain

BUSY_AGAIN = 0.02
"""Seconds after which a lock that a prober holds is tried again."""
FINISHING_S = 5.0
"""Seconds after which a prober that holds the lock is not waited for any more."""
GLANCE_S = 0.04
"""The same for who looks again soon and has more to do meanwhile."""
LEFT_OVERS = 0.5
"""Seconds between TERM and KILL for what a lost run left running."""


class Proof(Enum):
    FINISHED = "finished"
    """There is a result."""
    ALIVE = "alive"
    """Its launcher or its wrapper holds the lock, or a prober did for longer than it was waited for."""
    UNKNOWN = "unknown"
    """Nobody here holds it, but another machine, boot or pid namespace may, or a newer subdeck wrote it; or its end
    cannot be proven or written here (rights, a full disk)."""
    GONE = "gone"
    """There is no such run directory."""


def reconcile(project: paths.Project, run_id: str, *, by: str | None, patience: float = FINISHING_S) -> Proof:
    """Find out whether somebody is responsible for a run; where nobody is, finish it.

    What it left running is ended, then the result is written and signed with `by`; with None nothing is ended or
    written. Takes microseconds as a rule. Another process that has the lock to do the same is waited for, up to
    `patience` seconds; ending what the run left running takes up to 2.5 s.
    """
    run_dir = project.run_dir(run_id)
    ended = f"{run_dir}/{paths.RESULT}"
    if os.path.exists(ended):
        return Proof.FINISHED
    flags = os.O_RDONLY if by is None else os.O_RDWR | os.O_CREAT
    try:
        lock = os.open(f"{run_dir}/{paths.LOCK}", flags | os.O_CLOEXEC, 0o600)
    except OSError:
        return Proof.UNKNOWN if os.path.isdir(run_dir) else Proof.GONE
    try:
        if not _take(lock, run_dir, patience):
            return Proof.ALIVE
        if os.path.exists(ended):
            return Proof.FINISHED
        facts = artifacts.read_runner(run_dir)
        if by is None or (facts is not None and not is_here(facts)) or artifacts.is_newer(run_dir):
            return Proof.UNKNOWN
        result, child = _lost(run_dir, run_id, facts, by)
        _end_left_overs(run_id, child if facts else None)
        files.remove(os.path.join(run_dir, paths.ENVIRONMENT))
        artifacts.write_result(run_dir, result)
        files.remove(os.path.join(project.active, run_id))
        return Proof.FINISHED
    except OSError:
        return Proof.UNKNOWN if os.path.isdir(run_dir) else Proof.GONE
    finally:
        os.close(lock)


def is_here(facts: RunnerFacts) -> bool:
    """Return whether the pids in `facts` are those of this machine, this boot and this pid namespace."""
    ours = (processes.host(), processes.boot_id(), processes.pid_namespace())
    return (facts.host, facts.boot_id, facts.pid_namespace) == ours


class WrapperWatch:
    """The living wrappers of open runs. The kernel says which have died, in one call for all of them.

    A proof costs several calls for each run, so it can be left out for a run whose wrapper is known to be alive.
    """

    def __init__(self) -> None:
        self._deaths = select.epoll()
        self._pidfds: dict[str, int] = {}
        """By run id."""
        self._run_ids: dict[int, str] = {}
        """By pidfd."""

    def __contains__(self, run_id: str) -> bool:
        return run_id in self._pidfds

    def __del__(self) -> None:
        for run_id in tuple(self._pidfds):
            self.forget(run_id)
        self._deaths.close()

    def add(self, run_id: str, run_dir: str) -> None:
        """Watch a run's wrapper if it is a living process of this machine, and few enough are watched already."""
        if run_id in self._pidfds or len(self._pidfds) >= MOST_HELD:
            return
        facts = artifacts.read_runner(run_dir)
        if facts is None or facts.pid_started is None or not is_here(facts):
            return
        try:
            pidfd = os.pidfd_open(facts.pid)
        except (OSError, OverflowError):
            return
        if processes.is_alive(facts.pid, facts.pid_started):
            self._pidfds[run_id] = pidfd
            self._run_ids[pidfd] = run_id
            self._deaths.register(pidfd, select.EPOLLIN)
        else:
            os.close(pidfd)

    def forget(self, run_id: str) -> None:
        pidfd = self._pidfds.pop(run_id, None)
        if pidfd is not None:
            del self._run_ids[pidfd]
            os.close(pidfd)

    def take_dead(self) -> set[str]:
        """Return the runs whose wrappers have died since the last call; they are not watched any more."""
        dead = {self._run_ids[pidfd] for pidfd, _ in self._deaths.poll(0)}
        for run_id in dead:
            self.forget(run_id)
        return dead


def hold(run_dir: str) -> int | None:
    """Take a run's lock exclusively; None while somebody else has it. The descriptor holds it until it is closed."""
    try:
        lock = os.open(os.path.join(run_dir, paths.LOCK), os.O_RDWR | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        if _take(lock, run_dir, FINISHING_S):
            return lock
    except OSError:
        pass  # the directory has gone, or its file system has no locks
    os.close(lock)
    return None


def _take(lock: int, run_dir: str, patience: float) -> bool:
    """Take the lock exclusively; False when its launcher or wrapper has it, or a prober for `patience` seconds.

    They hold it shared and probers exclusively, so that a shared try tells them apart as long as no other prober is
    at it: probers ask one after the other, by a lock on the directory. One that has taken the lock is about to finish
    the run and is waited for. Raises OSError when the directory has gone or nothing can be locked there.
    """
    deadline = time.monotonic() + patience
    while True:
        turn = os.open(run_dir, os.O_RDONLY | os.O_CLOEXEC)
        try:
            with contextlib.suppress(OSError):  # some network file systems lock no directories
                files.lock(turn)
            if files.try_lock(lock):
                return True
            if files.try_lock(lock, shared=True):
                files.unlock(lock)
                return files.try_lock(lock)  # a prober may have been at its end just now
        finally:
            os.close(turn)
        if time.monotonic() > deadline:
            return False
        time.sleep(BUSY_AGAIN)


def _end_left_overs(run_id: str, child: RunStarted | None) -> None:
    """End what carries the run's mark, and the child that said goodbye to its environment with all below it."""

    def left() -> list[int]:
        found = processes.marked(run_id)
        if child and child.child_pid_started and processes.is_alive(child.child_pid, child.child_pid_started):
            found += [child.child_pid, *processes.descendants(child.child_pid)]
        return list(dict.fromkeys(found))

    processes.end_all(left, LEFT_OVERS)


def _lost(run_dir: str, run_id: str, facts: RunnerFacts | None, by: str) -> tuple[RunResult, RunStarted | None]:
    """Put together what is known of a run whose wrapper said nothing at its end, and which child it had last."""
    fold, child = Fold(), None
    for event in EventTail(os.path.join(run_dir, paths.EVENTS)).read():
        fold.apply(event)
        child = event if isinstance(event, RunStarted) else child
    meta = artifacts.read_meta(run_dir)
    reason, message = _reason(run_dir, fold, facts, meta)
    result = RunResult(
        run_id=run_id,
        status=STATUS_OF[reason],
        reason=reason,
        written_by=by,
        error_message=message,
        final_text=fold.final_text,
        attempts=fold.attempt,
        resolved_model=fold.model or (meta.resolved_model if meta else ""),
        child_session_id=meta.child_session_id if meta else None,
        usage=fold.usage,
        started_at=fold.started_at,
        ended_at=paths.now_iso(),
    )
    return result, child


def _reason(run_dir: str, fold: Fold, facts: RunnerFacts | None, meta: RunMeta | None) -> tuple[RunReason, str | None]:
    if fold.ended is not None and fold.ended.reason.is_known:
        reason = fold.ended.reason
        done = STATUS_OF[reason] is RunStatus.COMPLETED
        return reason, None if done else "its wrapper died after it had written this end"
    stop_request = artifacts.read_stop(run_dir)
    if stop_request is not None:
        asked = RunReason.CANCELLED if stop_request.reason == StopReason.CANCELLED else RunReason.STOPPED
        reason = RunReason.KILLED if stop_request.force else asked
        return reason, f"{reason} by {one_line(stop_request.by, 80)}; its wrapper died on the way"
    if meta is None:
        return RunReason.LOST, f"{paths.META} is missing or broken and nobody holds the run"
    if facts is None:
        crash = _last_line(os.path.join(run_dir, paths.STDERR))
        if crash:
            return RunReason.START_FAILED, f"its wrapper could not start: {crash}"
        return RunReason.LOST, "its launcher died before the wrapper was started"
    return RunReason.LOST, "its wrapper died without a word; what it left running was ended"


def _last_line(path: str) -> str:
    try:
        with open(path, "rb") as file:
            file.seek(0, os.SEEK_END)
            file.seek(max(0, file.tell() - 2048))
            text = file.read().decode("utf-8", "replace")
    except OSError:
        return ""
    lines = plain(text).split("\n")
    return next((one_line(line, 300) for line in reversed(lines) if line.strip()), "")
