"""One child, from its start until nothing of it is left; single-threaded, on poll."""

from __future__ import annotations

import os
import select
import signal
import time
from types import FrameType

from msgspec.structs import replace

from .. import paths
from ..agents.base import Command, Open, Settling
from ..agents.pi.stream import PiStream
from ..run import artifacts
from ..run.events import RunStarted
from ..run.model import RunMeta, RunReason, StopRequest
from ..run.outcome import ChildExit, Failure, Outcome, decide
from ..system import processes
from .child import Child, read_available
from .intake import Intake
from .limits import Step, StopEscalation, Watchdog
from .queue import Signals
from .records import Records

LEFT_OVERS_S = 0.5
"""How long processes the child left behind get between TERM and KILL."""


class Attempt:
    """Starts the child, keeps its records, ends it when it has finished, is stopped or oversteps a limit."""

    def __init__(self, meta: RunMeta, run_dir: str, records: Records, signals: Signals, stream: PiStream) -> None:
        self._meta = meta
        self._run_dir = run_dir
        self._records = records
        self._signals = signals
        self._stream = stream
        self._intake = Intake(stream, records)
        self._escalation = StopEscalation(meta.grace_seconds)
        self._stop: StopRequest | None = None
        self._signal: str | None = None
        self._limit: RunReason | None = None
        self._exited: ChildExit | None = None
        self._handle_signals(first=True)

    @property
    def is_stopped(self) -> bool:
        """Whether somebody wants it to end, perhaps before it was started."""
        return self._stop is not None or self._signal is not None

    def start(self, command: Command, number: int) -> None:
        """Start the child; where that fails nothing of it is left.

        Raises OSError, or ValueError for arguments that no program can get.
        """
        self._number = number
        try:
            self._child = Child(command, self._meta.cwd, os.path.join(self._run_dir, paths.prompt_name(number)))
        except BaseException:
            self._end_descendants()
            raise

    def follow(self, began: float, turns: int) -> Outcome:
        """Supervise the started child to its end, and end what it leaves behind.

        Limits count over all attempts: `began` is when the run began, in monotonic seconds, `turns` what it had before.
        """
        try:
            self._announce(self._child, self._number)
            self._watchdog = Watchdog(self._meta.limits, began)
            self._turns = turns
            returncode = self._serve(self._child)
        finally:
            self._end_descendants()
        self._drain(self._child)
        self._child.close()
        self._exited = ChildExit.of(returncode)
        return self.outcome()

    def outcome(self, *, goes_on: bool = False, failure: Failure | None = None) -> Outcome:
        """Return how the run ends with this child; `goes_on`: its last word was not the run's."""
        facts = self._stream.facts
        return decide(
            replace(facts, finished=False) if goes_on else facts,
            exit=self._exited,
            stop=self._stop,
            limit=self._limit,
            signal=self._signal,
            failure=failure,
            stderr=self._intake.last_words,
            finalize=self._meta.finalize,
        )

    def barred(self, turns: int) -> Outcome | None:
        """Return how the run ends because no other child may follow: it is stopped, or a limit is reached; else None.

        `turns` are those of all attempts so far.
        """
        now = time.monotonic()
        self._handle_signals(first=True)
        self._watchdog.heard(now, 0)
        self._limit = self._limit or self._watchdog.overstepped(now, turns, goes_on=True)
        return self.outcome(goes_on=True) if self._limit or self.is_stopped else None

    def _end_descendants(self) -> None:
        patience = 0.0 if self._stop and self._stop.force else LEFT_OVERS_S
        processes.end_all(lambda: processes.descendants(os.getpid()), patience)

    def _announce(self, child: Child, number: int) -> None:
        own = os.getpid()
        started = RunStarted(
            pid=own,
            child_pid=child.pid,
            pid_started=processes.start_time(own),
            child_pid_started=child.started,
            attempt=number,
            max_attempts=self._meta.max_attempts,
        )
        self._records.event(started)
        self._records.touch()

    def _serve(self, child: Child) -> int:
        """Serve pipes, signals and clocks until the child has ended; return its return code."""
        self._heard = time.monotonic()
        self._watchdog.heard(self._heard, 0)
        woken = _wake_on_signals()
        pidfd = os.pidfd_open(child.pid)
        poller = select.poll()
        for descriptor in (child.stdout, child.stderr, pidfd, woken):
            poller.register(descriptor, select.POLLIN)
        try:
            self._handle_signals()
            while (returncode := child.exit()) is None:
                for descriptor, _ in poller.poll(self._timeout_ms()):
                    if descriptor == woken:
                        _empty(woken)
                        self._handle_signals()
                        processes.reap(keep=child.pid)
                    elif descriptor in (child.stdout, child.stderr) and not self._read(child, descriptor):
                        poller.unregister(descriptor)
                self._advance(child)
            return returncode
        finally:
            os.close(pidfd)

    def _timeout_ms(self) -> float | None:
        """Milliseconds until the next clock of ours; None when only the child or a signal can bring news."""
        clocks = (self._escalation.due(), self._records.touch_due(), self._watchdog.due(), self._settled_at())
        due = min((clock for clock in clocks if clock is not None), default=None)
        return None if due is None else max(0.0, due - time.monotonic()) * 1000 + 1

    def _settled_at(self) -> float | None:
        completion = self._stream.completion
        if isinstance(completion, Open) or self._escalation.has_begun:
            return None
        return self._heard + (completion.seconds if isinstance(completion, Settling) else 0)

    def _advance(self, child: Child) -> None:
        """Write the activity record and take the step of the escalation, where they are due."""
        now = time.monotonic()
        self._records.touch()
        settled = self._settled_at()
        if settled is not None and settled <= now:
            self._escalation.begin_grace(now)
        if not self._escalation.has_begun and self._limit is None:
            facts = self._stream.facts
            goes_on = facts.stop_reason == "toolUse" and not facts.handing_over
            self._limit = self._watchdog.overstepped(now, self._turns + facts.usage.turns, goes_on)
            if self._limit:
                self._escalation.stop(now)
        if not self._escalation.has_begun and not os.path.exists(os.path.join(self._run_dir, paths.LOCK)):
            self._escalation.stop(now)  # the run was deleted: nobody can see it or stop it any more
        step = self._escalation.take(now)
        if step is Step.TERM:
            child.terminate()
        elif step is Step.KILL:
            for pid in processes.descendants(os.getpid()):
                processes.send(pid, signal.SIGKILL)

    def _read(self, child: Child, pipe: int) -> bool:
        """Take one chunk; False at the end of the pipe."""
        for chunk in read_available(pipe):
            if pipe == child.stderr:
                self._intake.stderr(chunk)
            elif chunk:
                self._take_stdout(chunk)
                self._heard = time.monotonic()
                self._watchdog.heard(self._heard, self._stream.running_tools)
            else:
                # Nothing more can be said; without a word of its end it will not have finished.
                self._escalation.begin_grace(time.monotonic())
            return bool(chunk)
        return True

    def _take_stdout(self, chunk: bytes) -> None:
        if self._intake.stdout(chunk) and isinstance(self._stream.completion, Open):
            self._escalation.withdraw_grace()

    def _drain(self, child: Child) -> None:
        """Read what is still in the pipes; nobody is left to write more."""
        for chunk in read_available(child.stderr):
            self._intake.stderr(chunk)
        for chunk in read_available(child.stdout):
            self._take_stdout(chunk)
        self._intake.rest()

    def _handle_signals(self, *, first: bool = False) -> None:
        """Turn the signals that came into steps: what a stop request says, or a soft stop where there is none.

        `first` looks for a stop request without a signal, as one may have been written before we listened.
        """
        caught, self._signals.caught = self._signals.caught, []
        if not caught and not first:
            return
        request = artifacts.read_stop(self._run_dir)
        now = time.monotonic()
        if request is not None:
            self._stop = request
            if request.force:
                self._escalation.force(now)
            else:
                self._escalation.stop(now)
        elif caught:
            self._signal = self._signal or signal.Signals(caught[0]).name
            self._escalation.stop(now)


def _wake_on_signals() -> int:
    """Return a descriptor that becomes readable with each signal, the end of an orphan included."""
    reader, writer = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
    signal.set_wakeup_fd(writer, warn_on_full_buffer=False)
    signal.signal(signal.SIGCHLD, _noted)
    return reader


def _noted(number: int, frame: FrameType | None) -> None:
    """Let a signal write to the wake-up pipe, which an ignored one does not."""


def _empty(pipe: int) -> None:
    for _ in read_available(pipe):
        continue
