"""A hostile host's claims about its identity and about runs affect only its own runs."""

from __future__ import annotations

import asyncio
import os
import time
from pathlib import Path
from typing import Any

import pytest
from subdeck.core import paths
from subdeck.core.hosts.protocol import (
    BUDGET,
    MOST_RUNS,
    Answer,
    Bell,
    Chunk,
    End,
    HostFacts,
    Pull,
    Said,
    Stop,
    Verb,
    encode,
)
from subdeck.core.hosts.relay.orphans import MOST_AT_ONCE
from subdeck.core.hosts.relay.slots import known_hosts_file
from subdeck.core.paths import Project
from subdeck.core.run.model import RunReason
from subdeck.core.run.placement import read_host_states, read_permit, read_place

from tests.core.hosts.hostile_host import HostilePeer, Peers
from tests.core.hosts.hosting import until
from tests.core.hosts.teller import OTHER, SPOOL, Told, log, relay, relay_of

KEY = b'{"env":{"API_KEY":"secret"}}'

pytestmark = [pytest.mark.usefixtures("soon"), pytest.mark.slow]


@pytest.fixture
def peers() -> Peers:
    return Peers(h1=HostilePeer(SPOOL, "build"), h2=HostilePeer(OTHER, "gpu"))


def repr_of(value: object) -> str:
    return repr(value)[:40]


def faults(project: Project) -> str:
    states = read_host_states(project)
    return "\n".join(states.faults) if states else ""


async def permitted(project: Project, peers: Peers, key: str) -> Told:
    """Return a run that was placed on a host and is not started yet."""
    peer = peers.peers[key]
    run = Told(project, peers, permit="", host=peer.name)
    (run.dir / paths.ENVIRONMENT).write_bytes(KEY)
    await until(lambda: peers.wishes.get(run.id), "a slot to be wanted")
    await peer.tell(offers=(run.id,))
    await until(lambda: peer.starts, "its start")
    return run


async def test_a_spool_belongs_to_the_address_that_had_it_first(project: Project, peers: Peers) -> None:
    """Another address that claims the same spool gets no start and no news of runs, and is named."""
    h1, h2 = peers.peers["h1"], peers.peers["h2"]
    async with relay(project, peers):
        run = await permitted(project, peers, "h1")
        assert "ssh h1" == getattr(read_permit(str(run.dir)), "via", "")
        h1.is_there = False
        h2.spool, h2.name = SPOOL, "build"
        h2.asked.clear()
        chunk, bell = Chunk(run.id, paths.STDOUT, 0, b"forged\n"), Bell(run.id, b'{"seq":7}\n')
        await h2.tell(known=(run.id,), chunks=(chunk,), bells=(bell,), ends=(run.end(),))
        await until(lambda: "h2: it says that it has the spool of build, which h1 was first" in faults(project), "it")
        assert "h2: it says that it has the spool of build" in log(project)
    assert run.result is None
    assert not (run.dir / paths.STDOUT).exists()
    assert not h2.starts
    assert not [asked for asked in h2.asked if isinstance(asked, Pull) and asked.have]


async def test_another_relay_knows_who_had_a_spool(project: Project, peers: Peers) -> None:
    """A host that claims a spool while its real host is off is not believed by a new relay either."""
    h1, h2 = peers.peers["h1"], peers.peers["h2"]
    async with relay(project, peers):
        run = await permitted(project, peers, "h1")
    h1.is_there, h2.spool = False, SPOOL
    h2.asked.clear()
    async with relay(project, peers):
        await h2.tell(known=(run.id,), ends=(run.end(),))
        await until(lambda: "the spool of build" in faults(project), "the list of hosts to name it")
        h1.is_there, h1.known = True, (run.id,)
        await until(lambda: (place := read_place(str(run.dir))) and "build" == place.host, "the first to be believed")
    assert not h2.starts
    assert run.result is None


async def test_without_a_note_the_permit_says_who(project: Project, peers: Peers) -> None:
    """Even without the record of spools, only the host in its permit may report on a run or get it."""
    h1, h2 = peers.peers["h1"], peers.peers["h2"]
    async with relay(project, peers):
        run = await permitted(project, peers, "h1")
    os.remove(known_hosts_file())
    h1.is_there, h2.spool, h2.name = False, SPOOL, "build"
    async with relay(project, peers):
        await h2.tell(known=(run.id,), ends=(run.end(),))
        why = "its host was ssh h1, where another one is now"
        await until(lambda: (place := read_place(str(run.dir))) and place.why == why, "the run to say so")
    assert not h2.starts
    assert run.result is None


