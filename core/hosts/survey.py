"""Ask all hosts once for a report about themselves, without a relay."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence

from msgspec import Struct

from ..config.host_settings import HostsSettings
from ..errors import SubdeckError
from ..text.plain import one_line
from ._carrier import NOT_YET, Carrier, Link, OutOfReach
from .protocol import Answer, BadMessage, Examine, Examined, Verb, decode_answer, encode, other_version

RELAY = "0" * 12
"""Relay id of the survey, which has no runs."""
NO_EXTRA = 'the packages for a cluster are missing: pip install "subdeck[hosts]"'
SETTLE_S = 0.3
"""Seconds after the last new host until the search ends."""
LOOK_S = 0.02


class Surveyed(Struct, frozen=True, kw_only=True):
    """One host's report."""

    link: Link
    carrier: str
    """`dask` or `ssh`."""
    examined: Examined | None = None
    """None if it did not answer."""
    fault: str = ""
    """Why it did not answer, or why it cannot be used although it did."""
    seconds: float = 0.0
    """Response time."""
    clock_ahead: float = 0.0
    """Seconds by which its clock is ahead of this machine's, to within the response time."""


class Survey(Struct, frozen=True):
    hosts: tuple[Surveyed, ...]
    """Sorted by name."""
    faults: tuple[str, ...] = ()
    """Why hosts may be missing."""


def survey(settings: HostsSettings, asked: Examine, *, patience: float, answer_s: float = 10.0) -> Survey:
    """Ask every configured host once; finding them takes at most `patience` seconds."""
    made, faults = carriers(settings)
    result = asyncio.run(_survey(made, asked, patience, answer_s)) if made else Survey(())
    return Survey(result.hosts, (*faults, *result.faults))


def carriers(settings: HostsSettings) -> tuple[tuple[Carrier, ...], tuple[str, ...]]:
    """Return the carriers for the configured hosts, and why some may be missing."""
    made: list[Carrier] = []
    faults: list[str] = []
    if settings.scheduler:
        try:
            from .dask.carrier import DaskCarrier  # imports distributed, which ssh does not need

            made.append(DaskCarrier(settings, RELAY))
        except ImportError:
            faults.append(f"dask: {NO_EXTRA}")
        except SubdeckError as error:
            faults.append(f"dask: {error.advice}")
    if settings.ssh:
        from .ssh.carrier import SshCarrier

        made.append(SshCarrier(settings, RELAY))
    return tuple(made), tuple(faults)


async def _survey(made: Sequence[Carrier], asked: Examine, patience: float, answer_s: float) -> Survey:
    running = [asyncio.create_task(carrier.run()) for carrier in made]
    try:
        await _settled(made, patience)
        asking = (_ask(carrier, link, asked, answer_s) for carrier in made for link in tuple(carrier.links.values()))
        hosts = await asyncio.gather(*asking)
        faults = tuple(f"{carrier.name}: {one_line(carrier.fault, 1000)}" for carrier in made if carrier.fault)
        return Survey(tuple(sorted(hosts, key=lambda host: (host.link.name, host.link.key))), faults)
    finally:
        for task in running:
            task.cancel()
        await asyncio.gather(*running, return_exceptions=True)


async def _settled(made: Sequence[Carrier], patience: float) -> None:
    """Wait until each carrier has found its hosts or reports a fault."""
    deadline = time.monotonic() + patience
    host_count, since = -1, time.monotonic()
    while (now := time.monotonic()) < deadline:
        if host_count != (host_count := sum(len(carrier.links) for carrier in made)):
            since = now
        if now - since >= SETTLE_S and all(_has_tried(carrier) for carrier in made):
            return
        await asyncio.sleep(LOOK_S)


def _has_tried(carrier: Carrier) -> bool:
    return bool(carrier.links or carrier.fault) and NOT_YET not in carrier.fault


async def _ask(carrier: Carrier, link: Link, asked: Examine, timeout: float) -> Surveyed:
    began, wall = time.monotonic(), time.time()
    try:
        answer = await carrier.call(link.key, Verb.EXAMINE, encode(asked), timeout)
    except OutOfReach as error:
        return Surveyed(link=link, carrier=carrier.name, fault=one_line(str(error), 500))
    try:
        examined = decode_answer(Verb.EXAMINE, answer)
    except BadMessage as error:
        return Surveyed(link=link, carrier=carrier.name, fault=_refusal(answer) or one_line(str(error), 500))
    took = time.monotonic() - began
    return Surveyed(
        link=link,
        carrier=carrier.name,
        examined=examined,
        fault=other_version(examined.protocol, examined.facts.subdeck),
        seconds=took,
        clock_ahead=examined.clock - (wall + took / 2) if examined.clock else 0.0,
    )


def _refusal(answer: bytes) -> str:
    """Return the reason of a refusal; empty if the answer is not one."""
    try:
        refusal: Answer = decode_answer(Verb.HOLD, answer)
    except BadMessage:
        return ""
    return one_line(refusal.why or refusal.said, 500)
