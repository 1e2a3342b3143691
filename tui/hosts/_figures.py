"""The figures of all hosts, and which of them were lost or are back; pure."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import TYPE_CHECKING, NamedTuple

from ...core.run.describe import moment, runs_word
from ...core.text.plain import one_line

if TYPE_CHECKING:
    from ...core.run.placement import HostState, HostStates

STALE_S = 60.0
"""A live relay updates the host states all the time; older ones do not describe the present."""
NAME = 64
"""Characters of a host's name."""
NAMED = 3
"""Hosts that are reported one by one; more are reported in one sentence."""


def name_of(host: HostState) -> str:
    return one_line(host.name, NAME) or "?"


def is_current(states: HostStates, now: datetime) -> bool:
    """Return whether a relay updated these states lately."""
    updated_at = moment(states.at)
    return updated_at is not None and abs((now - updated_at).total_seconds()) < STALE_S


class Figures(NamedTuple):
    reached: int = 0
    hosts: int = 0
    used: int = 0
    slots: int = 0
    """Of the online hosts, like `used`."""
    runs: int = 0
    is_current: bool = True
    """Whether the states are current; otherwise it is unknown which hosts are online."""

    @property
    def words(self) -> str:
        """`hosts 18/20 · slots 431/500`; empty without hosts."""
        is_known = self.hosts and self.is_current
        return f"{self.short_words} · slots {self.used}/{self.slots}" if is_known else self.short_words

    @property
    def short_words(self) -> str:
        """`hosts 18/20`, `hosts ?/20`."""
        return f"hosts {self.reached if self.is_current else '?'}/{self.hosts}" if self.hosts else ""


def figures(states: HostStates | None, now: datetime) -> Figures:
    """Add up the hosts; of outdated states only the number of hosts and runs is known."""
    if states is None:
        return Figures()
    are_current = is_current(states, now)
    reached = [host for host in states.hosts if host.in_reach] if are_current else []
    return Figures(
        len(reached),
        len(states.hosts),
        sum(host.used for host in reached),
        sum(host.slots for host in reached),
        sum(host.runs for host in states.hosts),
        are_current,
    )


class Reach:
    """Knows which hosts were online, to report each once as lost, and once as back."""

    def __init__(self) -> None:
        self._was_in_reach: dict[str, bool] = {}

    def look(self, states: HostStates | None, now: datetime) -> tuple[list[HostState], list[HostState]]:
        """Return the hosts lost since the last check, and the hosts that are back.

        New hosts and removed ones are not reported; without a current relay no host is.
        """
        if states is None or not is_current(states, now):
            return [], []
        changed = [host for host in states.hosts if self._was_in_reach.get(host.name, host.in_reach) != host.in_reach]
        self._was_in_reach |= {host.name: host.in_reach for host in states.hosts}
        return [host for host in changed if not host.in_reach], [host for host in changed if host.in_reach]


def lost_texts(hosts: Sequence[HostState]) -> list[str]:
    """Report each as unreachable; many at once together."""
    if len(hosts) > NAMED:
        runs = sum(host.runs for host in hosts)
        unknown = f" Their {runs_word(runs)} are unknown until they are back online." if runs else ""
        return [f"{_names(hosts)} are unreachable.{unknown}"]
    return [f"{name_of(host)} is unreachable.{_unknown(host.runs)}" for host in hosts]


def back_texts(hosts: Sequence[HostState]) -> list[str]:
    """Report each as back; many at once together."""
    if len(hosts) > NAMED:
        return [f"{_names(hosts)} are back online."]
    return [f"{name_of(host)} is back online." for host in hosts]


def _names(hosts: Sequence[HostState]) -> str:
    named = ", ".join(name_of(host) for host in hosts[:NAMED])
    return f"{len(hosts)} hosts ({named} and {len(hosts) - NAMED} more)"


def _unknown(runs: int) -> str:
    """Return a sentence on the runs of a lost host."""
    if not runs:
        return ""
    return f" {'Its run is' if runs == 1 else f'Its {runs_word(runs)} are'} unknown until it is back online."
