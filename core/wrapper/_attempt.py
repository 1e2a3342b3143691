"""One agent process, from start until all its processes are gone; single-threaded, on poll."""

from __future__ import annotations

import fcntl
import os
import select
import signal
import time
from collections.abc import Callable
from contextlib import suppress
from functools import cached_property
from typing import TYPE_CHECKING

from msgspec.structs import replace

from ..agents.child import Start, Stream
from ..agents.loader import running_side
from ..errors import SubdeckError
from ..run import artifacts
from ..run.environment import for_agent
from ..run.events import Event, RunStarted, UsageReported
from ..run.fold import add_usage
from ..run.model import RunReason, StopRequest, Usage
from ..run.outcome import ChildExit, Failure, Outcome, StreamFacts, decide
from ..system import processes
from ..system.files import open_regular
from ..system.log import log_fault
from ..system.spawn import Child
from ..system.termination import UnseenError
from ._containment import Containment
from ._intake import Intake
from ._limits import Watchdog
from ._queue import Signals
from ._spending import Spending, added
from ._stop_escalation import Step, StopEscalation
from ._wakeup import read_available, wake_on_signals
from .mailbox import Mailbox
from .records import Records

if TYPE_CHECKING:
    from ._recorder import Recorder

LEFT_OVERS_S = 0.5
"""Seconds between TERM and KILL for processes that the agent left behind."""

LONGEST_WAIT_S = 3600.0
"""Longest wait in seconds; the kernel accepts at most 24 days."""
MOST_UNREAD_REQUESTS = 3
"""Failed reads of a stop request before a signal counts without one."""


class _StoppedBefore(Exception):
    """The run must end before its agent was started."""


