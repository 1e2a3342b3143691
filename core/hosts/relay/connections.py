"""The carriers in the settings, and the hosts they reach: each host is polled for news."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from functools import partial

from msgspec import Struct

from ... import paths
from ...config.effective_hosts import effective_hosts
from ...config.host_settings import HostsSettings
from ...config.workspace import load_settings
from ...errors import SubdeckError
from .._carrier import Carrier, Link
from ..protocol import BUDGET, WAIT_S, BadMessage, Have, Pull, Pulled, Verb, decode_answer, encode, other_version
from .journal import Journal
from .slots import Hosts
from .transfers import BackgroundTasks, cancelled

EXTRA = 'the packages for a cluster are missing: pip install "subdeck[hosts]"'
SETTINGS_S = 2.0
"""Seconds between reads of the settings."""
_PATIENCE_S = 10.0
"""Least seconds that a pull may take beyond its wait."""


class CarrierSet(Struct, frozen=True):
    """The effective settings of hosts, and the carriers made from them."""

    settings: HostsSettings
    carriers: tuple[Carrier, ...]
    faults: tuple[str, ...] = ()
    """Why a carrier that the settings name is missing."""

    @property
    def all_faults(self) -> list[str]:
        """Why hosts are missing, in words, each after the name of its carrier."""
        of_carriers = ((carrier.name, carrier.fault) for carrier in self.carriers)
        return [*self.faults, *(f"{name}: {fault}" for name, fault in of_carriers if fault)]


class CarrierLoader:
    """Reads the effective settings, and creates new carriers only if their own settings have changed."""

    def __init__(self, project: paths.Project, relay: str, journal: Journal) -> None:
        self._project = project
        self._relay = relay
        self._journal = journal
        self._last = CarrierSet(HostsSettings(), ())

    def __call__(self) -> CarrierSet:
        """Return the same object as before if nothing has changed."""
        try:
            settings = effective_hosts(load_settings(self._project).hosts)
        except SubdeckError as error:
            self._journal.note(f"cannot read the settings: {error}")
            return self._last
        if settings == self._last.settings:
            return self._last
        if _made_of(settings) == _made_of(self._last.settings):
            self._last = CarrierSet(settings, self._last.carriers, self._last.faults)
        else:
            self._last = self._made(settings)
        return self._last

    def _made(self, settings: HostsSettings) -> CarrierSet:
        carriers: list[Carrier] = []
        faults: list[str] = []
        try:
            if settings.scheduler:
                from ..dask.carrier import DaskCarrier  # imports distributed: 47 MB that ssh does not need

                carriers.append(DaskCarrier(settings, self._relay))
        except ImportError as error:
            faults.append(f"dask: {EXTRA}")
            self._journal.note(f"{EXTRA}: {error}")
        except SubdeckError as error:
            faults.append(f"dask: {error}")
            self._journal.note(f"dask: {error}")
        if settings.ssh:
            from ..ssh.carrier import SshCarrier

            carriers.append(SshCarrier(settings, self._relay))
        return CarrierSet(settings, tuple(carriers), tuple(faults))


def _made_of(settings: HostsSettings) -> tuple[object, ...]:
    """Return the settings that carriers are created from."""
    return (settings.scheduler, settings.tls, settings.ssh, settings.ssh_slots, settings.relay_secrets)


class Connections:
    def __init__(
        self,
        relay: str,
        load_carriers: Callable[[], CarrierSet],
        hosts: Hosts,
        tasks: BackgroundTasks,
        have: Callable[[str, str], dict[str, Have]],
        take_answer: Callable[[Carrier, Link, Pulled], float],
    ) -> None:
        """`load_carriers` is called repeatedly; its carriers replace those of the last call.

        `have` returns what is mirrored of the runs of a spool at an address. `take_answer` gets each answer, and
        returns the seconds until the host may be asked again.
        """
        self.carrier_set = CarrierSet(HostsSettings(), ())
        self._relay = relay
        self._load_carriers = load_carriers
        self._hosts = hosts
        self._tasks = tasks
        self._have = have
        self._take_answer = take_answer
        self._running_carriers: list[asyncio.Task[None]] = []
        self._loaded = 0.0

    def keep_up(self) -> None:
        """Run the carriers of the effective settings, and poll each online host."""
        if time.monotonic() - self._loaded > SETTINGS_S:
            self._loaded = time.monotonic()
            self._reload_carriers()
        if any(task.done() for task in self._running_carriers):
            self._tasks.run("carry", "carriers", self._run_carriers)  # one has failed unexpectedly
        for carrier in self.carrier_set.carriers:
            for link in carrier.links.values():
                self._tasks.run("follow", f"{carrier.name} {link.key}", partial(self._follow, carrier, link))

    async def end(self) -> None:
        await cancelled(self._running_carriers)

    def _reload_carriers(self) -> None:
        carrier_set = self._load_carriers()
        if carrier_set is self.carrier_set:
            return
        is_same = carrier_set.carriers == self.carrier_set.carriers
        self.carrier_set = carrier_set
        if not is_same:
            self._tasks.run("carry", "carriers", self._run_carriers)

    async def _run_carriers(self) -> None:
        """Run the current carriers, and end all earlier ones."""
        failed = [error for task in self._running_carriers if task.done() and (error := _error_of(task))]
        await cancelled(self._running_carriers)
        self._hosts.forget_faults()
        self._running_carriers = [asyncio.create_task(carrier.run()) for carrier in self.carrier_set.carriers]
        if failed:
            raise failed[0]  # for the journal, and so that the retry waits

    async def _follow(self, carrier: Carrier, link: Link) -> None:
        """Pull from a host while it is online. Raises OutOfReach, BadMessage."""
        try:
            await self._pull_again(carrier, link)
        except BadMessage as error:
            self._hosts.misunderstand(carrier, link, str(error))
            raise

    async def _pull_again(self, carrier: Carrier, link: Link) -> None:
        spool = ""
        while link.key in carrier.links and carrier in self.carrier_set.carriers:
            began, answer = time.monotonic(), await self._pull(carrier, link, spool)
            came = time.monotonic()
            pulled = self._read(carrier, link, answer)
            spool = pulled.spool
            pause = self._take_answer(carrier, link, pulled) - (time.monotonic() - began)
            # A host with much to send must not keep the relay from the others.
            await asyncio.sleep(max(pause, time.monotonic() - came))

    def _read(self, carrier: Carrier, link: Link, answer: bytes) -> Pulled:
        """Decode and check the answer of a host. Raises BadMessage."""
        pulled: Pulled = decode_answer(Verb.PULL, answer)
        if why := other_version(pulled.protocol, pulled.facts.subdeck):
            raise BadMessage(why)
        if sum(len(chunk.content) for chunk in pulled.chunks) > 8 * BUDGET:
            raise BadMessage("it sends more of its files than it was asked for")
        return self._hosts.checked(carrier, link, pulled, self.carrier_set.carriers)

    async def _pull(self, carrier: Carrier, link: Link, spool: str) -> bytes:
        reach = self.carrier_set.settings.unreachable_after
        wait = min(WAIT_S, reach / 3) if spool else 0.0
        message = encode(Pull(self._relay, self._have(spool, carrier.address(link.key)), wait))
        return await carrier.call(link.key, Verb.PULL, message, wait + max(reach, _PATIENCE_S))


def _error_of(task: asyncio.Task[None]) -> Exception | None:
    error = None if task.cancelled() else task.exception()
    return error if isinstance(error, Exception) else None
