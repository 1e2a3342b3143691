"""Hosts of a dask cluster: access, secrets, tickets, and the death of its parts."""

from __future__ import annotations

import asyncio
import logging
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import cloudpickle
import pytest
from distributed import Client
from distributed.security import Security
from msgspec.structs import replace
from subdeck.core.config.effective_hosts import TryCluster, effective_hosts
from subdeck.core.config.host_settings import HostsSettings, TlsFiles
from subdeck.core.hosts._carrier import Link, OutOfReach, Wish
from subdeck.core.hosts.dask import carrier as carriers
from subdeck.core.hosts.dask.carrier import MOST_WORKERS, DaskCarrier, make_ticket
from subdeck.core.hosts.dask.certificates import make_keys
from subdeck.core.hosts.protocol import Answer, Said, Verb
from subdeck.core.system import processes

from tests.core.hosts.clusters import UP_S, asking, carrying, may_drop_a_connection, shared_trial, told_of, trial
from tests.core.hosts.hosting import RELAY, Asking, host_meta, until
from tests.isolation import new_root

pytestmark = [pytest.mark.processes, may_drop_a_connection]

NOBODY = "tls://127.0.0.1:9"
PERIODS = {"LOOK_S": 0.05, "FIRST_WAIT_S": 0.05, "LONGEST_WAIT_S": 0.2}
SLOTS = 20
"""More than all tests of a module hold at a time: a leftover slot is held for a while."""