class Attempt:
    """Starts the agent, keeps its records, ends it when it has finished, is stopped or exceeds a limit."""

    def __init__(
        self,
        records: Records,
        signals: Signals,
        containment: Containment,
        mailbox: Mailbox,
        *,
        recorder: Recorder,
        start: Start,
        began: float,
        used: Usage,
        spending: Spending,
        report_session: Callable[[StreamFacts], None],
    ) -> None:
        """Limits count over all attempts: `began` is the run's start in monotonic seconds, `used` its usage so far.

        `report_session` is called when the agent has reported its id for the conversation.
        """
        meta = start.meta
        self._start_of = start
        self._meta = meta
        self._run_dir = start.run_dir
        self._records = records
        self._signals = signals
        self._containment = containment
        self._mailbox = mailbox
        self._recorder = recorder
        self._used = used
        self._spending = spending
        self._priced: Usage | None = Usage() if meta.prices else None
        """The agent's usage, if the stream does not know its cost."""
        self._child = running_side(meta.kind)
        self._poller = select.poll()
        self._input: ChildInput | None = None
        self._report_session = report_session
        self._reported_id: str | None = None
        self._escalation = StopEscalation(meta.grace_seconds)
        self._watchdog = Watchdog(meta.limits, began, signals.lease)
        self._stop: StopRequest | None = None
        self._signal: str | None = None
        self._limit: RunReason | None = None
        self._exited: ChildExit | None = None
        self._unread_requests = 0
        """How often the disk failed to show whether there is a stop request."""
        self.has_child = False
        """Whether the agent was started."""
        self.not_ended: tuple[str, ...] = ()
        """Its processes that could not be ended."""
        self._handle_signals()

    @cached_property
    def _stream(self) -> Stream:
        """The reader of the agent: its kind may load it only now, while the agent starts."""
        return self._child.stream(self._start_of)

    @cached_property
    def _intake(self) -> Intake:
        return Intake(self._stream, self._records, self._take_event)

    @property
    def facts(self) -> StreamFacts:
        facts = self._stream.facts
        if self._priced is None:
            return facts
        return replace(facts, usage=replace(self._priced, tool_uses=facts.usage.tool_uses))

    def _take_event(self, event: Event) -> None:
        if isinstance(event, UsageReported):
            event = self._spending.take(event)
            if self._priced is not None:
                self._priced = add_usage(self._priced, event)
        self._mailbox.take(event)

    @property
    def paused(self) -> float:
        """Seconds that time limits were paused."""
        return self._watchdog.paused

    @property
    def is_stopped(self) -> bool:
        """Whether the agent must end, perhaps before it was started."""
        return self._stop is not None or self._signal is not None

    @property
    def is_over(self) -> bool:
        """Whether the run ends with it in any case: it was stopped, hit a limit, or could not be started."""
        return self.is_stopped or self._limit is not None or not self.has_child

    def run(self) -> Outcome:
        """Start the agent and supervise it to its end; no process of it is left then."""
        if self.is_stopped:
            return self._outcome()
        if self._meta.limits.is_overspent(self._used):
            self._limit = RunReason.BUDGET
            return self._outcome(is_final=False)
        if self._signals.is_lease_over:
            self._limit = RunReason.LEASE
            return self._outcome(is_final=False)
        try:
            child = self._start()
        except _StoppedBefore:
            return self._outcome()
        except UnseenError:  # this process cannot see that the run has ended
            raise
        except OSError as error:
            return self._outcome(failure=Failure.of_start(error, self._meta.agent_command[0]))
        except SubdeckError as error:
            return self._outcome(failure=Failure(RunReason.START_FAILED, str(error)))
        except Exception as error:  # arguments that no program accepts, or our own fault
            return self._outcome(failure=_fault(RunReason.START_FAILED, error))
        self.has_child = True
        try:
            try:
                self._announce(child)
                returncode = self._serve(child)
            finally:
                if self._input:
                    self._input.close()
                self._end_descendants()
            self._drain()
            self._mailbox.detach()
            self._watchdog.resume(time.monotonic())
        except UnseenError:  # the same
            raise
        except Exception as error:
            return self._outcome(failure=_fault(RunReason.LOST, error))
        finally:
            child.close()
        self._exited = None if returncode is None else ChildExit.of(returncode)
        return self._outcome()

    def outcome_without_another(self) -> Outcome | None:
        """Return the run's result if a stop or a limit forbids another agent process; otherwise None."""
        now = time.monotonic()
        self._handle_signals()
        self._watchdog.heard(now, 0)
        used = added(self._used, self.facts.usage)
        self._limit = self._limit or self._watchdog.exceeded(now, used, wants_turn=True)
        return self._outcome(is_final=False) if self._limit or self.is_stopped else None

    def _outcome(self, *, is_final: bool = True, failure: Failure | None = None) -> Outcome:
        """Return the run's result with this agent; unless `is_final` its last message was not the run's."""
        return decide(
            self.facts if is_final else replace(self.facts, finished=False),
            exit=self._exited,
            stop=self._stop,
            limit=self._limit,
            figures=self._figures(),
            signal=self._signal,
            failure=failure,
            stderr=self._child.explain(self._meta, self._intake.last_words) or self._intake.last_words,
            finalize=self._meta.finalize,
        )

    def _figures(self) -> str:
        if self._limit is RunReason.LEASE and self._signals.lease:
            return self._signals.lease.words
        if self._limit is not RunReason.BUDGET:
            return ""
        return self._meta.limits.spent_words(added(self._used, self.facts.usage))

    def _start(self) -> Child:
        """Start the agent in its own session, so that a key typed in its pane reaches only the wrapper.

        Raises OSError with the file to blame; on any error no process of the agent is left.
        """
        command = self._child.command(self._start_of)
        if not command.pipe:  # it reads its task at once
            self._recorder.begin()
            self._settle_baseline()
        environment = for_agent(command.env, command.unset, self._meta.cwd)
        try:
            prompt = open_regular(self._start_of.prompt_path)[0]
            try:
                child = self._containment.start(
                    command.argv,
                    directory=self._meta.cwd,
                    environment=environment,
                    stdin=None if command.pipe else prompt,
                )
            finally:
                os.close(prompt)
            self._stdout, self._stderr = child.stdout, child.stderr
            for pipe in (self._stdout, self._stderr):
                os.set_blocking(pipe, False)
            _widen(self._stdout)
            self._recorder.begin()  # the agent starts in the meantime, and gets its task when that is done
            if child.stdin is not None:
                self._input = ChildInput(child.stdin, self._poller)
            _ = self._intake  # its module must load now
        except BaseException:
            self._end_descendants()
            raise
        return child

    def _settle_baseline(self) -> None:
        """Wait until the working tree's state before the agent is known. Raises _StoppedBefore."""

        def is_stopped() -> bool:
            self._handle_signals()
            return self.is_stopped

        self._recorder.settle(is_stopped)
        self._take_baseline()
        if self._recorder.descriptor >= 0:
            raise _StoppedBefore

    def _take_baseline(self) -> None:
        """Record the working tree's earlier state, once it is known."""
        if baseline := self._recorder.take_baseline():
            self._records.event(baseline)

    def _end_descendants(self) -> None:
        patience = 0.0 if self._stop and self._stop.force else LEFT_OVERS_S
        self.not_ended = self._containment.end(patience)

    def _announce(self, child: Child) -> None:
        pid = os.getpid()
        self._containment.add_child(child.pid)
        started = RunStarted(
            pid=pid,
            child_pid=child.pid,
            pid_started=processes.start_time(pid),
            child_pid_started=processes.start_time(child.pid),
            boot_id=processes.boot_id(),
            pid_namespace=processes.pid_namespace(),
            attempt=self._start_of.attempt,
            max_attempts=self._meta.max_attempts,
        )
        self._records.event(started)
        self._records.touch(time.monotonic())

    def _serve(self, child: Child) -> int | None:
        """Serve pipes, signals and timers until the agent has ended; return its return code.

        None for an agent that cannot be ended, such as one that now belongs to another user.
        """
        self._watchdog.heard(time.monotonic(), 0)
        woken = wake_on_signals()
        foot, recorder = self._mailbox.foot, self._recorder
        for descriptor in (self._stdout, self._stderr, woken, foot.descriptor if foot else -1, recorder.descriptor):
            if descriptor >= 0:
                self._poller.register(descriptor, select.POLLIN)
        self._mailbox.attach(self._stream)
        self._handle_signals()
        self._look_into_inbox()
        while (returncode := child.poll()) is None:
            if self._escalation.gives_up(time.monotonic()):
                return None
            for descriptor, _ in self._poller.poll(self._timeout_ms()):
                if descriptor == woken:
                    for _ in read_available(woken):
                        continue
                    self._handle_signals()
                    self._look_into_inbox()
                    processes.reap(keep=child.pid)
                else:
                    self._take_from(descriptor)
            self._advance(child)
        return returncode

    def _take_from(self, descriptor: int) -> None:
        """Read new input, or write if there is room now."""
        foot = self._mailbox.foot
        if descriptor == self._recorder.descriptor:
            return  # `_advance` reads it, as it also has a deadline
        if self._input and descriptor == self._input.descriptor:
            self._input.go_on()
        elif foot and descriptor == foot.descriptor:
            if not foot.read():
                self._poller.unregister(descriptor)
            self._look_into_inbox()
        elif not self._read(descriptor):
            self._poller.unregister(descriptor)

    def _timeout_ms(self) -> float | None:
        """Milliseconds until our next timer; None if only the agent or a signal can bring news."""
        clocks = (
            *(self._escalation.due(), self._records.activity.due(), self._watchdog.due(), self._settled_at()),
            *(self._mailbox.due(), self._recorder.due),
            None if self._escalation.has_begun else self._records.gone_due,
        )
        due = min((clock for clock in clocks if clock is not None), default=None)
        return None if due is None else min(max(0.0, due - time.monotonic()), LONGEST_WAIT_S) * 1000 + 1

    def _settled_at(self) -> float | None:
        after = self._stream.finished_after
        return None if after is None or self._escalation.has_begun else self._watchdog.last_heard + after

    def _advance(self, child: Child) -> None:
        """Write the activity record and take the escalation step, if due."""
        now = time.monotonic()
        self._containment.look(now)
        recorded = self._recorder.descriptor
        if recorded >= 0 and self._recorder.advance(now):
            self._poller.unregister(recorded)
            self._take_baseline()
        self._records.touch(now)
        self._look_at_alerts(now)
        self._mailbox.advance(now)
        self._reply()
        if self._mailbox.waits_for_person:
            self._watchdog.pause(now)
        else:
            self._watchdog.resume(now)
        settled = self._settled_at()
        if settled is not None and settled <= now:
            self._escalation.begin_grace(now)
        self._keep_limits(now)
        if not self._escalation.has_begun and self._records.are_gone(now):
            self._escalation.stop(now)  # the run was deleted: no user can see or stop it any more
        step = self._escalation.take(now)
        if step is Step.TERM:
            child.terminate()
        elif step is Step.KILL:
            self._containment.kill()

    def _look_at_alerts(self, now: float) -> None:
        if alerts := self._mailbox.alerts:
            alerts.look(now)
            is_quiet = not (self._stream.running_tools or self._mailbox.waits_for_person or self._escalation.has_begun)
            alerts.look_for_silence(now, self._watchdog.last_heard, self._records.seq, is_quiet=is_quiet)

    def _keep_limits(self, now: float) -> None:
        if self._escalation.has_begun or self._limit is not None:
            return
        facts = self.facts
        used = added(self._used, replace(facts.usage, turns=facts.turns))
        self._limit = self._watchdog.exceeded(now, used, facts.wants_turn)
        if self._limit:
            self._stop_softly(now)

    def _read(self, pipe: int) -> bool:
        """Read one chunk; False at the end of the pipe."""
        for chunk in read_available(pipe):
            if pipe == self._stderr:
                self._intake.stderr(chunk)
            elif chunk:
                self._take_stdout(chunk)
                now = time.monotonic()
                self._watchdog.heard(now, self._stream.running_tools)
                self._keep_limits(now)  # before a reply lets the agent continue
                self._reply()
            else:
                # No more output can come; without an end message it will not have finished.
                self._escalation.begin_grace(time.monotonic())
            return bool(chunk)
        return True

    def _take_stdout(self, chunk: bytes) -> None:
        if self._intake.stdout(chunk) and self._stream.finished_after is None:
            self._escalation.withdraw_grace()
        if self.facts.session_id != self._reported_id:
            self._reported_id = self.facts.session_id
            self._report_session(self.facts)

    def _reply(self) -> None:
        """Send the agent its stream's replies, once it may act."""
        if self._recorder.descriptor >= 0:
            return
        message = self._stream.replies()
        if self._input and (message or self._stream.is_stdin_done):
            self._input.put(message, is_last=self._stream.is_stdin_done)

    def _drain(self) -> None:
        """Read the rest of the pipes; all writers are gone."""
        for chunk in read_available(self._stderr):
            self._intake.stderr(chunk)
        for chunk in read_available(self._stdout):
            self._take_stdout(chunk)
        self._intake.rest()

    def _handle_signals(self) -> None:
        """Carry out a stop request, or stop softly on a signal without one.

        A request may have been written before we listened, so check for it even without a signal.
        """
        try:
            request = artifacts.read_stop(self._run_dir, certain=True)
        except OSError:
            self._unread_requests += 1
            if self._unread_requests < MOST_UNREAD_REQUESTS:
                return  # a check each second follows: the reason for a signal is not known yet
            request = None
        caught, self._signals.caught = self._signals.caught, []
        now = time.monotonic()
        if request is not None:
            self._stop = request
            if request.force:
                self._escalation.force(now)
            else:
                self._stop_softly(now)
        elif caught:
            self._signal = self._signal or signal.Signals(caught[0]).name
            self._stop_softly(now)

    def _stop_softly(self, now: float) -> None:
        """First have an interactive agent end its turn by its own protocol; any other gets TERM at once."""
        is_deaf = self._input is None or self._recorder.descriptor >= 0
        if is_deaf or not self._stream.talks or self._stream.is_stdin_done:
            self._escalation.stop(now)
        elif self._escalation.ask(now):
            self._stream.interrupt(stays=False)
            self._reply()

    def _look_into_inbox(self) -> None:
        self._mailbox.look()
        if self._mailbox.is_wanted and self._stream.finished_after is None:
            self._stop_softly(time.monotonic())
        self._reply()


