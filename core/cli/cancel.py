"""What ends a foreground run before its time: ctrl-C, TERM, HUP, or a reader that went away."""

from __future__ import annotations

import os
import select
import signal
import stat
import threading
from collections.abc import Callable, Iterable
from types import FrameType
from typing import Any

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Canceller:
    """Collects the wish to cancel from its start on, and grants it once it is told how.

    The handlers only write to a pipe: one that raised would be swallowed by the watcher. A thread waits for that pipe
    and for the other ends of what is watched, so that a silent run notices it too when nobody is left to read.
    """

    def __init__(self, watched: Iterable[int] = (1, 2)) -> None:
        """`watched` are descriptors that somebody reads at the other end: stdout and stderr, unless told otherwise."""
        self._watched = tuple(watched)
        self._wishes, self._wish = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
        self._former: dict[int, Any] = {}

    def __enter__(self) -> Canceller:
        for number in SIGNALS:
            # What a shell or nohup has set to be ignored stays ignored.
            if signal.getsignal(number) is not signal.SIG_IGN:
                self._former[number] = signal.signal(number, self._asked)
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._former.items():
            signal.signal(number, handler)

    def ask(self) -> None:
        """Wish to cancel; a second wish changes nothing."""
        try:
            os.write(self._wish, b"\0")
        except BlockingIOError:
            return  # the pipe is full of the same wish

    def grant(self, cancel: Callable[[], None]) -> None:
        """Call `cancel`, once, in a thread, as soon as somebody wishes it or has wished it before."""
        threading.Thread(target=self._wait, args=(cancel,), name="canceller", daemon=True).start()

    def _asked(self, number: int, frame: FrameType | None) -> None:
        self.ask()

    def _wait(self, cancel: Callable[[], None]) -> None:
        poller = select.poll()
        poller.register(self._wishes, select.POLLIN)
        for descriptor in self._watched:
            if _has_reader(descriptor):
                poller.register(descriptor, 0)  # only errors and hang-ups
        poller.poll()
        cancel()


def _has_reader(descriptor: int) -> bool:
    try:
        mode = os.fstat(descriptor).st_mode
    except OSError:
        return False
    return stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode)