async def test_a_name_belongs_to_the_address_that_had_it_first(project: Project, peers: Peers) -> None:
    """A run bound to a host by name never goes to another host that uses the name and offers more."""
    h1, h2 = peers.peers["h1"], peers.peers["h2"]
    async with relay(project, peers):
        await until(lambda: h1.pulled > 1, "the first to be heard of")
        h2.name = "build"
        h2.facts = HostFacts(slots=100, labels={"gpu": 8.0})
        run = Told(project, peers, permit="", host="build")
        (run.dir / paths.ENVIRONMENT).write_bytes(KEY)
        await until(lambda: peers.wishes.get(run.id), "a slot to be wanted")
        assert "h1" == peers.wishes[run.id].host
        await h2.tell(offers=(run.id,))
        said = "h2: it calls itself build, as another host does; it goes by its address"
        await until(lambda: said in faults(project), "the list of hosts to say so")
        names = lambda: {host.name for host in getattr(read_host_states(project), "hosts", ())}  # noqa: E731
        await until(lambda: {"build", "h2"} == names(), "both to be listed")
        assert read_permit(str(run.dir)) is None
    assert not h2.starts


async def test_a_host_that_is_gone_keeps_nobody_out(project: Project, peers: Peers) -> None:
    """A new address in the settings for the same machine is accepted; earlier runs stay with their old host."""
    async with relay(project, peers):
        run = await permitted(project, peers, "h1")
    moved = HostilePeer(SPOOL, "build")
    others = Peers(me=moved)
    async with relay(project, others):
        new = await permitted(project, others, "me")
        assert {new.id} == {start.run for start in moved.starts}
    assert "ssh me" == getattr(read_permit(str(new.dir)), "via", "")
    async with relay(project, peers):
        h1 = peers.peers["h1"]
        h1.asked.clear()
        await until(lambda: [start.run for start in h1.starts] == [run.id], "its start where it was permitted")


async def test_a_host_of_ever_new_spools(project: Project, peers: Peers) -> None:
    """A host with ever new spools remains one host with its slots, and leaves no old entries."""
    h2 = peers.peers["h2"]
    async with relay(project, peers) as found:
        for number in range(20):
            h2.spool = f"{number:032x}"
            await h2.tell(host=f"h{number}")
        await until(lambda: 2 == len(list(found._hosts)), "two hosts to be known")
        assert 2 == len(found._hosts.capacities())
        assert found._runs.counts.keys() <= {SPOOL}


async def test_what_a_host_makes_up_costs_little(project: Project, peers: Peers) -> None:
    """Made-up runs are handled a few at a time, keep no relay running, and leave nothing in it."""
    h2 = peers.peers["h2"]
    h2.answers[Verb.STOP] = lambda _: Answer(Said.UNKNOWN)
    async with relay(project, peers) as found:
        for turn in range(3):
            h2.known = tuple(f"20260101-000000-{turn}{number:05x}" for number in range(MOST_RUNS))
            asked = len(h2.asked)
            await h2.tell()
            assert len(h2.asked) - asked < 40 * MOST_AT_ONCE
        h2.known = ()
        await h2.tell()
        host = found._hosts.get(OTHER)
        assert host is not None
        assert not host.deleted and not host.stopped_orphans and host.orphans_since is None
        assert not found._orphans.remain_on(found._hosts)


async def test_a_host_that_does_not_let_go(project: Project, peers: Peers, monkeypatch: pytest.MonkeyPatch) -> None:
    """A host that claims unwanted runs forever does not keep an otherwise idle relay running."""
    monkeypatch.setattr("subdeck.core.hosts.relay.orphans.WAITED_S", 0.3)
    h2 = peers.peers["h2"]
    h2.known = ("20260101-000000-abcdef",)
    found = relay_of(project, peers)
    await asyncio.wait_for(found.run(idle=0.3), 20)


async def test_what_one_host_says_of_a_run_is_not_said_of_another(project: Project, peers: Peers) -> None:
    """A deleted run is ended on its host, even if another host claims it and does not answer."""
    h1, h2 = peers.peers["h1"], peers.peers["h2"]
    run = "20260101-000000-abcdef"
    h2.known = (run,)
    async with relay(project, peers):
        await until(lambda: stops(h2), "the liar to be told")
        h1.known = (run,)
        await until(lambda: stops(h1), "the host that has it to be told")


