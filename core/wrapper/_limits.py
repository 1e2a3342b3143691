"""When an agent must end: the limits of its run. Pure; times are monotonic seconds."""

from __future__ import annotations

from ..run.model import Limits, RunReason, Usage
from ._lease import Lease

LAST_WORDS_S = 1.0
"""Seconds for an agent over budget to finish on its own, if its message may be the last."""


class Watchdog:
    """Gets every byte and every turn, and returns the limit that was exceeded."""

    def __init__(self, limits: Limits, now: float, lease: Lease | None = None) -> None:
        """`lease` is checked elsewhere, each second."""
        self._limits = limits
        self._lease = lease
        self._started = now
        self.last_heard = now
        self._tools = 0
        self._overspent_at: float | None = None
        """Since when the budget is used up."""
        self._paused_at: float | None = None
        self.paused = 0.0
        """Seconds that its time limits were paused."""

    def pause(self, now: float) -> None:
        """Pause the time limits: the agent waits for a person."""
        if self._paused_at is None:
            self._paused_at = now

    def resume(self, now: float) -> None:
        if self._paused_at is not None:
            stood = now - self._paused_at
            self.paused += stood
            self._started += stood
            self.last_heard = now
            self._paused_at = None

    def heard(self, now: float, running_tools: int) -> None:
        self.last_heard = now
        self._tools = running_tools

    def due(self) -> float | None:
        """When to check again at the latest; None without a time limit."""
        times: list[float] = []
        if self._paused_at is not None:
            return None
        if self._limits.timeout is not None:
            times.append(self._started + self._limits.timeout)
        if self._limits.stall is not None and not self._tools:
            times.append(self.last_heard + self._limits.stall)
        if self._overspent_at is not None:
            times.append(self._overspent_at + LAST_WORDS_S)
        return min(times, default=None)

    def exceeded(self, now: float, used: Usage, wants_turn: bool) -> RunReason | None:
        """Return the limit that ends the run, given its total usage `used`; `wants_turn`: the last turn requests
        another one.
        """
        limits = self._limits
        if self._lease and self._lease.is_over:  # even while it waits for a person: none is in contact
            return RunReason.LEASE
        if limits.max_turns is not None and used.turns >= limits.max_turns and wants_turn:
            return RunReason.MAX_TURNS
        if limits.is_overspent(used):
            if self._overspent_at is None:
                self._overspent_at = now
            if wants_turn or now >= self._overspent_at + LAST_WORDS_S:
                return RunReason.BUDGET
        if self._paused_at is not None:
            return None
        if limits.timeout is not None and now >= self._started + limits.timeout:
            return RunReason.TIMEOUT
        if limits.stall is not None and not self._tools and now >= self.last_heard + limits.stall:
            return RunReason.STALLED
        return None
