"""Hosts that a carrier knows by their keys, as ssh does, with the answers of a hostile peer."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import Any

from msgspec import Struct
from subdeck.core.hosts._carrier import Carrier, Link, OutOfReach, Wish
from subdeck.core.hosts.protocol import (
    Answer,
    Fetched,
    HostFacts,
    Pull,
    Pulled,
    Said,
    Start,
    Verb,
    decode_asked,
    encode,
)

from tests.core.hosts.hosting import until


class HostilePeer:
    """One host: its own claims, and everything sent to it."""

    def __init__(self, spool: str, name: str) -> None:
        self.spool = spool
        self.name = name
        self.facts = HostFacts(slots=2)
        self.known: tuple[str, ...] = ()
        self.offers: tuple[str, ...] = ()
        self.tells: list[bytes] = []
        """Answers to the next pulls."""
        self.asked: list[Any] = []
        self.answers: dict[Verb, Callable[[Any], bytes | Struct]] = {}
        """Answers by verb; the default answer reports success."""
        self.pulled = 0
        self.is_there = True

    def pulls(self, **others: Any) -> Pulled:
        told = {"spool": self.spool, "host": self.name, "facts": self.facts, "known": self.known}
        return Pulled(**{**told, "offers": self.offers, **others})

    async def tell(self, **others: Any) -> None:
        """Send a message, and wait until it was accepted or refused."""
        self.tells.append(encode(self.pulls(**others)))
        await until(lambda: not self.tells, "it to be asked")
        pulled = self.pulled
        await until(lambda: self.pulled > pulled + 1, "it to be asked again")

    @property
    def starts(self) -> list[Start]:
        return [asked for asked in self.asked if isinstance(asked, Start)]

    async def answer(self, verb: Verb, message: bytes) -> bytes:
        asked = decode_asked(verb, message)
        self.asked.append(asked)
        if isinstance(asked, Pull):
            self.pulled += 1
            await asyncio.sleep(0.01)
            return self.tells.pop(0) if self.tells else encode(self.pulls())
        usual = Fetched() if verb is Verb.FETCH else Answer(Said.KNOWN)
        said = self.answers[verb](asked) if verb in self.answers else usual
        return said if isinstance(said, bytes) else encode(said)


class Peers(Carrier):
    name = "ssh"

    def __init__(self, **peers: HostilePeer) -> None:
        self.peers = peers
        """Peers by their addresses in the settings."""
        self.addresses = peers.keys()
        self.wishes: Mapping[str, Wish] = {}

    async def run(self) -> None:
        await asyncio.Event().wait()

    @property
    def links(self) -> Mapping[str, Link]:
        return {key: Link(key, peer.name, 2) for key, peer in self.peers.items() if peer.is_there}

    async def call(self, key: str, verb: Verb, message: bytes, timeout: float) -> bytes:
        if key not in self.links:
            raise OutOfReach(f"{key} is not there")
        async with asyncio.timeout(timeout):  # `wait_for` of 3.11 may miss a cancellation
            return await self.peers[key].answer(verb, message)

    def want(self, wishes: Mapping[str, Wish]) -> None:
        self.wishes = wishes
