"""The app as a process: unannounced signals, and garbage collection that does not delay keys."""

from __future__ import annotations

import asyncio
import gc
import os
import signal
from collections.abc import Callable
from types import FrameType
from typing import TYPE_CHECKING

from .textual_internals import set_timer

if TYPE_CHECKING:
    from textual.widget import Widget


def expect_unannounced_stops(
    is_lent: Callable[[], bool], renew: Callable[[], object], repaint: Callable[[], object]
) -> None:
    """Make the driver's handlers of SIGTSTP and SIGCONT, if set, act as a pair; a single SIGCONT sets up the terminal
    again by `renew`, because a shell has changed it after a SIGSTOP. Then `repaint` draws the screen.

    Both act between two callbacks of the running loop: a signal may come during a write to the terminal, whose lock the
    handler would wait for forever. While the terminal is lent to another program, which blocks the loop, nothing is
    written, and SIGTSTP stops the process at once.
    """
    stop, go_on = signal.getsignal(signal.SIGTSTP), signal.getsignal(signal.SIGCONT)
    if not (callable(stop) and callable(go_on)):
        return
    loop = asyncio.get_running_loop()
    announced = False

    def stopped(number: int, _frame: FrameType | None) -> None:
        if is_lent() or not loop.is_running():
            os.kill(os.getpid(), signal.SIGSTOP)
        else:
            loop.call_soon_threadsafe(announce, number)

    def announce(number: int) -> None:
        nonlocal announced
        announced = True
        stop(number, None)

    def continued(number: int, _frame: FrameType | None) -> None:
        if loop.is_running():
            loop.call_soon_threadsafe(take_again, number)

    def take_again(number: int) -> None:
        nonlocal announced
        if announced:
            announced = False
            go_on(number, None)
        else:
            renew()
        repaint()

    signal.signal(signal.SIGTSTP, stopped)
    signal.signal(signal.SIGCONT, continued)


QUIET = 1.0
"""Seconds after the first load: the screen is painted, and usually no key has been pressed yet."""

USUAL = (700, 10, 10)
"""Python's own thresholds: a quick start collects less often."""

_frozen: list[bool] = []


def freeze_once(widget: Widget) -> None:
    """Collect once, and exempt the survivors: a full collection costs a frame, and comes with every scroll."""
    if _frozen:
        return
    _frozen.append(True)
    set_timer(widget, QUIET, _freeze)


def _freeze() -> None:
    gc.collect()
    gc.freeze()
    gc.set_threshold(*USUAL)
