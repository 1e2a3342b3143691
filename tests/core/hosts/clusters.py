"""Dask clusters for tests: the cluster of `subdeck hosts try`, and a carrier connected to it."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
from collections.abc import AsyncIterator, Iterator
from contextlib import ExitStack, asynccontextmanager, contextmanager
from pathlib import Path

import pytest
from subdeck.core.config.effective_hosts import TryCluster, effective_hosts, kept_cluster, publish
from subdeck.core.config.host_settings import HostsSettings
from subdeck.core.hosts.dask.carrier import DaskCarrier
from subdeck.core.hosts.protocol import Verb
from subdeck.core.system import processes

from tests import isolation
from tests.core.command_line import SUBDECK
from tests.core.hosts.hosting import RELAY, Asking, until
from tests.factories import write_settings
from tests.waiting import wait_until

UP_S = 60.0
"""Seconds, on a busy machine."""
may_drop_a_connection = pytest.mark.filterwarnings(r"ignore:unclosed <(ssl\.SSLS|socket\.s)ocket:ResourceWarning")
"""distributed leaves a connection open if the attempt to connect times out (after 1 s) or is cancelled in the same pass
of the event loop that makes the connection. That happens on a busy machine, and the next event loop reports it."""


@contextmanager
def trial(hosts: int = 1, *, slots: int = 4, cwd: Path | None = None) -> Iterator[subprocess.Popen[bytes]]:
    """Run a trial cluster, published before the test begins; it is ended by a signal if it is still running."""
    write_settings()
    kept = subprocess.Popen(
        [*SUBDECK, "hosts", "try", str(hosts), "--slots", str(slots)],
        cwd=cwd,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    try:
        wait_until(lambda: kept_cluster() or kept.poll() is not None, "a cluster to try", UP_S)
        assert kept.poll() is None, kept.communicate()[1].decode()
        yield kept
    finally:
        kept.send_signal(signal.SIGTERM)
        try:
            kept.communicate(timeout=60)
        finally:
            kept.kill()


@contextmanager
def shared_trial(root: Path, hosts: int, *, slots: int = 4) -> Iterator[TryCluster]:
    """Run a trial cluster for many tests, in its own home; a test joins it by `told_of`."""
    before = dict(os.environ)
    isolation.enter(isolation.variables(root) | {isolation.MARKER: before[isolation.MARKER]})
    with ExitStack() as stack:
        try:
            kept = stack.enter_context(trial(hosts, slots=slots, cwd=root))
            cluster = kept_cluster()
        finally:
            isolation.enter(before)
        assert cluster is not None
        yield cluster
        below = processes.descendants(kept.pid)
        kept.kill()  # on a polite stop it would wait for relays to fetch the runs that tests have left
        wait_until(lambda: not set(below) & set(processes.living()), "the cluster to go", UP_S)


def told_of(cluster: TryCluster) -> TryCluster:
    """Publish a shared cluster to the commands of this test."""
    write_settings()
    publish(cluster)
    return cluster


@asynccontextmanager
async def carrying(settings: HostsSettings | None = None, *, links: int = 1) -> AsyncIterator[DaskCarrier]:
    """Run a carrier in this process, with at least `links` links."""
    carrier = DaskCarrier(settings or effective_hosts(HostsSettings()), RELAY)
    running = asyncio.create_task(carrier.run())
    try:
        await until(lambda: len(carrier.links) >= links, f"{links} hosts; {carrier.fault}", UP_S)
        yield carrier
    finally:
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)


class FarHost:
    """A host at the other end of a carrier, in the shape of an agent for `Asking`."""

    def __init__(self, carrier: DaskCarrier, key: str) -> None:
        self.carrier = carrier
        self.key = key
        self.spool_id = ""

    async def answer(self, verb: Verb, message: bytes) -> bytes:
        return await self.carrier.call(self.key, verb, message, 20)


async def asking(carrier: DaskCarrier, key: str) -> Asking:
    """Return a relay's side that talks to that host."""
    host = FarHost(carrier, key)
    relay = Asking(host)  # type: ignore[arg-type]
    host.spool_id = (await relay.pull(wait=0)).spool
    return relay
