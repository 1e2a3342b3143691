"""The carrier of a dask cluster: it lists hosts, sends them messages, and holds a ticket for each run.

No run depends on dask: connections, scheduler and workers may go at any time.
"""

from __future__ import annotations

import asyncio
import os
import ssl
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Annotated, Any

from msgspec import Meta, Struct
from msgspec.structs import replace

from ...config.host_settings import HostsSettings, is_address, is_loopback
from ...errors import SubdeckError
from ...run.enumerations import Cost
from ...text.decoder import UNDECODABLE, fit
from ...text.plain import one_line
from .._carrier import Carrier, Link, OutOfReach, Wish
from ..protocol import HostName, Verb
from . import _configuration
from .security import client_security

_configuration.apply()

from distributed import Client, Future  # noqa: E402 - it reads the configuration when it is imported
from distributed.core import send_recv  # noqa: E402 # pyright: ignore[reportUnknownVariableType]

from . import _frames  # noqa: E402 - it imports distributed

_frames.install()

LOOK_S = 0.5
"""Seconds between polls of the cluster."""
CONNECT_S = 5.0
"""Seconds that the scheduler or a worker has to accept a connection."""
ANSWER_S = 10.0
"""Seconds that the scheduler has to answer."""
FIRST_WAIT_S, LONGEST_WAIT_S = 0.5, 5.0
"""Seconds before reconnecting."""
AGAIN_S = 1.0
"""Seconds between two tickets for one run."""
DIRECT_AGAIN_S = 15.0
"""Seconds between attempts to reach a worker directly."""
CLOSE_S = 3.0
MOST_FAULTS = 3
NO_SUBDECK = "has no subdeck"
MOST_WORKERS = 500
"""Most workers used as hosts; each needs a connection."""
SECRETS = (Verb.START, Verb.MESSAGE, Verb.CODE, Verb.FETCH)
"""Verbs that carry prompts, variables and files; sent through the scheduler only if the operator allows it."""


class _Worker(Struct, frozen=True):
    """The scheduler's data about a worker, as used here."""

    status: Annotated[str, Meta(max_length=64)] = ""
    resources: Annotated[dict[Annotated[str, Meta(max_length=64)], Cost], Meta(max_length=65)] = {}
    subdeck: _Card | None = None


class _Cluster(Struct, frozen=True):
    """The used part of the scheduler's identity."""

    workers: dict[str, Any]


class _Card(Struct, frozen=True):
    """The data that `preload` adds."""

    name: HostName


@dataclass
class _Ticket:
    future: Future[Any]
    wish: Wish
    asked: float


