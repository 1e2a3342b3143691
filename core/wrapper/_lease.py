"""The lease of a run on a host: it expires after too long without contact.

Once a second the host's agent records that it lives and its last contact with the user: two numbers, in seconds of
CLOCK_BOOTTIME. Imports nothing heavy: a wrapper that waits in a queue also checks it.
"""

from __future__ import annotations

import time

from ..system import files

CERTAIN_S = 5.0
"""Seconds it must be expired before that counts: a machine that slept may wake the wrapper before the host's agent."""


def now() -> float:
    """Return the seconds since boot, including sleep."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)


class Lease:
    """Checked once a second; if the file is unreadable, the last values count."""

    def __init__(self, path: str, agent: float, operator: float) -> None:
        """`agent` and `operator`: seconds that the run continues without either; 0 for no limit."""
        self._path = path
        self._agent = agent
        self._operator = operator
        self._agent_heard = self._operator_heard = now()
        self._over_since: float | None = None
        self.words = ""
        """Who was out of contact, and for how long; empty until it expires."""

    @property
    def is_over(self) -> bool:
        return bool(self.words)

    def look(self) -> None:
        """Read the file and check for expiry; an expired lease stays expired."""
        self._read()
        words = self._words()
        if not words:
            self._over_since = None
            return
        if self._over_since is None:
            self._over_since = time.monotonic()
        if time.monotonic() - self._over_since >= CERTAIN_S:
            self.words = self.words or words

    def _read(self) -> None:
        try:
            agent, operator = map(float, files.read(self._path).split())
        except (OSError, ValueError):
            return
        present = now()
        if agent <= present:  # otherwise of an earlier boot, or not a number: ignore it
            self._agent_heard = max(self._agent_heard, agent)
        if operator <= present:
            self._operator_heard = max(self._operator_heard, operator)

    def _words(self) -> str:
        present = now()
        if self._agent and present - self._agent_heard > self._agent:
            return (
                f"no subdeck process ran on its host for {_period(self._agent)}, so the run could not have been stopped"
            )
        if self._operator and present - self._operator_heard > self._operator:
            return f"its host had no contact with you for {_period(self._operator)}"
        return ""


def _period(seconds: float) -> str:
    """`90 s`, `15 min`, `24 h`"""
    if seconds < 120:
        return f"{seconds:g} s"
    return f"{seconds / 60:.0f} min" if seconds < 2 * 3600 else f"{seconds / 3600:.0f} h"
