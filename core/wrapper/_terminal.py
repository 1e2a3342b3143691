"""Key input of a wrapper's terminal in a pane. A wrapper that waits in a queue loads this."""

from __future__ import annotations

import os
import select
import termios
from contextlib import suppress


def hush(terminal: int = 0) -> None:
    """Turn off the echo of input while nothing reads it."""
    with suppress(termios.error, OSError):
        settings = termios.tcgetattr(terminal)
        settings[3] &= ~(termios.ECHO | termios.ECHONL)
        termios.tcsetattr(terminal, termios.TCSANOW, settings)


def listen(terminal: int) -> bool:
    """Read each key at once; discard earlier input, and return whether there was any."""
    try:
        settings = termios.tcgetattr(terminal)
        settings[3] &= ~(termios.ECHO | termios.ECHONL | termios.ICANON)
        termios.tcsetattr(terminal, termios.TCSANOW, settings)
        os.set_blocking(terminal, False)
        poller = select.poll()
        poller.register(terminal, select.POLLIN)
        was_typed = bool(poller.poll(0))
        termios.tcflush(terminal, termios.TCIFLUSH)
    except (termios.error, OSError):
        return False
    return was_typed
