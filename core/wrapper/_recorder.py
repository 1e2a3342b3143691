"""Record a run's changes, each time in a forked process: the wrapper keeps serving its agent, and continues without the
recording if it takes too long.
"""

from __future__ import annotations

import os
import select
import signal
import time
from collections.abc import Callable
from typing import NoReturn

import msgspec

from ..run import artifacts
from ..run.changes import NOT_RECORDED, Changes, ChangesSource
from ..run.events import Baseline
from ..run.model import RunMeta
from ..system import processes
from ..system.log import log_fault
from ..text.decoder import decoded
from ._wakeup import read_available

BASELINE_S = 10.0
"""Seconds that the agent's task waits for the baseline."""
FINISH_S = 20.0
"""Seconds that the end of a run waits for its changes."""
KILLED_S = 1.0
"""The same for a run that is being killed."""
NICENESS = 10
"""Leaves the processor to the agent, which takes longer to start: saves 5 % of that."""
LOOK_S = 0.1
"""Seconds between two checks for a stop, while nothing else is served."""


class Recorder:
    """Recorder of one run, from before its first agent until its processes have ended."""

    def __init__(self, meta: RunMeta, run_dir: str, root: str | None) -> None:
        """`root` is the run's working tree; None outside git."""
        self._meta = meta
        self._run_dir = run_dir
        self._root = root
        self._job: Job | None = None
        self._presence = -1
        self._baseline: Baseline | None = None
        """Set once known, or known to be missing."""
        self._is_taken = False

    @property
    def descriptor(self) -> int:
        """Becomes readable with news of the baseline; -1 if none is expected."""
        return self._job.descriptor if self._job else -1

    @property
    def due(self) -> float | None:
        """When the baseline is abandoned, in monotonic seconds."""
        return self._job.deadline if self._job else None

    def begin(self) -> None:
        """Begin the baseline, unless already done: the agent may not act until it is settled."""
        meta, run_dir, root = self._meta, self._run_dir, self._root
        if root is None or self._job or self._baseline:
            return
        from ..work import presence  # not loaded outside git

        words = f"{meta.title} {meta.short_id}"
        try:
            self._presence = presence.announce(meta.run_id, root, words)
        except OSError as error:
            log_fault("recording a run's working tree", error)

        def baseline() -> bytes:
            from ..work.snapshots import begin

            return msgspec.json.encode(begin(meta, run_dir, root))

        self._job = self._started(baseline, BASELINE_S)
        if self._job is None:
            self._baseline = Baseline(root=root, note=f"{NOT_RECORDED}: cannot start a process for it")

    def advance(self, now: float) -> bool:
        """Read any news of the baseline; return whether it has just been settled."""
        job = self._job
        if job is None or not (job.read() or now >= job.deadline):
            return False
        self._job = None
        self._baseline = decoded(job.end(), Baseline)
        if self._baseline is None:
            late = "it took too long" if now >= job.deadline else "git was ended before it finished"
            self._baseline = Baseline(root=self._root or "", note=f"{NOT_RECORDED}: {late}")
        return True

    def take_baseline(self) -> Baseline | None:
        """Return the baseline once, when it is settled."""
        if self._is_taken or self._baseline is None:
            return None
        self._is_taken = True
        return self._baseline

    def settle(self, is_stopped: Callable[[], bool] = lambda: False) -> None:
        """Wait until the baseline is settled, or the run must end."""
        while self._job is not None and not self.advance(time.monotonic()) and not is_stopped():
            wait(self._job.descriptor, min(self._job.deadline, time.monotonic() + LOOK_S))

    def finish(self, *, used_tools: bool) -> Changes | None:
        """Return the run's changes, now that its processes have ended. A request to kill the run does not have to wait.

        `used_tools` is False only if the run certainly used none.
        """
        self.settle()
        root, note = self._root, ""
        if root is None and not used_tools:
            return Changes(source=ChangesSource.TOOLS)
        if root is not None and (self._baseline is None or not self._baseline.tree):
            note = (self._baseline and self._baseline.note) or "the directory's earlier state is unknown"
        meta, run_dir = self._meta, self._run_dir

        def changes() -> bytes:
            if root is None or note:
                from ..work.attribution import changes_by_tools

                return msgspec.json.encode(changes_by_tools(meta, run_dir, note))
            from ..work.snapshots import finish

            return msgspec.json.encode(finish(meta, run_dir, root))

        job = self._started(changes, FINISH_S)
        if job is None:
            return Changes(note=f"{NOT_RECORDED}: cannot start a process for it")
        is_killed = False
        while not job.read() and (now := time.monotonic()) < job.deadline:
            if not is_killed and (stop := artifacts.read_stop(run_dir)) and stop.force:
                is_killed = True
                job.deadline = min(job.deadline, now + KILLED_S)
            wait(job.descriptor, min(job.deadline, now + LOOK_S))
        why = "it took too long" if time.monotonic() >= job.deadline else "git was ended before it finished"
        why = "the run was killed" if is_killed else why
        return decoded(job.end(), Changes) or Changes(note=f"{NOT_RECORDED}: {why}")

    def close(self) -> None:
        """End any recording, and remove the announcement of this run."""
        if self._job is not None:
            self._job.end()
            self._job = None
        if self._presence >= 0:
            os.close(self._presence)
            self._presence = -1

    def _started(self, work: Callable[[], bytes], patience: float) -> Job | None:
        try:
            return Job(work, patience, niceness=NICENESS)
        except OSError as error:
            log_fault("recording a run's changes", error)
            return None


