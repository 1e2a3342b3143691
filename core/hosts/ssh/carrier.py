"""The carrier for the hosts in `hosts.ssh`; it places runs by free slots."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping
from types import MappingProxyType

from ...config.host_settings import HostsSettings
from .._carrier import Carrier, Link, OutOfReach, Wish
from ..protocol import Hold, Verb, encode
from ._line import HostLine

AGAIN_S = 1.0
"""Seconds after which an expired ticket is requested again."""


class SshCarrier(Carrier):
    name = "ssh"

    def __init__(self, settings: HostsSettings, relay: str) -> None:
        """`relay` is the relay's id, which its tickets carry."""
        self._relay = relay
        self._lines = {host: HostLine(host, settings.ssh_slots, self._wake) for host in dict.fromkeys(settings.ssh)}
        self.addresses = tuple(self._lines)
        self._wishes: Mapping[str, Wish] = {}
        self._tickets: dict[str, tuple[Wish, str, asyncio.Task[None]]] = {}
        """By run: its request, its host's key, and the task that holds the slot."""
        self._news = asyncio.Event()

    async def run(self) -> None:
        lines = [asyncio.create_task(line.run()) for line in self._lines.values()]
        try:
            while True:
                await self._news.wait()
                self._news.clear()
                self._settle()
        finally:
            tasks = (*lines, *(task for _, _, task in self._tickets.values()))
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    @property
    def links(self) -> Mapping[str, Link]:
        return MappingProxyType({key: line.link for key, line in self._lines.items() if line.link})

    @property
    def fault(self) -> str:
        return "; ".join(line.fault for line in self._lines.values() if line.fault)

    async def call(self, key: str, verb: Verb, message: bytes, timeout: float) -> bytes:
        return await self._line(key).ask(verb, message, timeout)

    def want(self, wishes: Mapping[str, Wish]) -> None:
        self._wishes = dict(wishes)
        self._wake()

    def _wake(self) -> None:
        self._news.set()

    def _line(self, key: str) -> HostLine:
        line = self._lines.get(key)
        if line is None:
            raise OutOfReach(f"{key} is not in hosts.ssh")
        return line

    def _settle(self) -> None:
        """Withdraw tickets that are no longer wanted, and request missing ones."""
        for run, (_, key, task) in list(self._tickets.items()):
            wish = self._wishes.get(run)
            if wish is not None and wish.host in ("", key):
                self._tickets[run] = wish, key, task
            else:
                task.cancel()
                del self._tickets[run]
        held = [(wish, key) for wish, key, _ in self._tickets.values()]
        # Runs bound to a host go first: most of them are already there.
        for wish in sorted(self._wishes.values(), key=lambda wish: not wish.host):
            if wish.run in self._tickets or (key := choose(wish, self.links, held)) is None:
                continue
            held.append((wish, key))
            self._tickets[wish.run] = wish, key, asyncio.create_task(self._hold(wish.run, key))

    async def _hold(self, run: str, key: str) -> None:
        """Act as a ticket: hold a slot on a host until the agent releases it."""
        try:
            await self._line(key).ask(Verb.HOLD, encode(Hold(self._relay, run)), None)
        except OutOfReach:
            pass  # the host gets a new ticket when it is back
        await asyncio.sleep(AGAIN_S)
        if self._tickets.get(run, (None, "", None))[2] is asyncio.current_task():
            del self._tickets[run]
            self._wake()


# --- slots -----------------------------------------------------------------------------------------------------------


def choose(wish: Wish, links: Mapping[str, Link], held: Iterable[tuple[Wish, str]]) -> str | None:
    """Return the key of the matching host with the most free slots; None if there is none.

    `held` are the existing tickets with their hosts' keys; each holds a slot and its resources.
    """
    held = list(held)
    free = {
        key: link.slots - sum(host == key for _, host in held)
        for key, link in links.items()
        if wish.host in ("", key) and _has_all(wish, link, [held_wish for held_wish, host in held if host == key])
    }
    best = max(free, key=lambda key: free[key], default=None)
    return best if best is not None and free[best] > 0 else None


def _has_all(wish: Wish, link: Link, held: list[Wish]) -> bool:
    return all(
        link.labels.get(label, 0.0) - sum(held_wish.needs.get(label, 0.0) for held_wish in held) >= amount
        for label, amount in wish.needs.items()
    )
