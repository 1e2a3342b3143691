"""Supervise the long-lived workers of the app: one that fails or hangs is restarted, and a banner reports it."""

from __future__ import annotations

import math
import time
from collections.abc import Callable

from ...core.errors import reason

TICK_S = 0.5
"""Seconds between two checks of the workers."""
PATIENCE_S = 3.0
"""Seconds without a beat after which a worker counts as hung, in the app's own running time."""
SLOW_S = 30.0
"""The same for work that cannot beat: it runs git, or waits for a file that other processes lock."""
LONGEST_PATIENCE_S = 60.0
BANNER_S = 1.0
"""Seconds from a failure to the banner, so that it does not flash if a worker recovers at once."""
DELAYS_S = (2.0, 4.0, 8.0, 16.0, 30.0)
"""Seconds before each new attempt; the last one is repeated."""
STEADY_S = 60.0
"""Seconds without a failure after which the next one counts as the first."""


class Supervisor:
    """Watches the workers that are busy or have failed; `tell` gets the banner, empty if all of them work.

    Its time is the app's own running time: it pauses while the app is suspended, or its event loop is blocked.
    """

    def __init__(self, tell: Callable[[str], None], clock: Callable[[], float] = time.monotonic) -> None:
        self.clock = clock
        self._tell = tell
        self._ticked_at = clock()
        self.now = 0.0
        """Seconds for which the app has been running."""
        self._watched: dict[Supervised, None] = {}
        self._banner = ""

    def tick(self) -> None:
        """Restart workers that are due, abandon hung ones; called every `TICK_S` by the event loop."""
        now = self.clock()
        self.now += min(now - self._ticked_at, 2 * TICK_S)
        self._ticked_at = now
        for worker in tuple(self._watched):
            worker.look()
        if (banner := " · ".join(filter(None, (worker.banner for worker in self._watched)))) != self._banner:
            self._banner = banner
            self._tell(banner)

    def watch(self, worker: Supervised) -> None:
        self._watched[worker] = None

    def forget(self, worker: Supervised) -> None:
        self._watched.pop(worker, None)


class Supervised:
    """One worker, as its supervisor sees it."""

    def __init__(
        self,
        supervisor: Supervisor,
        stopped: str,
        restart: Callable[[], None],
        abandon: Callable[[], None],
        patience: float = PATIENCE_S,
    ) -> None:
        """Begin the banner with `stopped`: "Updates stopped".

        `abandon` makes the app ignore late results of a hung attempt; `restart` begins a new one, some seconds later.
        """
        self._supervisor = supervisor
        self._stopped = stopped
        self._restart = restart
        self._abandon = abandon
        self._patience = patience
        self._beat_at: float | None = None
        """None while no beat is expected."""
        self._has_beaten = False
        """Whether the current attempt has shown that it works."""
        self._why = ""
        """Why the last attempt failed; empty once a later one works."""
        self._failed_at = -math.inf
        self._banner_at = 0.0
        self._retry_at: float | None = None
        self._failures = self._hangs = 0
        """In a row."""

    @property
    def is_waiting(self) -> bool:
        """Whether it has failed and the next attempt has not begun."""
        return self._retry_at is not None

    @property
    def banner(self) -> str:
        now = self._supervisor.now
        if not self._why or now < self._banner_at:
            return ""
        seconds_left = 0 if self._retry_at is None else math.ceil(self._retry_at - now)
        return f"{self._stopped}: {self._why}. Retrying {f'in {seconds_left} s' if seconds_left > 0 else 'now'}"

    def begin(self) -> None:
        """Expect beats from now on."""
        self._retry_at, self._has_beaten, self._beat_at = None, False, self._supervisor.now
        self._supervisor.watch(self)

    def beat(self) -> None:
        """Record that the current attempt works; any thread may call it."""
        self._beat_at, self._has_beaten = self._supervisor.now, True

    def rest(self) -> None:
        """Record that its work is done: no beat is expected until it begins again."""
        self._beat_at = self._retry_at = None
        self._recover()
        self._supervisor.forget(self)

    def fail(self, error: Exception) -> None:
        """Schedule a new attempt after this error."""
        self._failed(reason(error), BANNER_S)

    def look(self) -> None:
        """Restart it if that is due; abandon it if it hangs."""
        now = self._supervisor.now
        if self._retry_at is not None:
            if now >= self._retry_at:
                self._restart()
            return
        patience = min(LONGEST_PATIENCE_S, self._patience * 2**self._hangs)
        if self._beat_at is not None and now - self._beat_at >= patience:
            self._abandon()
            self._failed(f"no response for {patience:g} s", 0.0)
            self._hangs += 1
        elif self._has_beaten:
            self._recover()

    def _failed(self, why: str, banner_after: float) -> None:
        now = self._supervisor.now
        if now - self._failed_at >= STEADY_S:
            self._failures = self._hangs = 0
        if not self._why:
            self._banner_at = now + banner_after
        self._why, self._failed_at, self._beat_at = why, now, None
        self._retry_at = now + DELAYS_S[min(self._failures, len(DELAYS_S) - 1)]
        self._failures += 1
        self._supervisor.watch(self)

    def _recover(self) -> None:
        self._why = ""