def _fault(reason: RunReason, error: Exception) -> Failure:
    """Report the wrapper's own failure: in words for the run, with its traceback in `stderr.log`."""
    with suppress(Exception):  # the fault may be that no more files can be opened
        import traceback

        traceback.print_exception(error)
    log_fault("supervising a run", error)
    return Failure(reason, f"its wrapper failed with {type(error).__name__}: {error}")


def _widen(pipe: int) -> None:
    """Enlarge the pipe's buffer: fewer turns for the agent's longest lines."""
    try:
        fcntl.fcntl(pipe, fcntl.F_SETPIPE_SZ, 1024 * 1024)
    except OSError:
        return  # above the user's limit: the default works as well


# --- the agent's input -----------------------------------------------------------------------------------------------

MOST_UNREAD = 64 * 1024 * 1024
"""Bytes that may wait; an agent that leaves that many unread gets no more."""


class ChildInput:
    def __init__(self, descriptor: int, poller: select.poll) -> None:
        """`descriptor` is the writing end of a pipe, owned by this object from now on."""
        os.set_blocking(descriptor, False)
        self.descriptor = descriptor
        """-1 once it is closed."""
        self._poller = poller
        self._unread = bytearray()
        self._is_last = False
        self._is_watched = False

    def put(self, message: bytes, *, is_last: bool) -> None:
        """Write as much as there is room for, and the rest later; close after the last message."""
        self._is_last = is_last
        if len(self._unread) + len(message) <= MOST_UNREAD:
            self._unread += message
        self.go_on()

    def go_on(self) -> None:
        """Write waiting bytes, now that there may be room."""
        if self.descriptor < 0:
            return
        try:
            while self._unread:
                del self._unread[: os.write(self.descriptor, self._unread)]
        except BlockingIOError:
            self._watch()
            return
        except OSError:
            self.close()  # the agent has closed its end, or is gone
            return
        self._ignore()
        if self._is_last:
            self.close()

    def close(self) -> None:
        if self.descriptor >= 0:
            self._ignore()
            self._unread.clear()
            os.close(self.descriptor)
            self.descriptor = -1

    def _watch(self) -> None:
        if not self._is_watched:
            self._poller.register(self.descriptor, select.POLLOUT)
            self._is_watched = True

    def _ignore(self) -> None:
        """Unregister it from the poller, which would report its reader's end again and again."""
        if self._is_watched:
            self._poller.unregister(self.descriptor)
            self._is_watched = False
