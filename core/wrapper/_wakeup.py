"""Descriptors that a wrapper polls: one that becomes readable on a signal, and pipes to read until empty."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from types import FrameType

CHUNK = 256 * 1024
"""Bytes read from a pipe at a time."""


def read_available(pipe: int) -> Iterator[bytes]:
    """Yield a pipe's content; an empty chunk is its end."""
    while True:
        try:
            chunk = os.read(pipe, CHUNK)
        except BlockingIOError:
            return
        yield chunk
        if not chunk:
            return


def wake_on_signals() -> int:
    """Return a descriptor that becomes readable with each signal, including an orphan's end."""
    reader, writer = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
    former = signal.set_wakeup_fd(writer, warn_on_full_buffer=False)
    if former >= 0:
        os.close(former)
    signal.signal(signal.SIGCHLD, _ignore)
    return reader


def _ignore(number: int, frame: FrameType | None) -> None:
    """Let a signal write to the wake-up pipe, which SIG_IGN would prevent."""
