"""When a child counts as silent: no tool is at work, and it has written nothing for longer than is its way. Pure.

Its way is drawn from the times of its events. How long it is silent now is measured by a clock that stands still while
the machine sleeps and that nobody sets: else all children would be silent after a night with the lid closed.
"""

from __future__ import annotations

import math
from collections import Counter

from .describe import moment
from .events import Event, Retry, RunEnded, RunStarted
from .fold import OpenCalls

LEAST_S = 60.0
"""No child is silent before."""
FACTOR = 4
"""How many times as long as nearly all of its own pauses."""
SHARE = 0.95
"""How many of them are nearly all."""
LONG_S = LEAST_S / FACTOR
"""Shorter pauses are only counted: they cannot make a child's way longer than `LEAST_S`."""
LONGEST_S = 900
"""Longer pauses count as this long: the machine may have slept, or its clock was set."""
_TENS = len("2026-11-22T18:41:5")
"""Characters of a time that are alike for events of the same ten seconds."""


class Pulse:
    """Follows the events of a run: whether a tool is at work, and how long its pauses were."""

    def __init__(self) -> None:
        self._calls = OpenCalls()
        self._last_at = ""
        """The time of the last event; empty before the first."""
        self._delay_s = 0.0
        """What the last event says that it waits before it goes on."""
        self._is_over = True
        self._pauses = 0
        self._long: Counter[int] = Counter()
        """Pauses of more than `LONG_S` by their whole seconds, rounded up."""
        self._long_count = 0

    def apply(self, event: Event) -> None:
        last_at, self._last_at = self._last_at, event.ts
        self._delay_s = event.delay_ms / 1000 if isinstance(event, Retry) else 0.0
        if isinstance(event, RunStarted | RunEnded):
            self._is_over = isinstance(event, RunEnded)
        elif last_at and not self._calls:
            self._pauses += 1
            if event.ts[:_TENS] != last_at[:_TENS]:
                self._note_pause(last_at, event.ts)
        self._calls.apply(event)

    def _note_pause(self, begin: str, end: str) -> None:
        before, after = moment(begin), moment(end)
        seconds = (after - before).total_seconds() if before and after else 0.0
        if seconds > LONG_S:
            self._long_count += 1
            self._long[min(LONGEST_S, math.ceil(seconds))] += 1

    @property
    def usual_pause(self) -> float:
        """Seconds that nearly all of its pauses did not exceed; 0 where those are too short to matter."""
        longer = self._pauses - math.ceil(SHARE * self._pauses)
        if self._long_count <= longer:
            return 0.0
        for seconds in sorted(self._long, reverse=True):
            longer -= self._long[seconds]
            if longer < 0:
                return seconds
        return 0.0

    def patience(self, stall: float | None) -> float | None:
        """Seconds of silence that are nothing special; None where none is: a tool is at work, or nothing more comes."""
        if self._is_over or self._calls:
            return None
        seconds = max(LEAST_S, FACTOR * self.usual_pause)
        if stall is not None:
            seconds = min(seconds, stall / 2)
        return seconds + self._delay_s
