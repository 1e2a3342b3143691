"""The queue of runs: each waits for a slot of its group or project, or for an agent session, with file locks.

A lock is released with its process, so the queue needs no manager, and any launcher may die. Waiting runs queue for a
door lock, and only its holder tries the slots: a hundred waiting runs cost as much as one.
"""

from __future__ import annotations

import os
import time

from ..project.queue import PROJECT, QueueState, read_state
from ..run.proven import has_stop
from ..system.files import lock, make_private_directory, open_file, open_lock, remove, try_lock
from ._lease import Lease

TYPE_CHECKING = False  # as typing's
if TYPE_CHECKING:
    import signal
    from collections.abc import Callable, Sequence
    from types import FrameType
else:
    import _signal as signal  # without the enums of `signal`: saves 0.7 MB per waiting wrapper

DOOR = "door"
GATE = "gate"
TICKET = "waits-"
"""Name prefix of each waiting run's lock file."""

LOOK_AGAIN_S = 0.05
"""Seconds between two checks of the slots by the door's holder."""
LET_BY_S = 0.01
"""Seconds that a run with a later turn leaves the door: longer than the next run takes to get it."""


LOOK_FOR_STOP_S = 1.0
"""Seconds between checks for a stop request in a wrapper without a signal."""


class StopRequested(Exception):
    """A signal came while waiting."""


class Signals:
    """The signals received; while `waiting` the next one, or a stop request, raises StopRequested."""

    def __init__(self, run_dir: str, *each_second: Callable[[], None]) -> None:
        self._run_dir = run_dir
        self._each_second = each_second
        self.lease: Lease | None = None
        """The lease of a run on a host; its expiry also ends the wait."""
        self.caught: list[int] = []
        self.waiting = False

    def handle(self, number: int, frame: FrameType | None) -> None:
        self.caught.append(number)
        self._break_off()

    def wake(self, number: int, frame: FrameType | None) -> None:
        """Wake up a poll after something was sent to the run."""

    def look(self, number: int, frame: FrameType | None) -> None:
        """Check for a request whose writer could not signal this process; this also wakes up a poll."""
        for call in self._each_second:
            call()
        if self.lease:
            self.lease.look()
        if self.waiting and (self.is_lease_over or has_stop(self._run_dir)):
            self._break_off()

    @property
    def is_lease_over(self) -> bool:
        return self.lease is not None and self.lease.is_over

    def look_each_second(self) -> None:
        signal.signal(signal.SIGALRM, self.look)
        signal.setitimer(signal.ITIMER_REAL, LOOK_FOR_STOP_S, LOOK_FOR_STOP_S)

    def stop_looking(self) -> None:
        """Stop the alarm, which would kill the interpreter while it exits."""
        signal.setitimer(signal.ITIMER_REAL, 0)

    def ending_the_wait(self) -> Wait:
        """Raise StopRequested on a signal, including an earlier one; never after the block has been left."""
        return Wait(self)

    def _break_off(self) -> None:
        if self.waiting:
            self.waiting = False
            raise StopRequested


class Wait:
    """A block of code that a signal ends. It needs no `contextlib`, which a waiting wrapper does not load."""

    def __init__(self, signals: Signals) -> None:
        self._signals = signals

    def __enter__(self) -> None:
        self._signals.waiting = True  # before the look at earlier signals, so that none is missed
        if self._signals.caught:
            self._signals.waiting = False
            raise StopRequested

    def __exit__(self, *_: object) -> None:
        self._signals.waiting = False


def watch_signals(run_dir: str, *each_second: Callable[[], None]) -> Signals:
    """Catch TERM, INT, HUP and QUIT from now on."""
    signals = Signals(run_dir, *each_second)
    signal.pthread_sigmask(signal.SIG_SETMASK, ())  # a launcher may have blocked some of them
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT):
        signal.signal(number, signals.handle)
    signal.signal(signal.SIGUSR1, signals.wake)
    return signals


class Queue:
    """Reports once that this run waits, and for what, when it first has to."""

    def __init__(self, report: Callable[[str], None]) -> None:
        self._report = report
        self.reported = False

    def enter(self, kind: str) -> None:
        if not self.reported:
            self.reported = True
            self._report(kind)