class DaskCarrier(Carrier):
    name = "dask"

    def __init__(self, settings: HostsSettings, relay: str) -> None:
        """`relay` is the relay's id, which its tickets carry."""
        self._settings = settings
        self._address = settings.scheduler or ""
        self._relay = relay
        self._client: Client | None = None
        self._links: dict[str, Link] = {}
        self._strangers: Mapping[str, str] = {}
        """Workers that are not used as hosts, with the reason."""
        self._indirect: dict[str, float] = {}
        """Workers reachable only through the scheduler, and when to try again directly."""
        self._fault = ""
        self._wishes: Mapping[str, Wish] = {}
        self._tickets: dict[str, _Ticket] = {}
        self._asked = 0
        self._function = make_ticket()

    @property
    def links(self) -> Mapping[str, Link]:
        return self._links

    @property
    def fault(self) -> str:
        if self._fault:
            return self._fault
        faults = [f"worker {one_line(address, 100)} {why}" for address, why in self._strangers.items()]
        faults += [link.why_not for link in self._links.values() if link.why_not]
        return "; ".join(faults[:MOST_FAULTS])

    async def run(self) -> None:
        wait = FIRST_WAIT_S
        while True:
            began = time.monotonic()
            try:
                await self._attend()
            except SubdeckError as error:
                self._fault = error.advice
            except Exception as error:
                self._fault = f"no answer from {self._address}: {_words(error)}"
            finally:
                await self._disconnect()
            wait = FIRST_WAIT_S if time.monotonic() - began > 30 else min(wait * 2, LONGEST_WAIT_S)
            await asyncio.sleep(wait)

    async def call(self, key: str, verb: Verb, message: bytes, timeout: float) -> bytes:
        client = self._client
        if client is None or key not in self._links:
            raise OutOfReach(self._fault or f"{one_line(key, 100)} is not in the cluster")
        try:
            async with asyncio.timeout(timeout):
                answer = await self._ask(client, key, verb, message)
        except OutOfReach:
            raise
        except Exception as error:  # an unusual peer's answer may raise anything
            raise OutOfReach(f"no answer from {one_line(key, 100)}: {_words(error)}") from error
        if not isinstance(answer, bytes):
            raise OutOfReach(f"worker {one_line(key, 100)} {NO_SUBDECK}")
        return answer

    def want(self, wishes: Mapping[str, Wish]) -> None:
        self._wishes = dict(wishes)
        self._settle()

    # --- the cluster --------------------------------------------------------------------------------------------------

    async def _attend(self) -> None:
        """Poll the cluster over one connection until it fails."""
        security = client_security(self._address, self._settings.tls)
        client = Client(
            self._address,
            security=security,
            asynchronous=True,
            timeout=CONNECT_S,
            name="subdeck",
            set_as_default=False,
            direct_to_workers=True,
        )
        _accept_only_tickets(client)
        self._client = client
        async with asyncio.timeout(CONNECT_S + ANSWER_S):
            await client
        client.unsubscribe_topic("print")  # output of workers is not printed here
        client.unsubscribe_topic("warn")
        scheduler: Any = client.scheduler
        stream: Any = client.scheduler_comm
        while client.status == "running" and not stream.comm.closed():
            async with asyncio.timeout(ANSWER_S):
                identity = await scheduler.identity(n_workers=-1)
            self._take(fit(identity, _Cluster).workers)
            self._fault = ""
            self._settle()
            await asyncio.sleep(LOOK_S)
        raise OSError("the connection broke")

    async def _disconnect(self) -> None:
        client, self._client = self._client, None
        self._links, self._strangers = {}, {}
        self._indirect.clear()
        self._tickets.clear()
        if client is None:
            return
        # close() would wait for its tasks; asyncio.timeout has no effect in a cancelled task on early Python 3.11
        closing = asyncio.create_task(client._close(fast=True))  # pyright: ignore[reportPrivateUsage]
        await asyncio.wait((closing,), timeout=CLOSE_S)
        if not closing.done():
            closing.cancel()
            self._fault = self._fault or "the connection does not close"
        elif not closing.cancelled() and (error := closing.exception()):
            self._fault = self._fault or _words(error)

    def _take(self, workers: Mapping[str, Any]) -> None:
        links: dict[str, Link] = {}
        strangers: dict[str, str] = {}
        for address, fields in workers.items():
            if not self._may_ask(address):
                strangers[address] = "has an unencrypted address; prompts are not sent there"
                continue
            try:
                worker = fit(fields, _Worker)
            except UNDECODABLE:
                worker = _Worker()
            if worker.subdeck is None:
                strangers[address] = NO_SUBDECK
            elif worker.status == "running" and len(links) == MOST_WORKERS:
                strangers[address] = f"is ignored: at most {MOST_WORKERS} workers are used"
            elif worker.status == "running":
                slots = max(1, int(worker.resources.get("subdeck", 1)))
                labels = {label: count for label, count in worker.resources.items() if label != "subdeck"}
                links[address] = Link(address, worker.subdeck.name, slots, labels, self._why_not(address))
        self._links, self._strangers = links, strangers
        self._indirect = {address: until for address, until in self._indirect.items() if address in links}

    def _may_ask(self, address: str) -> bool:
        """Return whether an address is protected as well as the scheduler's: prompts and keys are sent there."""
        if not is_address(address):
            return False
        return address.startswith("tls://") if self._address.startswith("tls://") else is_loopback(address)

    def _why_not(self, key: str) -> str:
        """Return why a worker cannot start runs; empty if it can."""
        return _out_of_way(key) if key in self._indirect and not self._settings.relay_secrets else ""

    async def _ask(self, client: Client, key: str, verb: Verb, message: bytes) -> object:
        asked: dict[str, Any] = {"op": "subdeck", "verb": verb.value, "message": message}
        only_directly = verb in SECRETS and not self._settings.relay_secrets
        if only_directly or self._indirect.get(key, 0.0) < time.monotonic():
            try:
                comm = await client.rpc.connect(key, timeout=CONNECT_S)
            except (OSError, TimeoutError):
                self._indirect[key] = time.monotonic() + DIRECT_AGAIN_S
                self._note_way(key)
            else:
                self._indirect.pop(key, None)
                self._note_way(key)
                try:
                    return await send_recv(comm, **asked)
                finally:
                    client.rpc.reuse(key, comm)
        if only_directly:
            raise OutOfReach(_out_of_way(key))
        scheduler: Any = client.scheduler
        answers: dict[str, object] = await scheduler.broadcast(msg=asked, workers=[key])
        return answers.get(key)

    def _note_way(self, key: str) -> None:
        """Update a worker's link at once if it can start runs now, or no longer can."""
        link, why_not = self._links.get(key), self._why_not(key)
        if link and link.why_not != why_not:
            self._links = {**self._links, key: replace(link, why_not=why_not)}

    # --- the tickets --------------------------------------------------------------------------------------------------

    def _settle(self) -> None:
        """Request missing tickets, and withdraw those no longer wanted."""
        client = self._client
        if client is None or client.status != "running":
            return
        for run in [run for run, ticket in self._tickets.items() if self._is_void(run, ticket)]:
            self._tickets.pop(run).future.release()
        now = time.monotonic()
        for run, wish in self._wishes.items():
            if not self._links or (wish.host and wish.host not in self._links):
                continue
            ticket = self._tickets.get(run)
            if ticket is not None:
                if ticket.future.status == "pending" or now - ticket.asked <= AGAIN_S:
                    continue
                ticket.future.release()
            self._tickets[run] = _Ticket(self._submit(client, run, wish), wish, now)

    def _is_void(self, run: str, ticket: _Ticket) -> bool:
        wish = self._wishes.get(run)
        if wish is None:
            return True
        bound = ticket.wish.host
        return bool(bound) and (bound not in self._links or (bool(wish.host) and bound != wish.host))

    def _submit(self, client: Client, run: str, wish: Wish) -> Future[Any]:
        self._asked += 1
        workers = [wish.host] if wish.host else list(self._links) if self._strangers else None
        return client.submit(
            self._function,
            self._relay,
            run,
            key=f"subdeck-{run}-{os.getpid()}-{self._asked}",
            resources={"subdeck": 1, **wish.needs},
            retries=0,
            pure=False,
            workers=workers,
            allow_other_workers=False,
        )


