"""A carrier in the test's own process: it calls the hosts' agents, and cuts connections for a test."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

from subdeck.core.hosts._carrier import Carrier, Link, OutOfReach, Wish
from subdeck.core.hosts._host_agent import HostAgent
from subdeck.core.hosts.protocol import Hold, Verb, encode


class AgentCarrier(Carrier):
    """Gives tickets to the first suitable host with a free slot, like a cluster."""

    name = "test"

    def __init__(self, relay: str, *agents: HostAgent) -> None:
        self.relay = relay
        self.agents = {agent.name: agent for agent in agents}
        self.cut: set[str] = set()
        """Unreachable hosts."""
        self.deaf: dict[Verb, int] = {}
        """The number of the next answers to a verb that get lost on the way back."""
        self.asked: list[tuple[str, Verb]] = []
        self.tickets: dict[str, tuple[str, asyncio.Task[bytes]]] = {}

    async def run(self) -> None:
        try:
            await asyncio.Event().wait()
        finally:
            self.want({})

    @property
    def links(self) -> Mapping[str, Link]:
        there = (agent for name, agent in self.agents.items() if name not in self.cut)
        return {agent.name: Link(agent.name, agent.name, agent.slots, agent.labels) for agent in there}

    async def call(self, key: str, verb: Verb, message: bytes, timeout: float) -> bytes:
        self.asked.append((key, verb))
        if key not in self.links:
            raise OutOfReach(f"{key} is cut off")
        async with asyncio.timeout(timeout):  # `wait_for` of 3.11 may miss a cancellation
            answer = await self.agents[key].answer(verb, message)
        if key in self.cut:
            raise OutOfReach(f"{key} was cut off")
        if self.deaf.get(verb):
            self.deaf[verb] -= 1
            raise OutOfReach(f"the answer of {key} was lost")
        return answer

    def want(self, wishes: Mapping[str, Wish]) -> None:
        for run_id, (_, ticket) in list(self.tickets.items()):
            if run_id not in wishes or ticket.done():
                ticket.cancel()
                del self.tickets[run_id]
        for run_id, wish in wishes.items():
            if run_id not in self.tickets and (key := self._free(wish)):
                held = self.agents[key].answer(Verb.HOLD, encode(Hold(self.relay, run_id)))
                self.tickets[run_id] = (key, asyncio.get_running_loop().create_task(held))

    def _free(self, wish: Wish) -> str | None:
        if wish.host:
            return wish.host if wish.host in self.links else None
        used = [key for key, _ in self.tickets.values()]
        return next((key for key, link in self.links.items() if used.count(key) < link.slots), None)
