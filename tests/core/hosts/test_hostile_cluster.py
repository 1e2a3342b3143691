"""With a hostile dask scheduler and host, the user's process runs none of their code, and continues."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from subdeck.core import paths
from subdeck.core.config.host_settings import HostsSettings
from subdeck.core.hosts._carrier import OutOfReach, Wish
from subdeck.core.hosts.dask import carrier as carrier_module
from subdeck.core.hosts.dask.carrier import DaskCarrier
from subdeck.core.hosts.protocol import Verb
from subdeck.core.hosts.relay.relay import relay_id
from subdeck.core.paths import Project

from tests.core.hosts.clusters import UP_S, carrying, may_drop_a_connection
from tests.core.hosts.hostile_cluster import HONEST, SPOOL
from tests.core.hosts.hosting import until
from tests.core.hosts.teller import Told, relay

pytestmark = [pytest.mark.processes, may_drop_a_connection]


@pytest.fixture(autouse=True)
def soon(monkeypatch: pytest.MonkeyPatch) -> None:
    """Retry failures at once."""
    for name in ("FIRST_WAIT_S", "LONGEST_WAIT_S", "LOOK_S", "AGAIN_S"):
        monkeypatch.setattr(carrier_module, name, 0.02)


@pytest.fixture
def planted(tmp_path: Path) -> Path:
    """Directory for the files of unpickled objects."""
    directory = tmp_path / "planted"
    directory.mkdir()
    return directory


@asynccontextmanager
async def cluster(*what: str) -> AsyncIterator[str]:
    """Start a hostile cluster; yield the address of its scheduler."""
    argv = [sys.executable, "-m", "tests.core.hosts.hostile_cluster", *what]
    root = Path(__file__).parents[3]
    kept = subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, cwd=root)
    try:
        assert kept.stdout is not None
        address = (await asyncio.to_thread(kept.stdout.readline)).decode().strip()
        assert address.startswith("tcp://127.0.0.1:")
        yield address
    finally:
        kept.kill()
        kept.communicate()


@asynccontextmanager
async def hostile(what: str, planted: Path) -> AsyncIterator[DaskCarrier]:
    """Run a carrier connected to such a cluster, once it reports an honest host."""
    async with cluster(what, str(planted)) as address, carrying(HostsSettings(scheduler=address)) as carrier:
        yield carrier


async def honest_answer(carrier: DaskCarrier) -> list[str]:
    """Ask until the host answers correctly; return the faults before."""
    faults: list[str] = []
    while True:
        await until(lambda: carrier.links, "a host")
        (key,) = carrier.links
        try:
            answer = await carrier.call(key, Verb.START, b"", 0.5)
        except OutOfReach as error:
            faults.append(str(error))
        else:
            assert HONEST.encode() == answer
            return faults


@pytest.mark.parametrize("what", ["identity", "answer", "stream"])
async def test_no_object_of_a_peer_is_opened(planted: Path, what: str) -> None:
    """No object is unpickled, in any way that dask has to send one to a client."""
    async with hostile(what, planted) as carrier:
        if what == "stream":
            carrier.want({"x": Wish("x")})
            await until(lambda: carrier._asked > 5, "tickets that the scheduler says have failed")
        faults = await honest_answer(carrier)
    assert [] == list(planted.iterdir())
    if what == "answer":
        assert "boom" in "\n".join(faults)
    assert "distributed.cli.dask_ssh" not in sys.modules


async def test_what_a_scheduler_says_wrong(planted: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """An answer with the wrong type or size, or without an end, costs a connection; the next good one counts."""
    async with hostile("identities", planted) as carrier:
        assert {"h1"} == {link.name for link in carrier.links.values()}
        await honest_answer(carrier)
    assert ("", "") == capfd.readouterr()


async def test_what_a_host_says_wrong(planted: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """An answer with the wrong type or size, or without an end, is rejected and reported in one plain line."""
    async with hostile("answers", planted) as carrier:
        faults = await honest_answer(carrier)
    assert len(faults) > 20
    assert not [fault for fault in faults if "\x1b" in fault or len(fault) > 500 or "\n" in fault]
    assert "longer than" in "\n".join(faults)
    assert ("", "") == capfd.readouterr()


async def test_a_host_says_nothing_of_runs_that_it_never_had(planted: Path, project: Project) -> None:
    """A claim to another host's run, or to one that never existed, only has the host asked to end it."""
    carrier = DaskCarrier(HostsSettings(), relay_id(project))
    run = Told(project, carrier)
    before = contents(run.dir)
    async with cluster("claims", str(planted), run.id) as address:
        carrier = DaskCarrier(HostsSettings(scheduler=address), relay_id(project))
        async with relay(project, carrier) as found:
            host = await until(lambda: found._hosts.get(SPOOL), "the host to be heard", UP_S)
            last_seen = host.last_seen
            await until(lambda: host.last_seen > last_seen + 1, "it to be heard again and again")
    assert run.result is None
    assert before == contents(run.dir)
    assert not os.path.lexists(project.run_dir("20260101-000000-abcdef"))
    assert {path.name for path in planted.iterdir()} <= {"asked-stop", "asked-ack"}


def contents(root: Path) -> dict[str, bytes]:
    """Return the files of a run, except those for the relay's notes about its host."""
    told = (paths.PLACE, paths.RUNNER)
    return {path.name: path.read_bytes() for path in root.iterdir() if path.is_file() and path.name not in told}


def test_who_speaks_with_a_cluster_unpickles_nothing(planted: Path) -> None:
    """If any version of dask unpickles an object after all, that fails before any of its code has run."""
    code = (
        "import pickle, sys\n"
        "import subdeck.core.hosts.dask.carrier\n"
        "import distributed.protocol\n"
        "from tests.core.hosts.hostile_cluster import Evil\n"
        "content = pickle.dumps([Evil(sys.argv[1])])\n"
        "for loads in (pickle.loads, pickle._loads, distributed.protocol.pickle.loads):\n"
        "    try:\n"
        "        loads(content)\n"
        "    except Exception as error:\n"
        "        print(error)\n"
    )
    argv = [sys.executable, "-c", code, str(planted / "evil")]
    done = subprocess.run(argv, cwd=Path(__file__).parents[3], capture_output=True, text=True)
    assert (["this process unpickles nothing"] * 3, "") == (done.stdout.splitlines(), done.stderr)
    assert [] == list(planted.iterdir())
