"""Go on after a stop that nobody announced: SIGSTOP, a frozen container, a debugger.

Textual takes every SIGCONT for the end of a SIGTSTP and takes the terminal once more; without a SIGTSTP before it,
two threads read the keys then, and the terminal is not given back at the end.
"""

from __future__ import annotations

import signal
from collections.abc import Callable
from types import FrameType


def expect_unannounced_stops(repaint: Callable[[], object]) -> None:
    """Let the handlers of SIGTSTP and SIGCONT, where a driver has set them, act as a pair; alone, SIGCONT repaints."""
    stop, go_on = signal.getsignal(signal.SIGTSTP), signal.getsignal(signal.SIGCONT)
    if not (callable(stop) and callable(go_on)):
        return
    announced = False

    def stopped(number: int, frame: FrameType | None) -> None:
        nonlocal announced
        announced = True
        stop(number, frame)

    def continued(number: int, frame: FrameType | None) -> None:
        nonlocal announced
        if announced:
            announced = False
            go_on(number, frame)
        else:
            repaint()

    signal.signal(signal.SIGTSTP, stopped)
    signal.signal(signal.SIGCONT, continued)