def working_tree(directory: str) -> str | None:
    """Return the root of a directory's git repository, as git would find it but without asking it; None outside git."""
    directory = os.path.realpath(directory)
    while True:
        git = f"{directory}/.git"
        if os.path.lexists(git) and (os.path.isfile(git) or os.path.exists(f"{git}/objects")):
            return directory
        directory, former = os.path.dirname(directory), directory
        if directory == former:
            return None


# --- a process for one task ------------------------------------------------------------------------------------------

_REPORT = 3
"""The descriptor for its report."""


class Job:
    """A forked process that reports once."""

    def __init__(self, work: Callable[[], bytes], patience: float, *, niceness: int = 0) -> None:
        """Fork it. Raises OSError."""
        self.deadline = time.monotonic() + patience
        self._report = b""
        self.descriptor, writer = os.pipe()
        os.set_blocking(self.descriptor, False)
        bind = processes.ending_with_parent(signal.SIGKILL)
        mask = signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
        try:
            self._pid = os.fork()
            if self._pid == 0:
                _work(work, writer, bind, niceness)
        except BaseException:
            os.close(self.descriptor)
            raise
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, mask)
            os.close(writer)

    def read(self) -> bool:
        """Read its report; return whether that is complete."""
        for chunk in read_available(self.descriptor):
            self._report += chunk
            if not chunk:
                return True
        return False

    def end(self) -> bytes:
        """End it with its processes, unless it has ended; return its report."""
        os.close(self.descriptor)
        if not self._is_gone():
            from ..system.termination import kill_tree

            kill_tree(self._pid)
            self._is_gone(wait=True)
        return self._report

    def _is_gone(self, *, wait: bool = False) -> bool:
        try:
            return bool(os.waitpid(self._pid, 0 if wait else os.WNOHANG)[0])
        except ChildProcessError:  # its exit was collected together with others
            return True


def _work(work: Callable[[], bytes], writer: int, bind: Callable[[], None], niceness: int) -> NoReturn:
    """Do the work of the fork, and report; no signal handler or lock of the wrapper is active here."""
    try:
        signal.set_wakeup_fd(-1)
        for number in (*(signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT), signal.SIGALRM, signal.SIGUSR1):
            signal.signal(number, signal.SIG_DFL)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_SETMASK, ())
        bind()
        os.setsid()
        os.nice(niceness)
        os.dup2(writer, _REPORT, inheritable=False)
        processes.close_inherited(above=_REPORT)
        report = memoryview(work())
        while report:
            report = report[os.write(_REPORT, report) :]
    except BaseException as error:
        log_fault("in a process that the wrapper has forked", error)
    finally:
        os._exit(0)


def wait(descriptor: int, deadline: float) -> None:
    """Wait until there is something to read, or until a deadline in monotonic seconds."""
    poller = select.poll()
    poller.register(descriptor, select.POLLIN)
    poller.poll(max(0.0, deadline - time.monotonic()) * 1000 + 1)
