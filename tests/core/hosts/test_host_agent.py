"""A host's agent, called as a relay calls it: starting, mirroring, stopping, holding, replacing."""

from __future__ import annotations

import asyncio
import os
import stat
import threading
from pathlib import Path

import pytest
from subdeck.core import paths
from subdeck.core.hosts._host_agent import HostAgent
from subdeck.core.hosts._spool import Spool, SpoolBusy, SpoolRoot
from subdeck.core.hosts.protocol import Answer, Said
from subdeck.core.system import files

from tests.core.hosts.hosting import RELAY, Asking, host_meta, hosting, until

pytestmark = pytest.mark.processes


async def test_a_run_is_mirrored_to_its_end(tmp_path: Path) -> None:
    """A run is mirrored byte for byte, its result comes with the last piece, and then the host archives it."""
    async with hosting(tmp_path / "spool") as agent:
        relay = Asking(agent)
        run_id = await relay.begin("say Hello.", "answer 42")
        result = await relay.pull_end(run_id)
        assert ("completed", "42") == (result.status, result.final_text)
        for name in (paths.EVENTS, paths.TRANSCRIPT, paths.STDOUT, paths.CHILD_SESSION):
            path = relay.run_dir(run_id) / name
            if path.exists():
                assert path.read_bytes() == relay.files[run_id].get(name, b""), name
        assert relay.files[run_id][paths.EVENTS].count(b"\n") > 2
        assert Answer(Said.TOLD) == await relay.ack(run_id)
        assert not relay.run_dir(run_id).exists()
        assert () == (await relay.pull(wait=0)).known
        assert Answer(Said.UNKNOWN) == await relay.ack(run_id)


async def test_a_run_that_is_acknowledged_twice_at_once_is_put_aside(tmp_path: Path) -> None:
    """Only one acknowledgement counts, and an archived run stays unchanged if another fails."""
    async with hosting(tmp_path / "spool") as agent:
        relay = Asking(agent)
        run_id = await relay.begin("answer 42")
        await relay.pull_end(run_id)
        answers = await asyncio.gather(*(relay.ack(run_id) for _ in range(4)))
        assert sorted([Answer(Said.TOLD), *[Answer(Said.UNKNOWN)] * 3], key=str) == sorted(answers, key=str)
        place = relay.agent_project / "done" / run_id
        assert (place / paths.RESULT).exists()
        with pytest.raises(FileNotFoundError):
            agent._spool(relay.relay).deliver(run_id)
        assert (place / paths.RESULT).exists()


async def test_the_end_comes_with_the_last_piece(tmp_path: Path) -> None:
    """However small the pieces are, the result comes with the last piece, never before."""
    async with hosting(tmp_path / "spool") as agent:
        relay = Asking(agent)
        run_id = await relay.begin("say Hello.", "answer 42")
        await until(lambda: (relay.run_dir(run_id) / paths.RESULT).exists(), "the run to end")
        while not (pulled := await relay.pull(wait=0, budget=1000)).ends:
            assert 0 < sum(len(chunk.content) for chunk in pulled.chunks) <= 1000
        for name, content in relay.files[run_id].items():
            assert content == (relay.run_dir(run_id) / name).read_bytes()


async def test_a_run_starts_once(tmp_path: Path) -> None:
    """Eight simultaneous start requests, and another after the result was acknowledged, start one agent process."""
    async with hosting(tmp_path / "spool") as agent:
        relay, meta = Asking(agent), host_meta()
        starts = [relay.start(f"bash echo x >> {tmp_path}/starts", "answer 1", meta=meta) for _ in range(8)]
        assert {Said.KNOWN} == {answer.said for _, answer in await asyncio.gather(*starts)}
        relay.files[meta.run_id] = {}
        await relay.pull_end(meta.run_id)
        assert "x\n" == (tmp_path / "starts").read_text()
        await relay.ack(meta.run_id)
        _, answer = await relay.start("answer 2", meta=meta)
        assert Said.KNOWN == answer.said
        assert not relay.run_dir(meta.run_id).exists()


