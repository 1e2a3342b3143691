"""Hosts reached by ssh only, each by a real sshd."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from subdeck.core import paths
from subdeck.core.config.host_settings import HostsSettings
from subdeck.core.hosts._carrier import OutOfReach, Wish
from subdeck.core.hosts.protocol import PROTOCOL, Answer, Examine, Hold, Said, Verb, decode_answer, encode
from subdeck.core.hosts.ssh._connection import AgentHello
from subdeck.core.hosts.ssh._frames import HELLO, MAGIC, Frame, packed
from subdeck.core.hosts.ssh.carrier import SshCarrier
from subdeck.core.system import processes

from tests.core.hosts.hosting import RELAY, AskingThere, until
from tests.core.hosts.sshd import SshHost, with_another_key
from tests.waiting import wait_until

pytestmark = [pytest.mark.timeout(180), pytest.mark.usefixtures("soon"), pytest.mark.processes]


class OverSsh:
    """Calls to one host for `Asking`; failed calls are repeated, as a relay does."""

    spool_id = ""

    def __init__(self, carrier: SshCarrier, key: str) -> None:
        self._carrier, self._key = carrier, key

    async def answer(self, verb: Verb, message: bytes) -> bytes:
        while True:
            try:
                return await self._carrier.call(self._key, verb, message, 10.0)
            except OutOfReach:
                await asyncio.sleep(0.05)


@asynccontextmanager
async def carrying(*hosts: str, **settings: Any) -> AsyncIterator[SshCarrier]:
    carrier = SshCarrier(HostsSettings(ssh=hosts, **settings), RELAY)
    running = asyncio.create_task(carrier.run())
    try:
        yield carrier
        assert not running.done()
    finally:
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)


async def reached(carrier: SshCarrier, key: str) -> None:
    await until(lambda: key in carrier.links, f"{key} to be reached; {carrier.fault}")


@pytest.fixture
def h1(world: Path, home: Path) -> Iterator[SshHost]:
    with SshHost(world, "h1") as host:
        host.take_settings()
        yield host


async def test_a_run_goes_to_a_host_and_comes_back(h1: SshHost) -> None:
    """A host reached by ssh reports its overview, takes a run and mirrors the whole run."""
    async with carrying("h1", ssh_slots=5) as carrier:
        await reached(carrier, "h1")
        link = carrier.links["h1"]
        assert ("h1", processes.host(), 5) == (link.key, link.name, link.slots)
        assert "" == carrier.fault
        asking = AskingThere(OverSsh(carrier, "h1"))
        await asking.learn()
        run_id = await asking.begin("say Hello.", "answer 42")
        result = await asking.pull_end(run_id)
        assert ("completed", "42") == (result.status, result.final_text)
        assert asking.last and 5 == asking.last.facts.slots
        assert Answer(Said.TOLD) == await asking.ack(run_id)


async def test_a_cut_leaves_neither_gap_nor_double(h1: SshHost) -> None:
    """However often the connection is lost, the run continues, and its files are mirrored byte for byte."""
    async with carrying("h1") as carrier:
        await reached(carrier, "h1")
        asking = AskingThere(OverSsh(carrier, "h1"))
        await asking.learn()
        run_id = await asking.begin("say-many 500", "wait-for cut", "say-many 500", "answer 42")
        await asking.pull_until(lambda: asking.text(run_id, paths.EVENTS).count("\n") > 100, "its first words")
        for _ in range(2):
            h1.cut()
            await until(lambda: "h1" not in carrier.links, "the carrier to notice")
            assert carrier.fault.startswith("h1: ")
            await reached(carrier, "h1")
        Path("cut").touch()
        pulling = asyncio.create_task(asking.pull_end(run_id))
        h1.cut()
        assert "42" == (await pulling).final_text
        (run_dir,) = h1.home.rglob(f"runs/{run_id}")
        for name, content in asking.files[run_id].items():
            assert (run_dir / name).read_bytes() == content, name
        assert 1000 < asking.files[run_id][paths.EVENTS].count(b"\n")
        assert 1 == len(h1.agents)


async def test_an_agent_that_dies_is_replaced_while_its_runs_go_on(h1: SshHost) -> None:
    """The next connection starts an agent that continues the runs of the killed one."""
    async with carrying("h1") as carrier:
        await reached(carrier, "h1")
        asking = AskingThere(OverSsh(carrier, "h1"))
        await asking.learn()
        run_id = await asking.begin("say Hello.", "wait-for go", "answer 42")
        await asking.pull_until(lambda: "Hello" in asking.text(run_id, paths.EVENTS), "its first words")
        h1.end_agents(signal.SIGKILL)
        Path("go").touch()
        assert "42" == (await asking.pull_end(run_id)).final_text


async def test_a_host_that_comes_back_is_found_again(world: Path, h1: SshHost) -> None:
    """A host that refuses connections is retried, with the reason shown until it is back."""
    async with carrying("h1") as carrier:
        await reached(carrier, "h1")
        h1.stop()
        await until(lambda: "Connection refused" in carrier.fault, "the refusal to be told")
        with pytest.raises(OutOfReach, match="Connection refused"):
            await carrier.call("h1", Verb.EXAMINE, encode(Examine()), 1.0)
        h1.start()
        await reached(carrier, "h1")


async def test_a_call_has_a_time_limit(h1: SshHost) -> None:
    """A call without an answer in time fails, and the connection remains usable."""
    async with carrying("h1") as carrier:
        await reached(carrier, "h1")
        hold = encode(Hold(RELAY, paths.new_run_id()))
        with pytest.raises(OutOfReach, match="no answer within"):
            await carrier.call("h1", Verb.HOLD, hold, 0.2)
        examined = decode_answer(Verb.EXAMINE, await carrier.call("h1", Verb.EXAMINE, encode(Examine()), 20.0))
        assert processes.host() == examined.host


async def test_a_cut_ends_what_is_asked(h1: SshHost) -> None:
    """A waiting call fails at once when the connection is lost, however long its timeout."""
    async with carrying("h1") as carrier:
        await reached(carrier, "h1")
        asked = asyncio.create_task(carrier.call("h1", Verb.HOLD, encode(Hold(RELAY, paths.new_run_id())), 600.0))
        await asyncio.sleep(0)
        h1.cut()
        with pytest.raises(OutOfReach, match="h1: "):
            await asyncio.wait_for(asked, 20)


async def test_tickets_follow_the_wishes(world: Path, home: Path) -> None:
    """Runs are offered by the hosts chosen for them, as long as they are wanted."""
    with SshHost(world, "h1", slots=1) as h1, SshHost(world, "h2", slots=2, banner="Welcome to h2!") as h2:
        async with carrying(h1.name, h2.name) as carrier:
            await reached(carrier, "h1")
            await reached(carrier, "h2")
            assert {"h1": 1, "h2": 2} == {key: link.slots for key, link in carrier.links.items()}
            bound, *free = (paths.new_run_id() for _ in range(5))
            wishes = {run: Wish(run) for run in free} | {bound: Wish(bound, host="h2")}
            asking = {key: AskingThere(OverSsh(carrier, key)) for key in carrier.links}

            async def offers(key: str) -> set[str]:
                return set((await asking[key].pull(wait=0)).offers)

            async def offered(counts: dict[str, int]) -> dict[str, set[str]]:
                found = dict[str, set[str]]()
                for _ in range(200):
                    found = {key: await offers(key) for key in asking}
                    if counts == {key: len(runs) for key, runs in found.items()}:
                        return found
                    await asyncio.sleep(0.05)
                raise AssertionError(f"{found} instead of {counts}")

            carrier.want(wishes)
            found = await offered({"h1": 1, "h2": 2})
            assert bound in found["h2"]
            carrier.want({bound: wishes[bound]})
            assert {"h1": set(), "h2": {bound}} == await offered({"h1": 0, "h2": 1})
            h2.cut()
            assert {"h1": set(), "h2": {bound}} == await offered({"h1": 0, "h2": 1})
            carrier.want({})
            await offered({"h1": 0, "h2": 0})


@pytest.mark.parametrize(
    ("script", "why"),
    [
        ("", "h1: subdeck is not installed there"),
        ('echo "subdeck: unknown command \\"hosts\\"" >&2; exit 2', "h1: subdeck is too old there"),
        (
            r"printf '\n-- subdeck hosts agent --\nno frames at all'; exec cat",
            "h1: cannot read its answer",
        ),
        ("yes", "h1: its login printed more than 64 kB"),
        ("exit 3", "h1: its subdeck process ended with exit code 3"),
    ],
    ids=["none", "old", "other", "endless", "broken"],
)
async def test_a_host_without_subdeck_is_named(world: Path, home: Path, script: str, why: str) -> None:
    """A fault of one host is reported in words, and the other hosts continue."""
    with SshHost(world, "h1", has_subdeck=False) as h1, SshHost(world, "h2"):
        if script:
            h1.write_program(script)
        async with carrying("h1", "h2") as carrier:
            await reached(carrier, "h2")
            await until(lambda: carrier.fault.startswith(why), f"{why}; {carrier.fault}")
            assert ["h2"] == list(carrier.links)


async def test_a_newer_host_is_named(world: Path, h1: SshHost) -> None:
    """A host with another protocol version is not used, and both versions are reported."""
    hello = AgentHello(protocol=PROTOCOL + 6, subdeck="9.9.9", host="h1")
    (h1.home / "hello").write_bytes(MAGIC + packed(Frame(0, HELLO, encode(hello))))
    h1.write_program(f"cat {h1.home}/hello; exec cat")
    async with carrying("h1") as carrier:
        await until(lambda: "subdeck 9.9.9 there uses protocol version 7" in carrier.fault, "the version to be told")


async def test_a_key_that_is_not_known_is_told(world: Path, h1: SshHost) -> None:
    """A refused login reports ssh's reason with the host's name, without asking for a password."""
    with_another_key(world)
    async with carrying("h1") as carrier:
        await until(lambda: "Permission denied (publickey)" in carrier.fault, f"the refusal; {carrier.fault}")
        assert "h1" in carrier.fault


async def test_a_host_key_that_is_not_known_is_told(world: Path, h1: SshHost) -> None:
    """A host with an unknown host key is not connected to, and the fault tells the user how to see why."""
    (world / "known_hosts").unlink()
    async with carrying("h1") as carrier:
        await until(lambda: "its host key is unknown" in carrier.fault, f"the key; {carrier.fault}")


async def test_no_ssh_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without an ssh program the fault reports that, and the carrier continues."""
    monkeypatch.setenv("PATH", "/nowhere")
    async with carrying("h1") as carrier:
        await until(lambda: "cannot start ssh" in carrier.fault, "the fault")


def test_nothing_is_left_behind(world: Path, home: Path) -> None:
    """When the carrier ends, so do ssh and its processes on the host, except the agent."""

    async def come_and_go() -> None:
        async with carrying("h1") as carrier:
            await reached(carrier, "h1")

    with SshHost(world, "h1") as h1:
        asyncio.run(come_and_go())
        wait_until(lambda: not h1.connections, "the connections to end")
        assert 1 == len(h1.agents)