class SlotReservation:
    """One of `limit` lock files in a directory.

    A waiting run holds a ticket, which shows that a run moved to the front is still there to go first.
    """

    def __init__(self, directory: str, limit: int, run_id: str) -> None:
        self._directory = directory
        self._limit = limit
        self._run_id = run_id

    def take(self, queue: Queue) -> int:
        """Return the descriptor that holds the slot until it is closed."""
        make_private_directory(self._directory)
        door, ticket = self._open(DOOR), -1
        try:
            if not try_lock(door):
                queue.enter("slot")
                ticket = self._take_ticket()
                lock(door)
            while (slot := self._slot_in_turn()) is None:
                queue.enter("slot")
                ticket = self._take_ticket() if ticket < 0 else ticket
                if not self._state.held and self._goes_later():
                    os.close(door)
                    door = -1
                    time.sleep(LET_BY_S)
                    door = self._open(DOOR)
                    lock(door)
                else:
                    time.sleep(LOOK_AGAIN_S)
            return slot
        finally:
            if door >= 0:
                os.close(door)
            if ticket >= 0:
                remove(os.path.join(self._directory, TICKET + self._run_id))
                os.close(ticket)

    def _open(self, name: str) -> int:
        return open_lock(os.path.join(self._directory, name))

    def _take_ticket(self) -> int:
        ticket = self._open(TICKET + self._run_id)
        try_lock(ticket)
        return ticket

    @property
    def _state(self) -> QueueState:
        return read_state(os.path.dirname(self._directory))

    def _slot_in_turn(self) -> int | None:
        """Return a free slot, unless the queue is paused or another run goes first."""
        return None if self._state.held or self._goes_later() else self._free_slot()

    def _goes_later(self) -> bool:
        """Whether a run that was moved before this one also waits here."""
        order = self._state.order
        before = order[: order.index(self._run_id)] if self._run_id in order else order
        return any(map(self._is_waiting, before))

    def _is_waiting(self, run_id: str) -> bool:
        path = os.path.join(self._directory, TICKET + run_id)
        try:
            ticket = open_file(path, os.O_RDWR)
        except OSError:
            return False
        try:
            if not try_lock(ticket):
                return True
            remove(path)  # its wrapper has died
            return False
        finally:
            os.close(ticket)

    def _free_slot(self) -> int | None:
        for number in range(self._limit):
            slot = self._open(str(number))
            if try_lock(slot):
                return slot
            os.close(slot)
        return None


class SessionReservation:
    """The lock of an agent session shared by several runs; one run at a time continues it."""

    def __init__(self, path: str, run_dir: str) -> None:
        self._path = path
        self._run_dir = run_dir
        self.holder_before = ""
        """Run directory of the last holder; its agent may have outlived its wrapper."""
        self._lock = -1

    def take(self, queue: Queue) -> int:
        make_private_directory(os.path.dirname(self._path))
        self._lock = open_lock(self._path)
        if not try_lock(self._lock):
            queue.enter("session")
            lock(self._lock)
        self.holder_before = os.fsdecode(os.pread(self._lock, 4096, 0))
        return self._lock

    def record_holder(self) -> None:
        """Record the session's holder; only after the last holder's processes have ended."""
        os.ftruncate(self._lock, 0)
        os.pwrite(self._lock, os.fsencode(self._run_dir), 0)


Reservation = SlotReservation | SessionReservation


class Gate:
    """Where every run waits while the queue is paused, with or without slots; the last wait before its start.

    Waiting runs queue for a lock, and only its holder checks whether the queue is still paused.
    """

    def __init__(self, slots: str) -> None:
        self._slots = slots

    def pass_through(self, queue: Queue, signals: Signals) -> None:
        """Wait until the queue is not paused. Raises StopRequested."""
        if not read_state(self._slots).held:
            return
        gate = -1
        try:
            with signals.ending_the_wait():
                queue.enter("hold")
                gate = open_lock(os.path.join(self._slots, PROJECT, GATE))
                lock(gate)
                while read_state(self._slots).held:
                    time.sleep(LOOK_AGAIN_S)
        finally:
            if gate >= 0:
                os.close(gate)


def take_all(reservations: Sequence[Reservation], queue: Queue, signals: Signals) -> list[int]:
    """Take every reservation in turn, without a time limit; return the descriptors that hold them.

    Raises StopRequested if a signal came before all were taken.
    """
    if not reservations:
        return []
    with signals.ending_the_wait():
        return [reservation.take(queue) for reservation in reservations]
