"""What ends a foreground run before its time: ctrl-C, TERM, HUP, or a reader that went away."""

from __future__ import annotations

import os
import select
import signal
import stat
from collections.abc import Callable, Iterable
from types import FrameType
from typing import Any

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Canceller:
    """A stop that is set by a signal, or when nobody is left at the other end of what is watched.

    The handlers only write to a pipe: one that raised would be swallowed by the watcher. That pipe and the other ends
    are looked at together whenever somebody asks, so that a silent run notices it too when nobody is left to read.
    """

    def __init__(self, watched: Iterable[int] = (1, 2)) -> None:
        """`watched` are descriptors that somebody reads at the other end; by default stdout and stderr."""
        # Before there is a pipe: with stdout closed, that would be taken for stdout.
        with_reader = [descriptor for descriptor in watched if _has_reader(descriptor)]
        self._wakeup, self._request = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
        self._poller = select.poll()
        self._poller.register(self._wakeup, select.POLLIN)
        for descriptor in with_reader:
            self._poller.register(descriptor, 0)  # only errors and hang-ups
        self._readers: dict[int, Callable[[], bool]] = {}
        self._former: dict[int, Any] = {}
        self._is_set = False

    def __enter__(self) -> Canceller:
        for number in SIGNALS:
            # What a shell or nohup has set to be ignored stays ignored.
            if signal.getsignal(number) is not signal.SIG_IGN:
                self._former[number] = signal.signal(number, self._signalled)
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._former.items():
            signal.signal(number, handler)

    def listen(self, descriptor: int, read: Callable[[], bool]) -> None:
        """Call `read` when there is something to read; False says that the other end has gone."""
        try:
            os.fstat(descriptor)
        except OSError:
            self.set()
        else:
            self._poller.register(descriptor, select.POLLIN)
            self._readers[descriptor] = read

    def set(self) -> None:
        """Cancel; a second time changes nothing. May be called by a signal handler."""
        try:
            os.write(self._request, b"\0")
        except BlockingIOError:
            return  # the pipe is full of the same request

    def is_set(self) -> bool:
        self._look(0)
        return self._is_set

    def wait(self) -> None:
        """Wait until it is set."""
        while not self._is_set:
            self._look(None)

    def _look(self, timeout: float | None) -> None:
        for descriptor, _ in () if self._is_set else self._poller.poll(timeout):
            read = self._readers.get(descriptor)
            self._is_set = self._is_set or read is None or not read()

    def _signalled(self, number: int, frame: FrameType | None) -> None:
        self.set()


def _has_reader(descriptor: int) -> bool:
    try:
        mode = os.fstat(descriptor).st_mode
    except OSError:
        return False
    return stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode)
