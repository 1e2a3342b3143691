"""What is said of the hosts as a whole, and which of them were lost or are back; pure."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import TYPE_CHECKING, NamedTuple

from ...core.run.describe import moment, runs_word
from ...core.text.plain import one_line

if TYPE_CHECKING:
    from ...core.run.hosts import HostState, HostStates

STALE_S = 60.0
"""The relay tells the hosts anew all the time while it lives; what is older tells nothing of now."""
NAME = 64
"""Characters of the name of a host."""
NAMED = 3
"""Hosts that are told of one by one; of more at once it is told in one sentence."""


def name_of(host: HostState) -> str:
    return one_line(host.name, NAME) or "?"


def is_current(states: HostStates, now: datetime) -> bool:
    """Return whether a relay told this lately."""
    told = moment(states.at)
    return told is not None and abs((now - told).total_seconds()) < STALE_S


class Figures(NamedTuple):
    reached: int = 0
    hosts: int = 0
    used: int = 0
    slots: int = 0
    """Of the hosts that are in reach, as well as `used`."""
    runs: int = 0
    is_told: bool = True
    """Whether it is told now; else nobody knows which of them are in reach."""

    @property
    def words(self) -> str:
        """`hosts 18/20 · slots 431/500`; empty where no host is known."""
        is_known = self.hosts and self.is_told
        return f"{self.short_words} · slots {self.used}/{self.slots}" if is_known else self.short_words

    @property
    def short_words(self) -> str:
        """`hosts 18/20`, `hosts ?/20`."""
        return f"hosts {self.reached if self.is_told else '?'}/{self.hosts}" if self.hosts else ""


def figures(states: HostStates | None, now: datetime) -> Figures:
    """Add up; of hosts that no relay tells of any more only the number is known."""
    if states is None:
        return Figures()
    is_told = is_current(states, now)
    reached = [host for host in states.hosts if host.in_reach] if is_told else []
    return Figures(
        len(reached),
        len(states.hosts),
        sum(host.used for host in reached),
        sum(host.slots for host in reached),
        sum(host.runs for host in states.hosts),
        is_told,
    )


class Reach:
    """Knows which hosts were in reach, to tell of each once that it was lost, and once that it is back."""

    def __init__(self) -> None:
        self._known: dict[str, bool] = {}

    def look(self, states: HostStates | None, now: datetime) -> tuple[list[HostState], list[HostState]]:
        """Return the hosts that were lost since the last look, and those that are back.

        Of a host that is new, and of one that is not told of any more, there is nothing to say; nor where no relay
        tells anything.
        """
        if states is None or not is_current(states, now):
            return [], []
        changed = [host for host in states.hosts if self._known.get(host.name, host.in_reach) != host.in_reach]
        self._known |= {host.name: host.in_reach for host in states.hosts}
        return [host for host in changed if not host.in_reach], [host for host in changed if host.in_reach]


def lost_texts(hosts: Sequence[HostState]) -> list[str]:
    """Say of each that it is out of reach; of many at once together."""
    if len(hosts) > NAMED:
        runs = sum(host.runs for host in hosts)
        unknown = f" Their {runs_word(runs)} are unknown until they are back online." if runs else ""
        return [f"{_names(hosts)} are unreachable.{unknown}"]
    return [f"{name_of(host)} is unreachable.{_unknown(host.runs)}" for host in hosts]


def back_texts(hosts: Sequence[HostState]) -> list[str]:
    """Say of each that it is back; of many at once together."""
    if len(hosts) > NAMED:
        return [f"{_names(hosts)} are back online."]
    return [f"{name_of(host)} is back online." for host in hosts]


def _names(hosts: Sequence[HostState]) -> str:
    named = ", ".join(name_of(host) for host in hosts[:NAMED])
    return f"{len(hosts)} hosts ({named} and {len(hosts) - NAMED} more)"


def _unknown(runs: int) -> str:
    """Say what becomes of the runs on a host."""
    if not runs:
        return ""
    return f" {'Its run is' if runs == 1 else f'Its {runs_word(runs)} are'} unknown until it is back online."