@pytest.mark.parametrize(
    "others",
    [
        {"known": ("20260101-000000-abcdef",) * (MOST_RUNS + 1)},
        {"offers": ("20260101-000000-abcdef",) * (MOST_RUNS + 1)},
        {"bells": (Bell("20260101-000000-abcdef", b""),) * (MOST_RUNS + 1)},
        {"chunks": (Chunk("20260101-000000-abcdef", "events.jsonl", 0, b""),) * (MOST_RUNS + 1)},
        {"chunks": (Chunk("20260101-000000-abcdef", "events.jsonl", 0, bytes(5 * BUDGET)),) * 2},
        {"ends": (End("20260101-000000-abcdef", b""),) * (MOST_RUNS + 1)},
        {"known": ("../../../etc/passwd",)},
        {"known": ("20260101-000000-abcdef\n",)},
        {"chunks": (Chunk("20260101-000000-abcdef", "../meta.json", 0, b"{}"),)},
        {"chunks": (Chunk("20260101-000000-abcdef", "events.jsonl", -1, b"{}"),)},
        {"chunks": (Chunk("20260101-000000-abcdef", "events.jsonl", 2**63, b"{}"),)},
        {"facts": HostFacts(slots=-1)},
        {"facts": HostFacts(slots=2**40)},
        {"facts": HostFacts(load=float("nan"))},
        {"facts": HostFacts(labels={"gpu": float("inf")})},
        {"facts": HostFacts(labels={"x" * 65: 1.0})},
        {"facts": HostFacts(labels={str(number): 1.0 for number in range(65)})},
        {"host": "h1\x1b[31m"},
        {"host": "-oProxyCommand=x"},
        {"host": ""},
        {"spool": "../../etc"},
        {"spool": "A" * 32},
        {"protocol": -1},
    ],
    ids=repr_of,
)
async def test_what_is_no_answer(project: Project, peers: Peers, others: dict[str, Any]) -> None:
    """An oversized or malformed answer is ignored, and the host gets no runs until it is well."""
    h2 = peers.peers["h2"]
    async with relay(project, peers) as found:
        await until(lambda: h2.pulled > 1, "it to be heard of")
        good, h2.pulls = h2.pulls, lambda **_: good(**others)  # type: ignore[method-assign]
        await until(lambda: "ssh: h2: " in faults(project), "the list of hosts to say so")
        host = found._hosts.get(OTHER)
        assert host is not None and not found._hosts.takes_runs(host)
        h2.pulls = good  # type: ignore[method-assign]
        await until(lambda: "ssh: h2: " not in faults(project), "it to be well again")
    assert sorted(path.name for path in Path(project.runs).iterdir() if path.is_dir() and "2026" in path.name) == []


async def test_an_end_is_by_nobody_here(project: Project, peers: Peers) -> None:
    """A host cannot attribute a result to you, a relay or a launcher; anything after its result is ignored."""
    h1 = peers.peers["h1"]
    async with relay(project, peers):
        runs = [Told(project, peers) for _ in range(4)]
        h1.known = tuple(run.id for run in runs)
        for run, by in zip(runs, ("operator", "relay", "launcher", "host"), strict=True):
            await h1.tell(ends=(run.end(reason=RunReason.LOST, written_by=by),))
        for run in runs:
            result = await until(lambda run=run: run.result, "its end")
            assert ("host", RunReason.LOST) == (result.written_by, result.reason)
        await until(lambda: not list(Path(project.active).iterdir()), "the relay to clean up after the last result")
        before = {path: path.read_bytes() for run in runs for path in run.dir.iterdir() if path.is_file()}
        for run in runs:
            chunk = Chunk(run.id, paths.EVENTS, 0, b'{"type":"forged"}\n')
            await h1.tell(chunks=(chunk,), bells=(Bell(run.id, b"{}"),), ends=(run.end(final_text="another"),))
        assert before == {path: path.read_bytes() for run in runs for path in run.dir.iterdir() if path.is_file()}
        assert not list(Path(project.active).iterdir())


async def test_prompts_of_later_attempts_are_bounded(
    project: Project, peers: Peers, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All prompt files of a host together are limited to the size of one file."""
    monkeypatch.setattr("subdeck.core.hosts.relay.runs._OTHER_CAP", 1000)
    h1 = peers.peers["h1"]
    async with relay(project, peers):
        run = Told(project, peers)
        h1.known = (run.id,)
        for number in range(2, 15):
            await h1.tell(chunks=(Chunk(run.id, f"prompt-{number}.md", 0, bytes(100)),))
        assert "is longer than" in log(project)
        found = list(run.dir.glob(".incoming-prompt-*"))
        assert 10 == len(found) and 1000 == sum(path.stat().st_size for path in found)


async def test_a_host_that_floods_leaves_the_others_their_turn(project: Project, peers: Peers) -> None:
    """A host that floods the relay does not delay the others."""
    h1, h2 = peers.peers["h1"], peers.peers["h2"]
    many = tuple(f"20260101-000000-{number:06x}" for number in range(MOST_RUNS))
    bells = tuple(Bell(run_id, bytes(1000)) for run_id in many)
    flood = encode(h2.pulls(known=many, offers=many, bells=bells))
    async with relay(project, peers):
        await until(lambda: h1.pulled > 3, "it to be heard")
        h2.tells = [flood] * 1000
        pulled, began = h1.pulled, time.monotonic()
        await until(lambda: h1.pulled > pulled + 20, "the other one to be heard as well", 20.0)
        assert len(h2.tells) > 500
        h2.tells.clear()
        assert time.monotonic() - began < 20


def stops(peer: HostilePeer) -> list[Stop]:
    return [asked for asked in peer.asked if isinstance(asked, Stop)]
