"""Descriptors that a wrapper polls: what wakes it on a signal, and pipes that are read as far as they are filled."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from types import FrameType

CHUNK = 256 * 1024
"""Bytes read from a pipe at a time."""


def read_available(pipe: int) -> Iterator[bytes]:
    """Yield what a pipe holds now; an empty chunk is its end."""
    while True:
        try:
            chunk = os.read(pipe, CHUNK)
        except BlockingIOError:
            return
        yield chunk
        if not chunk:
            return


def wake_on_signals() -> int:
    """Return a descriptor that becomes readable with each signal, the end of an orphan included."""
    reader, writer = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
    former = signal.set_wakeup_fd(writer, warn_on_full_buffer=False)
    if former >= 0:
        os.close(former)
    signal.signal(signal.SIGCHLD, _ignore)
    return reader


def _ignore(number: int, frame: FrameType | None) -> None:
    """Let a signal write to the wake-up pipe, which one with SIG_IGN does not."""
