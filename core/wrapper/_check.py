"""The check of a run: a user's command that inspects the agent's work, before the result is written."""

from __future__ import annotations

import os
import select
import signal
import time

from msgspec.structs import replace

from .. import paths
from ..errors import in_one_line
from ..run import artifacts
from ..run.changes import NOT_RUN, CheckCommand, CheckResult
from ..run.describe import clock
from ..run.environment import for_command
from ..run.events import Check
from ..run.model import CheckState, RunMeta, RunResult, RunStatus
from ..run.outcome import ChildExit
from ..system.log import log_fault
from ..system.processes import RUN_MARK
from ..system.spawn import Child
from ..system.termination import UnseenError
from ..text.decoder import decode
from ..text.plain import one_line, plain
from ._containment import Containment
from ._event_file import AppendedFile
from ._queue import Signals
from ._stop_escalation import Step, StopEscalation
from ._wakeup import read_available, wake_on_signals
from .records import Records

KEPT = 4096
"""Bytes at the end of its output, from which the result takes the last lines."""
LINES = 20
"""Lines in the result."""
LEFT_OVERS_S = 0.5
"""Seconds between TERM and KILL for processes that it left behind."""
LONGEST_WAIT_S = 3600.0


def check(
    meta: RunMeta,
    run_dir: str,
    order: str,
    result: RunResult,
    *,
    records: Records,
    signals: Signals,
    containment: Containment,
) -> CheckResult | None:
    """Run the check of a completed run, and return its result; None without a check.

    `order` is the launcher's `CheckCommand` in JSON. A failure here is the check's result, not the run's.
    """
    if not meta.check:
        return None
    if result.status is not RunStatus.COMPLETED:
        became = "failed" if result.status is RunStatus.FAILED else "was ended"
        return CheckResult(meta.check, note=f"{NOT_RUN}: the run {became}")
    if not order:
        return CheckResult(meta.check, note=f"{NOT_RUN}: its launcher did not pass the command")
    if records.are_gone(time.monotonic()) or artifacts.read_stop(run_dir):
        return CheckResult(meta.check, note=f"{NOT_RUN}: the run was being stopped")
    try:
        command = decode(order, CheckCommand)
        records.event(Check(name=meta.check, state=CheckState.STARTED))
        ended = _Check(meta, run_dir, command, records, signals, containment).run()
    except UnseenError:
        raise
    except Exception as error:  # our own errors, too
        log_fault("checking a run's result", error)
        ended = CheckResult(meta.check, note=f"cannot run it: {one_line(in_one_line(error), 200)}")
    records.event(
        Check(
            name=ended.name,
            state=CheckState.ENDED,
            exit_code=ended.exit_code,
            seconds=ended.seconds,
            output=ended.output,
            note=ended.note,
        )
    )
    return ended