async def test_another_spools_run_is_not_started(tmp_path: Path) -> None:
    """A run with the permit of another spool is refused and leaves nothing."""
    async with hosting(tmp_path / "spool") as agent:
        relay = Asking(agent)
        run_id, answer = await relay.start("answer 1", spool="f" * 32)
        assert Answer(Said.NOT_MINE) == answer
        assert not relay.run_dir(run_id).exists()


@pytest.mark.parametrize("force", [False, True], ids=["soft", "hard"])
async def test_a_run_is_stopped(tmp_path: Path, force: bool) -> None:
    """A stop request reaches the wrapper at once, and names its sender."""
    async with hosting(tmp_path / "spool") as agent:
        relay = Asking(agent)
        run_id = await relay.begin("say Working.", "hang")
        await relay.pull_until(lambda: "Working" in relay.text(run_id, paths.EVENTS), "its first words")
        assert Answer(Said.TOLD) == await relay.stop(run_id, force=force)
        result = await relay.pull_end(run_id)
        assert ("killed" if force else "stopped", "the user") == (result.reason, (result.error_message or "")[-8:])
        assert Answer(Said.UNKNOWN) == await relay.stop("20200101-000000-ffffff")


async def test_a_slot_is_held_for_a_run(tmp_path: Path) -> None:
    """A held slot offers the run and is released when the run ends; its relay gets the offer at once."""
    async with hosting(tmp_path / "spool") as agent:
        relay, meta = Asking(agent), host_meta()
        pulling = asyncio.create_task(relay.pull(wait=20))
        held = asyncio.create_task(relay.hold(meta.run_id))
        assert (meta.run_id,) == (await asyncio.wait_for(pulling, 5)).offers
        await relay.begin("answer 1", meta=meta)
        assert Answer(Said.OVER) == await asyncio.wait_for(held, 20)
        assert () == (await relay.pull(wait=0)).offers
        assert Answer(Said.OVER) == await relay.hold(meta.run_id)


async def test_a_later_ticket_takes_the_slot_over(tmp_path: Path) -> None:
    """A run that is offered or running here holds one slot, its latest ticket's: the relay of others may be dead."""
    async with hosting(tmp_path / "spool") as agent:
        relay, meta = Asking(agent), host_meta()
        first = asyncio.create_task(relay.hold(meta.run_id))
        assert (meta.run_id,) == (await relay.pull(wait=20)).offers
        second = asyncio.create_task(relay.hold(meta.run_id))
        assert Answer(Said.REPLACED) == await asyncio.wait_for(first, 20)
        assert (meta.run_id,) == (await relay.pull(wait=20)).offers
        await relay.begin("hang", meta=meta)
        third = asyncio.create_task(relay.hold(meta.run_id))
        assert Answer(Said.REPLACED) == await asyncio.wait_for(second, 20)
        assert Answer(Said.TOLD) == await relay.stop(meta.run_id, force=True)
        assert Answer(Said.OVER) == await asyncio.wait_for(third, 20)


def test_a_run_that_is_shorter_than_a_look(tmp_path: Path) -> None:
    """A run whose activity file came and went between two sweeps is finished at the next sweep."""
    spool, run_id = Spool(SpoolRoot(str(tmp_path / "spool")), RELAY), host_meta().run_id
    spool.make()
    run_dir = Path(spool.project.run_dir(run_id))
    run_dir.mkdir()
    spool.add(run_id)
    (run_dir / paths.RESULT).touch()
    spool.sweep()
    assert run_id not in spool.open


