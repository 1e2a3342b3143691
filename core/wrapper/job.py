"""A process that the wrapper forks for what would keep it from serving its child; it reports once, and can be ended."""

from __future__ import annotations

import os
import select
import signal
import time
from collections.abc import Callable
from typing import NoReturn

from ..system import processes
from ..system.log import log_fault
from .wakeup import read_available

_REPORT = 3
"""The descriptor by which it reports."""


class Job:
    """A process that was forked here and reports once."""

    def __init__(self, work: Callable[[], bytes], patience: float, *, niceness: int = 0) -> None:
        """Fork it. Raises OSError."""
        self.deadline = time.monotonic() + patience
        self._said = b""
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
        """Read what it has reported; return whether that is all."""
        for chunk in read_available(self.descriptor):
            self._said += chunk
            if not chunk:
                return True
        return False

    def end(self) -> bytes:
        """End it, with what it has started, unless it has ended; return its report."""
        os.close(self.descriptor)
        if not self._is_gone():
            try:
                below = processes.descendants(self._pid)
            except OSError:
                below = []
            for pid in (self._pid, *below):
                processes.send(pid, signal.SIGKILL)
            self._is_gone(wait=True)
        return self._said

    def _is_gone(self, *, wait: bool = False) -> bool:
        try:
            return bool(os.waitpid(self._pid, 0 if wait else os.WNOHANG)[0])
        except ChildProcessError:  # its exit was collected with those of all others
            return True


def _work(work: Callable[[], bytes], writer: int, bind: Callable[[], None], niceness: int) -> NoReturn:
    """Do what was forked for, and report; no handler of the wrapper runs here, and none of its locks is held."""
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
