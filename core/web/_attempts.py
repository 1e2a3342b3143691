"""The rate limit on pairing."""

from __future__ import annotations

import math
import time
from collections import deque
from collections.abc import Callable

WINDOW_S = 60.0
PER_ADDRESS, IN_ALL = 5, 20
"""Attempts per window."""


class Attempts:
    """Counts attempts of the last minute, by address."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._made: deque[tuple[float, str]] = deque()

    def wait_s(self, address: str) -> int:
        """Count an attempt. Return 0 if it is allowed; otherwise the seconds until the next one may be."""
        now = self._clock()
        while self._made and self._made[0][0] <= now - WINDOW_S:
            self._made.popleft()
        times = [at for at, by in self._made if by == address]
        if len(times) < PER_ADDRESS and len(self._made) < IN_ALL:
            self._made.append((now, address))
            return 0
        first = times[0] if len(times) >= PER_ADDRESS else self._made[0][0]
        return max(1, math.ceil(first + WINDOW_S - now))
