"""Queue alerts for the sender, a detached process that exits when it has nothing left to send.

It is a separate program, started by the name of its module, with the lock of the spool already held for it: so there
is never more than one, even if many processes queue something at the same time. An alert is in the queue before its
process tries the lock. The sender releases the lock before it looks at the queue for the last time. So one of the two
sees it.
"""

from __future__ import annotations

import fcntl
import os
import signal
import sys
import time
from collections.abc import Callable

from .. import paths
from ..run.environment import OF_A_RUN
from ..runners.standby import loading
from ..system import files
from ..system.log import log_fault
from . import spool
from .alert import Alert, request_alert_id
from .pending import pending
from .presence import decks
from .wanted import is_wanted

_PROGRAM = "from subdeck.core.notify.__main__ import main; main()"
"""Like `-m subdeck.core.notify`, without `runpy`."""
_FREE = 10
"""First descriptor that cannot be one of a sender's own."""

_started: list[int] = []
"""Senders of this process, kept until they are reaped."""


def dispatch(make: Callable[[], Alert | None], *, reaps: bool = True) -> int | None:
    """Queue an alert if there is one and the user wants it; return the pid of the sender, if one was started.

    Raises nothing: an alert must never stop a run. `reaps` is false for a process that collects the exits of all its
    children.
    """
    try:
        alert = make()
        if alert is None or not is_wanted(alert.kind) or not spool.add(alert):
            return None
        return start_sender(wakes=True, reaps=reaps)
    except Exception as error:
        log_fault("notifying the user", error)
        return None


def settle_request(run_id: str, request_id: str) -> None:
    """Withdraw the alert of a request that was decided. Raises nothing."""
    try:
        spool.settle(request_alert_id(run_id, request_id), run_id, time.time())
    except OSError as error:
        log_fault("withdrawing an alert", error)


def start_sender(*, wakes: bool = False, reaps: bool = True) -> int | None:
    """Start the sender unless it is running; return its pid if it was started. A running one is woken up (`wakes`).

    An agent's own subdeck starts none, because it would end with the agent. Raises OSError.
    """
    _reap()
    if paths.is_child():
        return None
    files.make_private_directory(spool.directory())
    lock = files.open_lock(spool.directory(spool.LOCK))
    try:
        if not files.try_lock(lock):
            if wakes:
                wake()
            return None
        pid = _start(lock)
    finally:
        os.close(lock)
    if reaps:
        _started.append(pid)
    return pid


def resume_sending(*, reaps: bool = True) -> int | None:
    """Start the sender if it has something to do and is not running: it, or a deck that kept alerts back, was killed.

    Raises nothing.
    """
    try:
        has_work = pending() or (spool.has_quiet() and not any(deck.has_focus for deck in decks()))
        return start_sender(reaps=reaps) if has_work else None
    except (OSError, NotImplementedError) as error:
        log_fault("starting the sender of alerts", error)
        return None


def wake() -> None:
    """Let the sender look at the queue again."""
    try:
        pipe = os.open(spool.directory(spool.WAKE), os.O_WRONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return  # it is only starting, and looks afterwards
    try:
        os.write(pipe, b"\n")
    except OSError:
        pass  # the pipe is full: it will look
    finally:
        os.close(pipe)


def _start(lock: int) -> int:
    """Start the sender with the held lock, which it keeps; return its pid. Raises OSError."""
    held = fcntl.fcntl(lock, fcntl.F_DUPFD_CLOEXEC, _FREE)
    null = os.devnull
    streams = (
        (os.POSIX_SPAWN_OPEN, 0, null, os.O_RDONLY, 0),
        (os.POSIX_SPAWN_OPEN, 1, null, os.O_WRONLY, 0),
        (os.POSIX_SPAWN_OPEN, 2, null, os.O_WRONLY, 0),
        (os.POSIX_SPAWN_DUP2, held, spool.LOCK_DESCRIPTOR),
    )
    # -E: no PYTHON* variable of a user may change it; -P: nor a module in the working directory.
    argv = (sys.executable, "-P", "-E", *loading(_PROGRAM), "--locked")
    environment = {name: value for name, value in os.environ.items() if name not in OF_A_RUN}
    try:
        return os.posix_spawn(
            sys.executable,
            argv,
            environment,
            file_actions=streams,
            setsid=True,
            setsigmask=(),
            setsigdef=(signal.SIGPIPE, signal.SIGXFSZ),
        )
    finally:
        os.close(held)


def _reap() -> None:
    """Reap this process's exited senders; the kernel keeps each until then."""
    for pid in tuple(_started):
        try:
            has_ended = bool(os.waitpid(pid, os.WNOHANG)[0])
        except ChildProcessError:
            has_ended = True
        if has_ended:
            _started.remove(pid)
