"""The signals that stop a wrapper: each is a soft stop, and repeating one changes nothing."""

from __future__ import annotations

import signal
from types import FrameType


class StopRequested(Exception):
    """A signal came while waiting."""


class Signals:
    """Which signals came; while `waiting` the next one raises StopRequested."""

    def __init__(self) -> None:
        self.caught: list[int] = []
        self.waiting = False

    def handle(self, number: int, frame: FrameType | None) -> None:
        self.caught.append(number)
        if self.waiting:
            self.waiting = False
            raise StopRequested


def watch_signals() -> Signals:
    """Catch TERM, INT, HUP and QUIT from now on."""
    signals = Signals()
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT):
        signal.signal(number, signals.handle)
    return signals
