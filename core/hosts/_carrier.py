"""What brings the relay's messages to hosts and has runs placed there; a kind of cluster each."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Mapping

from msgspec import Struct

from .protocol import Verb

NOT_YET = "not connected yet"
"""What a carrier says among its faults as long as it has not tried to reach a host, or all of them."""


class OutOfReach(Exception):
    """The host did not answer; what was asked may have been done or not."""


class Wish(Struct, frozen=True):
    """A run that is to have a slot."""

    run: str
    host: str = ""
    """The key of the host that it is bound to, or that its request names; empty for any."""
    needs: Mapping[str, float] = {}


class Link(Struct, frozen=True):
    """A host that can be asked now."""

    key: str
    """What the carrier calls it; another one when it comes back may be the same host."""
    name: str
    slots: int = 1
    labels: Mapping[str, float] = {}
    why_not: str = ""
    """Why no run can be started there now, in words; empty where one can."""


class Carrier(ABC):
    """Lives in the relay's event loop."""

    name: str
    addresses: Collection[str] = ()
    """The keys of all hosts that it may ever reach, where it knows by a key who answers; none where it does not."""

    @abstractmethod
    async def run(self) -> None:
        """Keep connected until cancelled, whatever happens; raises nothing but CancelledError."""

    @property
    @abstractmethod
    def links(self) -> Mapping[str, Link]:
        """The hosts that can be asked now, by key."""

    @property
    def fault(self) -> str:
        """Why there is no host, or not all of them, in words for a person; empty where nothing is wrong."""
        return ""

    def address(self, key: str) -> str:
        """Return the address of a host, among those of all carriers; empty where it is not known who answers."""
        return f"{self.name} {key}" if key in self.addresses else ""

    @abstractmethod
    async def call(self, key: str, verb: Verb, message: bytes, timeout: float) -> bytes:
        """Ask a host; raises OutOfReach after `timeout` seconds, when it is not there, or when the connection broke."""

    @abstractmethod
    def want(self, wishes: Mapping[str, Wish]) -> None:
        """Have a ticket for each of these runs, and for no others: an agent somewhere then holds a slot (`hold`).

        Called again and again with all that is wanted; by run id. A ticket that ended is asked for anew. That one is
        taken back never ends its run.
        """