def _accept_only_tickets(client: Any) -> None:
    """Ignore all unrequested reports of the scheduler except those about tickets. Call it before the client connects.

    dask's own table also accepts objects to print, to warn with or to use as a type, each of them pickled.
    """
    handlers: dict[str, Callable[..., object]] = client._stream_handlers

    def done(key: object = None, **_: object) -> None:
        handlers["key-in-memory"](key=key)

    def failed(key: object = None, **_: object) -> None:
        handlers["task-erred"](key=key, exception=_frames.UNOPENED)

    plain = {op: handlers[op] for op in ("lost-data", "cancelled-keys", "task-retried", "restart")}

    def ignored(**_: object) -> None:
        """Ignore the interval that the scheduler returns for each heartbeat. One heartbeat every 5 s is rare enough."""

    replacements = {"key-in-memory": done, "task-erred": failed, "adjust-heartbeat-interval": ignored}
    client._stream_handlers = plain | replacements


def _out_of_way(key: str) -> str:
    way = "is reachable only through the scheduler, and hosts.relay_secrets does not allow prompts there"
    return f"{one_line(key, 100)} {way}"


def _words(error: BaseException) -> str:
    """Describe an error in a clause for a person, by its cause if that is a TLS error."""
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, ssl.SSLError):
            why = one_line(getattr(cause, "verify_message", "") or cause.reason or str(cause), 200)
            problem = (
                "a certificate has expired"
                if "expired" in why.lower()
                else "the certificates come from different authorities"
            )
            return f"{problem} ({why})"
        cause = cause.__cause__ or cause.__context__
    if isinstance(error, TimeoutError) and not str(error):
        return "it takes too long"
    return one_line(str(error) or type(error).__name__, 300)


# --- tickets ---------------------------------------------------------------------------------------------------------


def make_ticket() -> Callable[[str, str], Any]:
    """Return the coroutine function of tickets, which takes a relay's id and a run's.

    A nested function is pickled by value, so neither the scheduler nor a worker without subdeck imports this module.
    """

    async def ticket(relay: str, run: str) -> str:
        import sys

        preload = sys.modules.get("subdeck.core.hosts.dask.preload")
        if preload is None:
            return "no subdeck here"
        answer: str = await preload.hold(relay, run)
        return answer

    ticket.__annotations__.clear()
    return ticket
