"""The sender as a process: the lock of the spool, the pipe that wakes it up, and a thread for each attempt."""

from __future__ import annotations

import os
import select
import stat
import threading
import time
from collections.abc import Callable
from functools import partial

from ..alerts import spool
from ..alerts.pending import pending
from ..alerts.spool import LOCK_DESCRIPTOR, Delivery
from ..config.notification_settings import Notifications
from ..system import files
from ..system.log import log_fault
from ._channels import attempt
from ._sender import Work

TRY_S = 0.5
"""Seconds to wait for the lock: another process may just be testing it."""
LONGEST_WAIT_S = 60.0
"""Seconds between two looks at most: the clock may be set."""


def serve(*, is_locked: bool) -> None:
    """Send everything in the spool, and return when nothing is left. Raises OSError."""
    os.umask(0o077)
    lock = _passed_on() if is_locked else files.open_lock(spool.directory(spool.LOCK))
    if not is_locked and not files.lock_soon(lock, TRY_S):
        return  # the one that has it sends everything
    pipe = _open_pipe()
    while True:
        unreadable = _send_all(pipe)
        # A process that queues something tests the lock afterwards: it starts another sender, or is seen here.
        files.unlock(lock)
        if pending() <= unreadable or not files.lock_soon(lock, TRY_S):
            return


def _send_all(pipe: int) -> set[str]:
    """Work until nothing is left to do; return the files that could not be read. Raises OSError."""
    poller = select.poll()
    poller.register(pipe, select.POLLIN)
    work = Work(partial(_begin, pipe))
    work.begin(time.time())
    while True:
        before = pending()
        next_at = work.step(time.time())
        if next_at is None and not work.is_busy:
            spool.prune(time.time())
            return before & pending()
        wait = LONGEST_WAIT_S if next_at is None else min(max(0.0, next_at - time.time()), LONGEST_WAIT_S)
        if poller.poll(wait * 1000 + 1):
            os.read(pipe, 65536)


def _begin(pipe: int, channel: str, settings: Notifications, delivery: Delivery, report: Callable[[str], None]) -> None:
    """Begin an attempt in its own thread: a slow one delays no other channel."""

    def work() -> None:
        fault = "subdeck failed to send it"
        try:
            fault = attempt(channel, settings, delivery.document)
        except Exception as error:
            log_fault("sending an alert", error)
        report(fault)
        os.write(pipe, b"\n")

    threading.Thread(target=work, daemon=True).start()


def _open_pipe() -> int:
    """Open the pipe by which other processes wake this one up. Raises OSError."""
    path = spool.directory(spool.WAKE)
    try:
        os.mkfifo(path, 0o600)
    except FileExistsError:
        pass
    pipe = os.open(path, os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC)
    if not stat.S_ISFIFO(os.fstat(pipe).st_mode):
        raise FileExistsError(f"{path} is not a pipe")
    return pipe


def _passed_on() -> int:
    os.set_inheritable(LOCK_DESCRIPTOR, False)
    return LOCK_DESCRIPTOR