@pytest.fixture(autouse=True)
def soon(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have the carrier check often, and retry failures at once."""
    for name, seconds in PERIODS.items():
        monkeypatch.setattr(carriers, name, seconds)


@pytest.fixture(scope="module")
def shared() -> Iterator[TryCluster]:
    """A cluster of two hosts, reset after each test."""
    root = new_root()
    try:
        with shared_trial(root, 2, slots=SLOTS) as cluster:
            yield cluster
    finally:
        shutil.rmtree(root, ignore_errors=True)


@pytest.fixture
def cluster(shared: TryCluster, world: Path) -> TryCluster:
    return told_of(shared)


async def offering(hosts: Mapping[str, Asking], run_id: str) -> str:
    """Return the key of the host that offers a run."""
    deadline = time.monotonic() + UP_S
    while time.monotonic() < deadline:
        for key, relay in hosts.items():
            if run_id in (await relay.pull(wait=0.05)).offers:
                return key
    raise AssertionError("no host offered the run")


def parts_of(kept: subprocess.Popen[bytes], module: str) -> list[int]:
    """Return the pids of a cluster's schedulers or workers."""
    pids = processes.descendants(kept.pid)
    return [pid for pid in pids if f"distributed.cli.{module}" in processes.arguments(pid)]


async def test_a_ticket_brings_a_run_to_a_host(cluster: TryCluster, monkeypatch: pytest.MonkeyPatch) -> None:
    """A ticket request becomes an offer of one host; the run started there is mirrored, and its ticket ends with
    it.

    A heartbeat whose answer the scheduler sends first causes no message in the terminal.
    """
    said: list[str] = []
    monkeypatch.setattr(logging.getLogger("distributed.client"), "handle", lambda record: said.append(record.msg))
    async with carrying(links=2) as carrier:
        assert carrier._client is not None
        carrier._client._heartbeat()
        assert {"h1", "h2"} == {link.name for link in carrier.links.values()}
        assert {SLOTS} == {link.slots for link in carrier.links.values()}
        hosts = {key: await asking(carrier, key) for key in carrier.links}
        meta = host_meta()
        carrier.want({meta.run_id: Wish(meta.run_id)})
        offered = await offering(hosts, meta.run_id)
        await hosts[offered].begin("say Hello.", "answer 42", meta=meta)
        result = await hosts[offered].pull_end(meta.run_id)
        assert ("completed", "42") == (result.status, result.final_text)
        ticket = carrier._tickets[meta.run_id].future
        await until(lambda: ticket.status == "finished", "the ticket to end")
        carrier.want({})
        assert Answer(Said.TOLD) == await hosts[offered].ack(meta.run_id)
        assert "" == carrier.fault
        assert [] == said


async def test_a_bound_ticket_goes_to_its_host(cluster: TryCluster) -> None:
    """A ticket bound to a host is offered only there; a ticket for a missing host is offered nowhere."""
    async with carrying(links=2) as carrier:
        hosts = {key: await asking(carrier, key) for key in carrier.links}
        for bound in hosts:
            runs = [host_meta().run_id for _ in range(3)]
            carrier.want({run: Wish(run, host=bound) for run in runs} | {"x": Wish("x", host=NOBODY)})
            for run in runs:
                assert bound == await offering({bound: hosts[bound]}, run)
            assert "x" not in carrier._tickets
            for other in hosts.keys() - {bound}:
                assert not set(runs) & set((await hosts[other].pull(wait=0)).offers)


async def test_a_ticket_taken_back_ends_no_run(cluster: TryCluster, tmp_path: Path) -> None:
    """A run continues when its ticket is withdrawn and its carrier is gone; the next carrier finds it."""
    async with carrying(links=2) as carrier:
        key = min(carrier.links)
        relay, meta = await asking(carrier, key), host_meta()
        carrier.want({meta.run_id: Wish(meta.run_id, host=key)})
        await offering({key: relay}, meta.run_id)
        await relay.begin("say Working.", f"wait-for {tmp_path}/go", "answer 7", meta=meta)
        await relay.pull_until(lambda: "Working" in relay.text(meta.run_id, "events.jsonl"), "its first words")
        carrier.want({})
        assert not carrier._tickets
    async with carrying(links=2) as carrier:
        relay = await asking(carrier, key)
        relay.files[meta.run_id] = {}
        (tmp_path / "go").touch()
        assert "7" == (await relay.pull_end(meta.run_id)).final_text


async def test_parts_may_die(tmp_path: Path) -> None:
    """If scheduler and worker are killed, the run continues, and its reconnected host can be asked again."""
    with trial() as kept:
        async with carrying() as carrier:
            (key,) = carrier.links
            relay, meta = await asking(carrier, key), host_meta()
            await relay.begin(f"bash echo x >> {tmp_path}/starts", f"wait-for {tmp_path}/go", "answer 7", meta=meta)
            carrier.want({meta.run_id: Wish(meta.run_id, host=key)})
            for module in ("dask_worker", "dask_scheduler"):
                (pid,) = parts_of(kept, module)
                before = set(carrier.links)
                os.kill(pid, signal.SIGKILL)
                await until(lambda before=before: set(carrier.links) - before, f"a host after {module}", 60)
                (key,) = set(carrier.links) - before
            relay.agent = (await asking(carrier, key)).agent
            carrier.want({meta.run_id: Wish(meta.run_id, host=key)})
            assert key == carrier._tickets[meta.run_id].wish.host
            (tmp_path / "go").touch()
            assert "7" == (await relay.pull_end(meta.run_id)).final_text
            assert "x\n" == (tmp_path / "starts").read_text()


async def test_a_worker_without_subdeck_is_told(cluster: TryCluster, tmp_path: Path) -> None:
    """A worker without subdeck is not a host and gets no ticket, even if it announces resources."""
    settings = effective_hosts(HostsSettings())
    tls = settings.tls
    argv = [sys.executable, "-P", "-m", "distributed.cli.dask_worker", str(settings.scheduler), "--no-nanny"]
    argv += ["--resources", "subdeck=100", "--nthreads", "100", "--local-directory", str(tmp_path)]
    argv += ["--tls-ca-file", tls.ca, "--tls-cert", tls.cert, "--tls-key", tls.key, "--no-dashboard"]
    stranger = subprocess.Popen(argv, stderr=subprocess.DEVNULL, cwd=tmp_path)
    try:
        async with carrying(links=2) as carrier:
            await until(lambda: "has no subdeck" in carrier.fault, "the stranger to be told of", 60)
            assert ["h1", "h2"] == sorted(link.name for link in carrier.links.values())
            hosts = {key: await asking(carrier, key) for key in carrier.links}
            runs = [host_meta().run_id for _ in range(4)]
            carrier.want({run: Wish(run) for run in runs})
            for run in runs:
                assert await offering(hosts, run)
            with pytest.raises(OutOfReach, match="is not in the cluster"):
                await carrier.call(next(iter(carrier._strangers)), Verb.PULL, b"", 5)
    finally:
        stranger.kill()
        stranger.wait()


async def test_secrets_go_to_their_host_alone(cluster: TryCluster, monkeypatch: pytest.MonkeyPatch) -> None:
    """If a host is reachable only through the scheduler, no prompt is sent that way unless the user allows it."""
    settings = effective_hosts(HostsSettings())
    for allowed in (False, True):
        async with carrying(replace(settings, relay_secrets=allowed), links=2) as carrier:
            key = min(carrier.links)
            assert carrier._client is not None
            monkeypatch.setattr(carrier._client.rpc, "connect", no_way(carrier._client.rpc.connect, key))
            relay = await asking(carrier, key)
            assert relay.agent.spool_id
            if allowed:
                run_id = await relay.begin("answer 42")
                assert "42" == (await relay.pull_end(run_id)).final_text
            else:
                with pytest.raises(OutOfReach, match="only through the scheduler"):
                    await relay.begin("answer 42")
                assert "relay_secrets" in carrier.fault
                assert carrier.links[key].why_not == carrier.fault
                monkeypatch.undo()
                run_id = await relay.begin("answer 42")
                assert "42" == (await relay.pull_end(run_id)).final_text
                assert "" == carrier.fault == carrier.links[key].why_not


def no_way(connect: Any, blocked: str) -> Any:
    async def instead(address: str, timeout: float | None = None) -> Any:
        if address == blocked:
            raise OSError("no route to host")
        return await connect(address, timeout=timeout)

    return instead


async def test_only_members_are_let_in(cluster: TryCluster, tmp_path: Path) -> None:
    """Clients without certificates, or with another authority's, get nothing from scheduler or worker."""
    other = make_keys(str(tmp_path / "other"))
    foreign = Security(
        require_encryption=True, tls_ca_file=other.ca, tls_client_cert=other.cert, tls_client_key=other.key
    )
    async with carrying(links=2) as carrier:
        worker = min(carrier.links)
        for address in (str(effective_hosts(HostsSettings()).scheduler), worker):
            for place, security in ((address, foreign), (address.replace("tls:", "tcp:"), Security())):
                with pytest.raises((OSError, TimeoutError)):
                    await Client(place, security=security, asynchronous=True, timeout=2, set_as_default=False)
    settings = replace(effective_hosts(HostsSettings()), tls=TlsFiles(other.ca, other.cert, other.key))
    async with carrying(settings, links=0) as carrier:
        await until(lambda: carrier.fault, "the refusal")
        assert "certificates come from different authorities" in carrier.fault
        assert {} == carrier.links


async def test_what_is_wrong_is_said_in_words(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A missing scheduler, missing certificates and missing encryption each give a sentence, and no hosts."""
    monkeypatch.setattr(carriers, "CONNECT_S", 1.0)  # no answer ever comes from there
    keys = make_keys(str(tmp_path / "keys"))
    for address, tls, words in (
        (NOBODY, keys, f"no answer from {NOBODY}"),
        (NOBODY, TlsFiles(keys.ca, keys.cert, str(tmp_path / "gone")), "gone: No such file"),
        ("tcp://10.1.2.3:8786", TlsFiles(), "is not encrypted"),
    ):
        async with carrying(HostsSettings(scheduler=address, tls=tls), links=0) as carrier:
            await until(lambda carrier=carrier: carrier.fault, "the fault")
            assert words in carrier.fault
            carrier.want({"x": Wish("x")})
            with pytest.raises(OutOfReach):
                await carrier.call("tls://127.0.0.1:1", Verb.PULL, b"", 1)


def test_a_ticket_needs_nothing_of_ours(tmp_path: Path) -> None:
    """A ticket travels by value: without subdeck it reports that, and the scheduler does not need subdeck either."""
    (tmp_path / "ticket").write_bytes(cloudpickle.dumps(make_ticket()))
    (tmp_path / "cloudpickle").symlink_to(os.path.dirname(cloudpickle.__file__))
    code = (
        "import asyncio, pickle, sys\n"
        "ticket = pickle.load(open(sys.argv[1], 'rb'))\n"
        "print(asyncio.run(ticket('0123456789ab', 'a run')))"
    )
    command = [sys.executable, "-S", "-P", "-c", code, tmp_path / "ticket"]  # -S: no installed packages
    done = subprocess.run(command, env={"PYTHONPATH": str(tmp_path)}, capture_output=True, text=True)
    assert ("no subdeck here\n", "") == (done.stdout, done.stderr)


@pytest.mark.parametrize(
    "told",
    [
        {},
        {"subdeck": None},
        {"subdeck": {"name": "../h1"}},
        {"subdeck": {"name": "h1\x1b[2J"}},
        {"subdeck": {"name": "x" * 65}},
        {"subdeck": {"name": "h1"}, "resources": {"subdeck": "many"}},
        {"subdeck": {"name": "h1"}, "resources": {"subdeck": float("inf")}},
        {"subdeck": {"name": "h1"}, "status": 7},
        {"subdeck": {"name": "h1"}, "resources": {"subdeck": -1}},
        ["subdeck"],
    ],
    ids=repr,
)
def test_odd_workers_are_no_hosts(told: Any) -> None:
    """A worker with an odd description is a valid host, or is rejected in plain words."""
    carrier = DaskCarrier(HostsSettings(scheduler=NOBODY), RELAY)
    fit = {"status": "running", "subdeck": {"name": "h2"}, "resources": {"subdeck": 2, "gpu": 1}}
    good = "tls://10.0.0.1:2"
    carrier._take({"tls://odd:1": {"status": "running", **told} if isinstance(told, dict) else told, good: fit})
    assert {good: Link(good, "h2", 2, {"gpu": 1})} == carrier.links
    assert "worker tls://odd:1 has no subdeck" == carrier.fault


@pytest.mark.parametrize(
    ("scheduler", "address", "is_host"),
    [
        ("tls://10.0.0.1:1", "tls://10.0.0.2:2", True),
        ("tls://10.0.0.1:1", "tls://[::1]:2", True),
        ("tls://10.0.0.1:1", "tcp://10.0.0.2:2", False),
        ("tls://10.0.0.1:1", "tcp://127.0.0.1:2", False),
        ("tcp://127.0.0.1:1", "tcp://127.0.0.1:2", True),
        ("tcp://127.0.0.1:1", "tcp://10.0.0.2:2", False),
        ("tcp://127.0.0.1:1", "tcp://127.0.0.1.evil:2", False),
        ("tcp://127.0.0.1:1", "inproc://127.0.0.1/1/1", False),
        ("tcp://127.0.0.1:1", "ws://127.0.0.1:2", False),
        ("tls://10.0.0.1:1", "tls://10.0.0.2:2\x1b[2J", False),
        ("tls://10.0.0.1:1", "../x", False),
    ],
)
def test_prompts_go_nowhere_unprotected(scheduler: str, address: str, is_host: bool) -> None:
    """A worker whose address is less protected than the scheduler's is not a host, even if the scheduler claims so."""
    carrier = DaskCarrier(HostsSettings(scheduler=scheduler), RELAY)
    carrier._take({address: {"status": "running", "subdeck": {"name": "h2"}}})
    assert is_host == bool(carrier.links)
    assert is_host == (carrier.fault == "")
    assert "\x1b" not in carrier.fault


def test_workers_are_bounded() -> None:
    """Only a bounded number of workers is used; ignoring more is reported."""
    carrier = DaskCarrier(HostsSettings(scheduler=NOBODY), RELAY)
    told = {"status": "running", "subdeck": {"name": "h2"}}
    carrier._take({f"tls://10.0.0.1:{port}": told for port in range(1, 2 * MOST_WORKERS)})
    assert MOST_WORKERS == len(carrier.links)
    assert f"is ignored: at most {MOST_WORKERS} workers are used" in carrier.fault


def test_a_worker_that_goes_is_no_host() -> None:
    """A worker that closes, or is paused for lack of memory, is not a host, but is not reported as a stranger."""
    carrier = DaskCarrier(HostsSettings(scheduler=NOBODY), RELAY)
    for status in ("closing", "closing_gracefully", "paused"):
        carrier._take({"tls://10.0.0.1:2": {"status": status, "subdeck": {"name": "h2"}}})
        assert ({}, "") == (carrier.links, carrier.fault)


async def test_the_loop_goes_on_while_it_connects(tmp_path: Path) -> None:
    """Cancelling a connecting carrier ends it at once."""
    keys = make_keys(str(tmp_path / "keys"))
    async with carrying(HostsSettings(scheduler=NOBODY, tls=keys), links=0):
        await asyncio.sleep(0)