async def test_an_offer_ends(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a permit in time, or with a withdrawn ticket, the slot is freed and the run is no longer offered."""
    monkeypatch.setattr("subdeck.core.hosts._spool.PATIENCE_S", 0.1)
    async with hosting(tmp_path / "spool") as agent:
        relay = Asking(agent)
        assert Answer(Said.NO_PERMIT) == await relay.hold(host_meta().run_id)
        assert () == (await relay.pull(wait=0)).offers
        monkeypatch.setattr("subdeck.core.hosts._spool.PATIENCE_S", 60.0)
        held = asyncio.create_task(relay.hold(host_meta().run_id))
        assert 1 == len((await relay.pull(wait=5)).offers)
        held.cancel()
        await asyncio.gather(held, return_exceptions=True)
        assert () == (await relay.pull(wait=0)).offers


async def test_a_new_agent_takes_over(tmp_path: Path) -> None:
    """A run continues without the agent that started it; the next agent on that spool reports its result."""
    async with hosting(tmp_path / "spool") as agent:
        relay = Asking(agent)
        run_id = await relay.begin("say Working.", f"wait-for {tmp_path}/go", "answer 7")
        await relay.pull_until(lambda: "Working" in relay.text(run_id, paths.EVENTS), "its first words")
        spool_id = agent.spool_id
    (tmp_path / "go").touch()
    async with hosting(tmp_path / "spool") as agent:
        relay.agent = agent
        assert spool_id == agent.spool_id
        result = await relay.pull_end(run_id)
        assert "7" == result.final_text
        assert relay.files[run_id][paths.EVENTS] == (relay.run_dir(run_id) / paths.EVENTS).read_bytes()


async def test_one_agent_has_a_spool(tmp_path: Path) -> None:
    """A second agent on a spool is refused, and the error names the directory."""
    async with hosting(tmp_path / "spool"):
        with pytest.raises(SpoolBusy, match=str(tmp_path / "spool")):
            HostAgent(str(tmp_path / "spool"), slots=1)
    HostAgent(str(tmp_path / "spool"), slots=1).close()


def test_a_spool_whose_agent_has_just_died(tmp_path: Path) -> None:
    """A program that a dead agent was starting may still hold its lock: the next agent waits until that is released."""
    SpoolRoot(str(tmp_path / "spool")).close()
    (lock,) = (path for path in (tmp_path / "spool").iterdir() if path.name == ".lock")
    held = files.open_lock(str(lock))
    assert files.try_lock(held)
    threading.Timer(0.1, os.close, (held,)).start()
    SpoolRoot(str(tmp_path / "spool")).close()


async def test_what_is_kept_is_private(tmp_path: Path) -> None:
    """Other users cannot read the spool, and no key appears in a command line."""
    async with hosting(tmp_path / "spool") as agent:
        relay = Asking(agent)
        run_id = await relay.begin(
            f"bash echo $SECRET_KEY $AGENT_KEY > {tmp_path}/keys",
            "answer 1",
            env={"SECRET_KEY": "s3cret"},
            agent_env={"AGENT_KEY": "k3y"},
        )
        await relay.pull_end(run_id)
        assert "s3cret k3y\n" == (tmp_path / "keys").read_text()
        for path in (tmp_path / "spool").rglob("*"):
            mode = stat.S_IMODE(path.lstat().st_mode)
            assert not mode & 0o077 or path.name in (".pi", ".gitignore"), f"{path} {mode:o}"
        assert not (relay.run_dir(run_id) / paths.ENVIRONMENT).exists()


async def test_a_refused_run_frees_its_slot(tmp_path: Path) -> None:
    """A slot held for a run that is refused is freed at once."""
    async with hosting(tmp_path / "spool") as agent:
        relay, meta = Asking(agent), host_meta(cwd="/no/such place")
        held = asyncio.create_task(relay.hold(meta.run_id))
        assert (meta.run_id,) == (await relay.pull(wait=5)).offers
        _, answer = await relay.start("answer 1", meta=meta)
        assert Said.REFUSED == answer.said
        assert Answer(Said.OVER) == await asyncio.wait_for(held, 5)
