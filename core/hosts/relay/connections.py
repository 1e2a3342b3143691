"""The carriers that the settings name, and over their links the hosts: each is asked again and again what is new."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from functools import partial

from ...config.host_settings import HostsSettings
from .._carrier import Carrier, Link
from ..protocol import BUDGET, WAIT_S, BadMessage, Have, Pull, Pulled, Verb, decode_answer, encode, other_version
from .errands import Errands, ended
from .means import Means
from .roster import Roster

SETTINGS_S = 2.0
"""Between two looks at the settings."""
_MOST_PATIENCE_S = 10.0
"""How much longer than its wait a pull may take, at least."""


class Connections:
    def __init__(
        self,
        relay: str,
        find_means: Callable[[], Means],
        roster: Roster,
        errands: Errands,
        have: Callable[[str, str], dict[str, Have]],
        take_in: Callable[[Carrier, Link, Pulled], float],
    ) -> None:
        """`find_means` is asked again and again; another answer than before, and other carriers are taken.

        `have` returns what is here of the runs of a spool at an address; `take_in` gets each answer, and returns after
        how many seconds at least the host is asked again.
        """
        self.means = Means(HostsSettings(), ())
        self._relay = relay
        self._find_means = find_means
        self._roster = roster
        self._errands = errands
        self._have = have
        self._take_in = take_in
        self._carrying: list[asyncio.Task[None]] = []
        self._read_settings = 0.0

    def look(self) -> None:
        """See that each host that can be asked is, by the settings that hold now."""
        if time.monotonic() - self._read_settings > SETTINGS_S:
            self._read_settings = time.monotonic()
            self._renew_means()
        if any(task.done() for task in self._carrying):
            self._errands.run("carry", "carriers", self._carry)  # one has failed, which none should
        for carrier in self.means.carriers:
            for link in carrier.links.values():
                self._errands.run("follow", f"{carrier.name} {link.key}", partial(self._follow, carrier, link))

    async def end(self) -> None:
        await ended(self._carrying)

    def _renew_means(self) -> None:
        means = self._find_means()
        if means is self.means:
            return
        is_same = means.carriers == self.means.carriers
        self.means = means
        if not is_same:
            self._errands.run("carry", "carriers", self._carry)

    async def _carry(self) -> None:
        """Have the carriers work that there are now, and no others."""
        failed = [error for task in self._carrying if task.done() and (error := _error_of(task))]
        await ended(self._carrying)
        self._roster.forget_faults()
        self._carrying = [asyncio.create_task(carrier.run()) for carrier in self.means.carriers]
        if failed:
            raise failed[0]  # it is noted, and this is done again no sooner than after a pause

    async def _follow(self, carrier: Carrier, link: Link) -> None:
        """Take in what a host has to say, as long as it can be asked. Raises OutOfReach, BadMessage."""
        try:
            await self._follow_on(carrier, link)
        except BadMessage as error:
            self._roster.misunderstand(carrier, link, str(error))
            raise

    async def _follow_on(self, carrier: Carrier, link: Link) -> None:
        spool = ""
        while link.key in carrier.links and carrier in self.means.carriers:
            began, answer = time.monotonic(), await self._pull(carrier, link, spool)
            came = time.monotonic()
            pulled = self._read(carrier, link, answer)
            spool = pulled.spool
            pause = self._take_in(carrier, link, pulled) - (time.monotonic() - began)
            # However much one host has to say, the others are heard as well.
            await asyncio.sleep(max(pause, time.monotonic() - came))

    def _read(self, carrier: Carrier, link: Link, answer: bytes) -> Pulled:
        """Return what a host has answered, as far as it is believed. Raises BadMessage."""
        pulled: Pulled = decode_answer(Verb.PULL, answer)
        if why := other_version(pulled.protocol, pulled.facts.subdeck):
            raise BadMessage(why)
        if sum(len(chunk.content) for chunk in pulled.chunks) > 8 * BUDGET:
            raise BadMessage("it sends more of its files than it was asked for")
        return self._roster.believed(carrier, link, pulled, self.means.carriers)

    async def _pull(self, carrier: Carrier, link: Link, spool: str) -> bytes:
        reach = self.means.settings.unreachable_after
        wait = min(WAIT_S, reach / 3) if spool else 0.0
        message = encode(Pull(self._relay, self._have(spool, carrier.address(link.key)), wait))
        return await carrier.call(link.key, Verb.PULL, message, wait + max(reach, _MOST_PATIENCE_S))


def _error_of(task: asyncio.Task[None]) -> Exception | None:
    error = None if task.cancelled() else task.exception()
    return error if isinstance(error, Exception) else None
