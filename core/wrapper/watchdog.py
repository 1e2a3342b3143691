"""The limits of a run: time, turns, silence. Pure; times are monotonic seconds."""

from __future__ import annotations

from ..run.model import Limits, RunReason


class Watchdog:
    """Given every byte and every turn, it returns the limit that was exceeded."""

    def __init__(self, limits: Limits, now: float) -> None:
        self._limits = limits
        self._started = now
        self._last_byte = now
        self._tools = 0

    def heard(self, now: float, running_tools: int) -> None:
        self._last_byte = now
        self._tools = running_tools

    def due(self) -> float | None:
        """When to look again at the latest; None without a limit of time."""
        times: list[float] = []
        if self._limits.timeout is not None:
            times.append(self._started + self._limits.timeout)
        if self._limits.stall is not None and not self._tools:
            times.append(self._last_byte + self._limits.stall)
        return min(times, default=None)

    def overstepped(self, now: float, turns: int, goes_on: bool) -> RunReason | None:
        """Return the limit that ends the run; `goes_on` says that the last turn asks for another."""
        limits = self._limits
        if limits.timeout is not None and now >= self._started + limits.timeout:
            return RunReason.TIMEOUT
        if limits.max_turns is not None and turns >= limits.max_turns and goes_on:
            return RunReason.MAX_TURNS
        if limits.stall is not None and not self._tools and now >= self._last_byte + limits.stall:
            return RunReason.STALLED
        return None
