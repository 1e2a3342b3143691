"""The app as a process: signals that nobody announced, and garbage collection out of the way of keys."""

from __future__ import annotations

import gc
import signal
from collections.abc import Callable
from types import FrameType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from textual.widget import Widget


def expect_unannounced_stops(renew: Callable[[], object]) -> None:
    """Let the handlers of SIGTSTP and SIGCONT, where a driver has set them, act as a pair; alone, SIGCONT has the
    terminal taken anew by `renew`: after a SIGSTOP a shell has set it for itself.
    """
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
            renew()

    signal.signal(signal.SIGTSTP, stopped)
    signal.signal(signal.SIGCONT, continued)


QUIET = 1.0
"""Seconds after the first load: the screen is painted, and the first key mostly not yet pressed."""

USUAL = (700, 10, 10)
"""Python's own thresholds: a quick start looks for garbage less often."""

_frozen: list[bool] = []


def freeze_once(widget: Widget) -> None:
    """Collect once, and look no more at what survives: a full collection costs a frame, and comes with every scroll."""
    if _frozen:
        return
    _frozen.append(True)
    widget.set_timer(QUIET, _freeze)


def _freeze() -> None:
    gc.collect()
    gc.freeze()
    gc.set_threshold(*USUAL)
