"""Carriers bring the relay's messages to hosts and get runs placed; each kind of cluster has one."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Mapping

from msgspec import Struct

from .protocol import Verb

NOT_YET = "not connected yet"
"""Fault of a carrier that has not yet tried to reach a host, or all of its hosts."""


class OutOfReach(Exception):
    """The host did not answer; the request may or may not have been carried out."""


class Wish(Struct, frozen=True):
    """A run that needs a slot."""

    run: str
    host: str = ""
    """Key of the host that the run is bound to or requests; empty for any host."""
    needs: Mapping[str, float] = {}


class Link(Struct, frozen=True):
    """A host that is reachable now."""

    key: str
    """The carrier's name for the host; after a reconnect the same host may have another key."""
    name: str
    slots: int = 1
    labels: Mapping[str, float] = {}
    why_not: str = ""
    """Why the host cannot start runs now; empty if it can."""


class Carrier(ABC):
    """Lives in the relay's event loop."""

    name: str
    addresses: Collection[str] = ()
    """Keys of all hosts it can ever reach, if keys identify hosts; empty otherwise."""

    @abstractmethod
    async def run(self) -> None:
        """Keep connected until cancelled; raise only CancelledError."""

    @property
    @abstractmethod
    def links(self) -> Mapping[str, Link]:
        """The reachable hosts, by key."""

    @property
    def fault(self) -> str:
        """Why hosts are missing, in words for a person; empty if nothing is wrong."""
        return ""

    def address(self, key: str) -> str:
        """Return a host's address, unique among all carriers; empty if keys do not identify hosts."""
        return f"{self.name} {key}" if key in self.addresses else ""

    @abstractmethod
    async def call(self, key: str, verb: Verb, message: bytes, timeout: float) -> bytes:
        """Call a host. Raises OutOfReach after `timeout` seconds, or if the host or the connection is gone."""

    @abstractmethod
    def want(self, wishes: Mapping[str, Wish]) -> None:
        """Hold a ticket for exactly these runs, by run id; a ticket makes a host's agent hold a slot (`hold`).

        Called repeatedly with all wanted runs. An expired ticket is requested again. Withdrawing a ticket never stops
        its run.
        """
