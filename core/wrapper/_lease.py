"""The lease of a run on a host: it ends where nobody has been heard of for longer than that.

The agent of the host writes down, once a second, that it lives and when the operator was heard of: two numbers, in
seconds of CLOCK_BOOTTIME. Imports nothing heavy: a wrapper that waits in a queue looks at it, too.
"""

from __future__ import annotations

import time

from ..system import files

CERTAIN_S = 5.0
"""How long it has to be over before that counts: a machine that slept wakes the wrapper before the agent, maybe."""


def now() -> float:
    """Return the seconds since the boot, with those in which the machine slept."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)


class Lease:
    """Looked at once a second; who cannot read it takes it for as old as it was."""

    def __init__(self, path: str, agent: float, operator: float) -> None:
        """`agent` and `operator` are how many seconds the run goes on without either; 0 for ever."""
        self._path = path
        self._agent = agent
        self._operator = operator
        self._agent_heard = self._operator_heard = now()
        self._over_since: float | None = None
        self.words = ""
        """Who was not heard of, and for how long; empty as long as it lasts."""

    @property
    def is_over(self) -> bool:
        return bool(self.words)

    def look(self) -> None:
        """Read it, and find out whether it is over; once it is, it stays so."""
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
        if agent <= present:  # else of an earlier boot, or no number at all: it says nothing
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