class _Check:
    def __init__(
        self,
        meta: RunMeta,
        run_dir: str,
        command: CheckCommand,
        records: Records,
        signals: Signals,
        containment: Containment,
    ) -> None:
        self._meta = meta
        self._run_dir = run_dir
        self._command = command
        self._records = records
        self._signals = signals
        self._caught = len(signals.caught)
        """Earlier signals: they were for the agent."""
        self._containment = containment
        self._escalation = StopEscalation(meta.grace_seconds)
        self._note = ""
        """Why it is ended from outside, in words."""
        self._end = b""
        """End of its output."""
        self._log = AppendedFile(run_dir, paths.CHECK_LOG, records.note_trouble, meta.log_caps.stderr)

    def run(self) -> CheckResult:
        began = time.monotonic()
        try:
            child = self._start()
        except (OSError, ValueError) as error:
            self._log.close()
            named = one_line(str(getattr(error, "filename", "") or self._command.argv[0]), 200)
            why = getattr(error, "strerror", None) or error
            return CheckResult(self._meta.check, note=f"cannot start it: {named}: {why}")
        try:
            returncode = self._serve(child, began)
        finally:
            not_ended = self._containment.end(0.0 if self._note else LEFT_OVERS_S)
            for chunk in read_available(child.stdout):
                self._take(chunk)
            child.close()
            self._log.close()
        seconds = round(time.monotonic() - began, 3)
        ended = CheckResult(self._meta.check, seconds=seconds, output=_last_lines(self._end))
        if not_ended:
            return replace(ended, note=one_line(f"could not be ended: {', '.join(not_ended)}", 300))
        if self._note or returncode is None:
            return replace(ended, note=self._note or "it could not be ended")
        exit_ = ChildExit.of(returncode)
        return replace(ended, exit_code=exit_.code, note=f"it was killed by {exit_.signal}" if exit_.signal else "")

    def _start(self) -> Child:
        """Start it in the agent's directory, in its own session. Raises OSError and ValueError."""
        nothing = os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC)
        try:
            child = self._containment.start(
                self._command.argv,
                directory=self._meta.cwd,
                environment=for_command(self._meta.cwd, {RUN_MARK: self._meta.run_id}),
                stdin=nothing,
                one_output=True,
            )
        finally:
            os.close(nothing)
        os.set_blocking(child.stdout, False)
        self._containment.add_child(child.pid)
        return child

    def _serve(self, child: Child, began: float) -> int | None:
        """Read its output until it has ended; None if it cannot be ended."""
        poller, woken = select.poll(), wake_on_signals()
        for descriptor in (child.stdout, woken):
            poller.register(descriptor, select.POLLIN)
        deadline = began + self._command.timeout
        self._look()
        while (returncode := child.poll()) is None:
            if self._escalation.gives_up(time.monotonic()):
                return None
            for descriptor, _ in poller.poll(self._timeout_ms(deadline)):
                if descriptor == woken:
                    for _ in read_available(woken):
                        continue
                    self._look()
                elif not self._read(child.stdout):
                    poller.unregister(child.stdout)
            now = time.monotonic()
            self._keep_limits(now, deadline)
            self._records.touch(now)
            self._containment.look(now)
            match self._escalation.take(now):
                case Step.TERM:
                    _ask_group(child)
                case Step.KILL:
                    self._containment.kill()
                case None:
                    pass
        return returncode

    def _timeout_ms(self, deadline: float) -> float:
        records = self._records
        clocks = (
            *(deadline if not self._note else None, self._escalation.due()),
            *(records.activity.due(), None if self._note else records.gone_due),
        )
        due = min((clock for clock in clocks if clock is not None), default=None)
        wait = LONGEST_WAIT_S if due is None else min(max(0.0, due - time.monotonic()), LONGEST_WAIT_S)
        return wait * 1000 + 1

    def _keep_limits(self, now: float, deadline: float) -> None:
        """Stop a check that takes too long, or whose run was deleted."""
        if now >= deadline:
            self._stop(f"it took longer than {clock(self._command.timeout)}")
        if self._records.are_gone(now):
            self._stop("the run was stopped while the check was running")

    def _look(self) -> None:
        """Carry out a stop request, or a signal without one."""
        request = artifacts.read_stop(self._run_dir)
        if request and request.force:
            self._note = "the run was killed while the check was running"
            self._escalation.force(time.monotonic())
        elif request:
            self._stop("the run was stopped while the check was running")
        elif self._signals.is_lease_over:
            self._stop("the run's lease expired while the check was running")
        elif len(self._signals.caught) > self._caught:
            name = signal.Signals(self._signals.caught[-1]).name
            self._stop(f"the wrapper got {name} while the check was running")

    def _stop(self, note: str) -> None:
        if not self._note:
            self._note = note
            self._escalation.stop(time.monotonic())

    def _read(self, pipe: int) -> bool:
        """Read one chunk; False at the end of the pipe."""
        for chunk in read_available(pipe):
            self._take(chunk)
            return bool(chunk)
        return True

    def _take(self, chunk: bytes) -> None:
        self._log.append(chunk)
        self._end = (self._end + chunk)[-KEPT:]


def _ask_group(child: Child) -> None:
    """Send TERM to the check and the processes in its group."""
    try:
        os.killpg(child.pid, signal.SIGTERM)
    except OSError:
        child.terminate()


def _last_lines(end: bytes) -> str:
    whole = len(end) < KEPT
    text = plain(end.decode("utf-8", "replace")).strip("\n")
    lines = text.split("\n")[0 if whole else 1 :] or [text]
    return "\n".join(line.rstrip() for line in lines[-LINES:])
