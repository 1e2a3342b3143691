"""Waiting for a place: slots of a group or a project, or a child session, by file locks.

A lock goes with its process, so a queue needs nobody to keep it: any launcher may die. Who waits for slots stands
behind a door lock; only the one at the door tries the slots, so that a hundred waiters cost what one costs.
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Sequence
from types import FrameType

from ..system.files import make_private_directory
from ..system.locks import lock, open_lock, try_lock

LOOK_AGAIN = 0.05
"""Seconds between two looks at the slots by the one at the door."""


class StopAsked(Exception):
    """A signal came while waiting."""


class Signals:
    """Which signals came; while `waiting` the next one raises StopAsked."""

    def __init__(self) -> None:
        self.caught: list[int] = []
        self.waiting = False

    def handle(self, number: int, frame: FrameType | None) -> None:
        self.caught.append(number)
        if self.waiting:
            self.waiting = False
            raise StopAsked


class Queue:
    """Says once that this run waits, at the moment it first has to."""

    def __init__(self, tell: Callable[[str], None]) -> None:
        self._tell = tell
        self.told = False

    def enter(self, kind: str) -> None:
        if not self.told:
            self.told = True
            self._tell(kind)


class Slots:
    """One of `limit` lock files in a directory."""

    def __init__(self, directory: str, limit: int) -> None:
        self._directory = directory
        self._limit = limit

    def take(self, queue: Queue) -> int:
        """Return the descriptor that holds the slot until it is closed."""
        make_private_directory(self._directory)
        door = open_lock(os.path.join(self._directory, "door"))
        try:
            if not try_lock(door):
                queue.enter("slot")
                lock(door)
            while (slot := self._free_slot()) is None:
                queue.enter("slot")
                time.sleep(LOOK_AGAIN)
            return slot
        finally:
            os.close(door)

    def _free_slot(self) -> int | None:
        for number in range(self._limit):
            slot = open_lock(os.path.join(self._directory, str(number)))
            if try_lock(slot):
                return slot
            os.close(slot)
        return None


class Session:
    """The lock of a child session that several runs share; one at a time goes on with it."""

    def __init__(self, path: str, run_dir: str) -> None:
        self._path = path
        self._run_dir = run_dir
        self.holder_before = ""
        """Run directory of who went on with the session last; its child may have outlived its wrapper."""
        self._lock = -1

    def take(self, queue: Queue) -> int:
        make_private_directory(os.path.dirname(self._path))
        self._lock = open_lock(self._path)
        if not try_lock(self._lock):
            queue.enter("session")
            lock(self._lock)
        self.holder_before = os.fsdecode(os.pread(self._lock, 4096, 0))
        return self._lock

    def sign(self) -> None:
        """Write down who goes on with the session now; only once what its last holder left has been ended."""
        os.ftruncate(self._lock, 0)
        os.pwrite(self._lock, os.fsencode(self._run_dir), 0)


Place = Slots | Session


def watch_signals() -> Signals:
    """Catch TERM, INT, HUP and QUIT: each is a soft stop, and repeating one changes nothing."""
    signals = Signals()
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT):
        signal.signal(number, signals.handle)
    return signals


def take_all(places: Sequence[Place], queue: Queue, signals: Signals) -> list[int]:
    """Take every place in turn, waiting as long as it takes; return the descriptors that hold them.

    Raises StopAsked when a signal came before all were taken.
    """
    if not places:
        return []
    signals.waiting = True
    if signals.caught:
        raise StopAsked
    held = [place.take(queue) for place in places]
    signals.waiting = False
    return held
