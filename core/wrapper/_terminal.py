"""How the terminal of a wrapper in a pane takes keys. A wrapper that waits in a queue loads this."""

from __future__ import annotations

import os
import select
import termios
from contextlib import suppress


def hush(terminal: int = 0) -> None:
    """Show nothing of what is typed while nobody reads it."""
    with suppress(termios.error, OSError):
        settings = termios.tcgetattr(terminal)
        settings[3] &= ~(termios.ECHO | termios.ECHONL)
        termios.tcsetattr(terminal, termios.TCSANOW, settings)


def listen(terminal: int) -> bool:
    """Get each key at once; return whether something was typed before, which is thrown away."""
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
