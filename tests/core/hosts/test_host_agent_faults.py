"""The agent of a host handles faults: dead wrappers, killed agents, damaged files."""

from __future__ import annotations

import asyncio
import os
import resource
import signal
import subprocess
import sys
import time
from pathlib import Path

import msgspec
import pytest
from subdeck.core import paths
from subdeck.core.errors import LaunchError
from subdeck.core.hosts import _arrival
from subdeck.core.hosts.protocol import Answer, Said
from subdeck.core.run import artifacts
from subdeck.core.run.inbox import EntryKind, InboxEntry
from subdeck.core.run.model import Limits
from subdeck.core.system import files

from tests.core.hosts.hosting import OTHER_RELAY, Asking, host_meta, hosting, until
from tests.factories import lives, make_result, wait_until_gone

pytestmark = [pytest.mark.usefixtures("soon"), pytest.mark.processes]


async def working(relay: Asking, *script: str, **others: object) -> str:
    run_id = await relay.begin("say Working.", *script, **others)
    await relay.pull_until(lambda: "Working" in relay.text(run_id, paths.EVENTS), "its first words")
    return run_id


async def test_a_wrapper_that_dies(tmp_path: Path) -> None:
    """If a wrapper is killed, its host reports the run as lost and ends its agent process."""
    async with hosting(tmp_path / "spool") as agent:
        relay = Asking(agent)
        run_id = await working(relay, "hang")
        facts = await until(lambda: artifacts.read_runner(str(relay.run_dir(run_id))), "its wrapper")
        await until(lambda: artifacts.read_runner(str(relay.run_dir(run_id))).child_pid, "its child")
        child = artifacts.read_runner(str(relay.run_dir(run_id))).child_pid
        os.kill(facts.pid, signal.SIGKILL)
        result = await relay.pull_end(run_id)
        assert ("lost", "host", "Working.") == (result.reason, result.written_by, result.final_text)
        wait_until_gone(child)
        assert relay.files[run_id][paths.EVENTS] == (relay.run_dir(run_id) / paths.EVENTS).read_bytes()


async def test_a_wrapper_that_cannot_be_started(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """If the wrapper cannot be started, the run fails with the reason, and no secret is left."""

    def refuse(*_: object, **_others: object) -> None:
        raise LaunchError("cannot start the wrapper: no processes")

    monkeypatch.setattr(_arrival, "start_wrapper", refuse)
    async with hosting(tmp_path / "spool") as agent:
        relay = Asking(agent)
        run_id = await relay.begin("answer 1")
        result = await relay.pull_end(run_id)
        assert ("start_failed", "host") == (result.reason, result.written_by)
        assert "no processes" in (result.error_message or "")
        assert not (relay.run_dir(run_id) / paths.ENVIRONMENT).exists()


async def test_an_agent_that_was_killed_before_the_wrapper_came(tmp_path: Path) -> None:
    """A run that has only its directory is unknown, and is started once when its relay asks again."""
    async with hosting(tmp_path / "spool") as agent:
        relay, meta = Asking(agent), host_meta()
        files.make_private_directory(str(relay.agent_project / ".pi/subagents/active"))
        runs = relay.agent_project / ".pi/subagents/runs"
        os.close(artifacts.create_run(str(runs), meta, f"bash echo x >> {tmp_path}/starts\nanswer 2"))
        agent._spool(relay.relay).look()
        assert () == (await relay.pull(wait=0)).known
    wrapper = (
        sys.executable,
        "-P",
        "-E",
        "-m",
        "subdeck.core.wrapper",
        str(runs / meta.run_id),
        str(tmp_path / "bell"),
    )
    late = [subprocess.Popen(wrapper, start_new_session=True) for _ in range(2)]  # still starting for that agent
    async with hosting(tmp_path / "spool") as agent:
        relay.agent = agent
        await asyncio.gather(*(relay.begin("answer 3", meta=meta) for _ in range(3)))
        assert "2" == (await relay.pull_end(meta.run_id)).final_text
        assert [0, 0] == [process.wait(20) for process in late]
        assert "x\n" == (tmp_path / "starts").read_text()


async def test_a_run_that_nobody_asks_for_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """If no relay asks again and no wrapper comes, the run is lost after a while, because it never began."""
    async with hosting(tmp_path / "spool") as agent:
        relay, meta = Asking(agent), host_meta()
        runs = relay.agent_project / ".pi/subagents/runs"
        os.close(artifacts.create_run(str(runs), meta, "answer 2"))
        assert () == (await relay.pull(wait=0.3)).known
        monkeypatch.setattr("subdeck.core.hosts._spool.UNBORN_S", 0.1)
        relay.files[meta.run_id] = {}
        result = await relay.pull_end(meta.run_id)
        assert ("lost", "host", None) == (result.reason, result.written_by, result.started_at)
        assert "before the wrapper was started" in (result.error_message or "")


async def test_a_directory_that_was_not_finished(tmp_path: Path) -> None:
    """The half-made directory of a killed agent does not prevent the run from being made."""
    async with hosting(tmp_path / "spool") as agent:
        relay, meta = Asking(agent), host_meta()
        files.make_private_directory(str(relay.agent_project / ".pi/subagents/runs" / f".{meta.run_id}"))
        await relay.begin("answer 2", meta=meta)
        assert "2" == (await relay.pull_end(meta.run_id)).final_text


async def test_a_run_that_goes_on_is_not_put_aside(tmp_path: Path) -> None:
    """Acknowledging an unfinished run is refused, and the run stays in its directory."""
    async with hosting(tmp_path / "spool") as agent:
        relay = Asking(agent)
        run_id = await working(relay, "hang")
        assert Said.REFUSED == (await relay.ack(run_id)).said
        assert relay.run_dir(run_id).exists()
        await relay.stop(run_id)
        await relay.pull_end(run_id)


async def test_a_run_that_is_taken_away(tmp_path: Path) -> None:
    """A run whose directory is removed ends together with its ticket, and is no longer known."""
    async with hosting(tmp_path / "spool") as agent:
        relay = Asking(agent)
        run_id = await working(relay, "hang")
        child = (await until(lambda: artifacts.read_runner(str(relay.run_dir(run_id))), "its wrapper")).pid
        files.remove_tree(str(relay.run_dir(run_id)))
        assert Answer(Said.OVER) == await relay.hold(run_id)
        assert () == (await relay.pull(wait=0)).known
        await until(lambda: not lives(child), "its wrapper to go")


async def test_operators_do_not_see_each_other(tmp_path: Path) -> None:
    """A relay's runs are unknown to another relay, which cannot stop, acknowledge or read them."""
    async with hosting(tmp_path / "spool") as agent:
        relay, other = Asking(agent), Asking(agent, OTHER_RELAY)
        run_id = await working(relay, "hang")
        other.files[run_id] = {}
        pulled = await other.pull(wait=0)
        assert ((), (), 1) == (pulled.known, pulled.chunks, pulled.facts.used)
        assert {Said.UNKNOWN} == {(await other.stop(run_id)).said, (await other.ack(run_id)).said}
        await relay.stop(run_id)
        await relay.pull_end(run_id)


async def test_slots_are_kept(tmp_path: Path) -> None:
    """No more runs are active than the host has slots; the others wait as queued."""
    async with hosting(tmp_path / "spool", slots=1) as agent:
        relay = Asking(agent)
        first = await working(relay, f"wait-for {tmp_path}/go")
        second = await relay.begin("say Mine.", "answer 2")
        await relay.pull_until(lambda: '"queued"' in relay.text(second, paths.EVENTS), "the second to wait")
        assert "Mine" not in relay.text(second, paths.EVENTS)
        (tmp_path / "go").touch()
        await relay.pull_end(first, second)


async def test_a_message_arrives_once(tmp_path: Path) -> None:
    """A message resent after a lost answer reaches the agent once; an invalid one is refused."""
    async with hosting(tmp_path / "spool") as agent:
        relay = Asking(agent)
        meta = host_meta(agent="offline", agent_kind="offline", agent_command=("x",), talk=True)
        run_id = await relay.begin("What is here?", meta=meta)
        entry = InboxEntry(id="0123456789ab", kind=EntryKind.MESSAGE, by="operator", text="And what else?")
        answers = {(await relay.say(run_id, entry)).said for _ in range(3)}
        assert answers <= {Said.TOLD, Said.REFUSED}
        await relay.pull_end(run_id)
        told = [line for line in relay.text(run_id, paths.EVENTS).splitlines() if entry.id in line]
        states = [msgspec.json.decode(line)["state"] for line in told]
        assert len(states) == len(set(states)), states
        assert Said.REFUSED == (await relay.say(run_id, InboxEntry(id="../../../x", kind="message"))).said
        take_over = InboxEntry(id="0123456789ac", kind=EntryKind.TAKE_OVER)
        assert Said.REFUSED == (await relay.say(run_id, take_over)).said


async def test_a_result_that_no_message_holds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Only the beginning of an endless answer arrives, and the result reports that it was truncated."""
    monkeypatch.setattr("subdeck.core.hosts._mirror._LARGEST_RESULT", 5_000)
    monkeypatch.setattr("subdeck.core.hosts._mirror._CUT_AT", 1_000)
    async with hosting(tmp_path / "spool") as agent:
        relay = Asking(agent)
        run_id = await relay.begin("say-big 20000", "finish")
        result = await relay.pull_end(run_id)
        assert "x" * 1_000 == result.final_text
        assert "truncated" in result.artifact_errors[-1]


async def test_what_was_delivered_is_kept_for_a_while(tmp_path: Path) -> None:
    """An acknowledged run is removed after the time that its user chose."""
    async with hosting(tmp_path / "spool") as agent:
        relay = Asking(agent)
        run_id = await relay.begin("answer 1", keep=100.0)
        await relay.pull_end(run_id)
        await relay.ack(run_id)
        spool, place = agent._spool(relay.relay), relay.agent_project / "done" / run_id
        assert [] == spool.purge() and place.exists()
        os.utime(place, (1, 1))
        assert [run_id] == spool.purge() and not place.exists()


async def test_an_end_that_nobody_fetches_is_kept_for_very_long(tmp_path: Path) -> None:
    """An unfetched result stays for three months even with a short `keep`; later the run does not start again."""
    async with hosting(tmp_path / "spool") as agent:
        relay, meta = Asking(agent), host_meta()
        run_id = await relay.begin("answer 1", meta=meta, keep=100.0)
        result = relay.run_dir(run_id) / paths.RESULT
        await until(result.exists, "its end")
        spool = agent._spool(relay.relay)
        for days in (1, 89):
            os.utime(result, (1, time.time() - days * 86400))
            assert [] == spool.purge() and result.exists()
        os.utime(result, (1, time.time() - 91 * 86400))
        assert [run_id] == spool.purge() and not relay.run_dir(run_id).exists()
        spool.look()
    async with hosting(tmp_path / "spool") as agent:
        relay.agent = agent
        relay.files.clear()
        assert () == (await relay.pull(wait=0)).known
        _, answer = await relay.start("answer 2", meta=meta)
        assert (Said.REFUSED, True) == (answer.said, "its result was not fetched" in answer.why)
        assert Said.OVER == (await relay.hold(run_id)).said
        assert not relay.run_dir(run_id).exists()


async def test_a_mirrored_file_that_is_none(tmp_path: Path) -> None:
    """A link that an agent puts in place of a mirrored file is not followed, and the result is still reported."""
    (tmp_path / "secret").write_text("t0p 5ecret")
    async with hosting(tmp_path / "spool") as agent:
        relay, meta = Asking(agent), host_meta()
        stdout = relay.run_dir(meta.run_id) / paths.STDOUT
        link = f"bash rm -f {stdout}; ln -s {tmp_path}/secret {stdout}"
        await relay.begin(link, "answer 1", meta=meta)
        await relay.pull_end(meta.run_id)
        assert b"5ecret" not in b"".join(relay.files[meta.run_id].values())


@pytest.mark.parametrize("how", ["ends", "is lost"])
async def test_what_it_spends_is_counted_once(tmp_path: Path, how: str) -> None:
    """A host, which may be the user's own machine, writes nothing to the ledger: only the relay does."""
    async with hosting(tmp_path / "spool") as agent:
        relay = Asking(agent)
        run_id = await working(
            relay, *(["hang"] if how == "is lost" else ["answer 1"]), meta=host_meta(limits=Limits(budget=9))
        )
        if how == "is lost":
            facts = await until(lambda: artifacts.read_runner(str(relay.run_dir(run_id))), "its wrapper")
            os.kill(facts.pid, signal.SIGKILL)
        assert 0.5 <= (await relay.pull_end(run_id)).usage.cost
    assert not Path(paths.state_file("spend")).exists()


async def test_more_runs_than_files_may_be_open(tmp_path: Path) -> None:
    """A host reports any number of runs with few files open at a time."""
    async with hosting(tmp_path / "spool") as agent:
        relay = Asking(agent)
        runs = relay.agent_project / ".pi/subagents/runs"
        for _ in range(100):
            meta = host_meta()
            os.close(artifacts.create_run(str(runs), meta, "answer 1"))
            (runs / meta.run_id / paths.EVENTS).write_bytes(b"{}\n")
            artifacts.write_result(str(runs / meta.run_id), make_result(meta.run_id))
            relay.files[meta.run_id] = {}
        limits = resource.getrlimit(resource.RLIMIT_NOFILE)
        free = os.open("/dev/null", os.O_RDONLY)
        os.close(free)
        resource.setrlimit(resource.RLIMIT_NOFILE, (free + 40, limits[1]))
        try:
            await relay.pull(wait=0)
        finally:
            resource.setrlimit(resource.RLIMIT_NOFILE, limits)
        assert 100 == len(relay.results)


async def test_a_wrapper_that_ended_is_reaped(tmp_path: Path) -> None:
    """An agent reaps ended wrappers even if it starts no others."""
    async with hosting(tmp_path / "spool") as agent:
        relay = Asking(agent)
        run_id = await relay.begin("say Working.", f"wait-for {tmp_path}/go", "answer 1")
        facts = await until(lambda: artifacts.read_runner(str(relay.run_dir(run_id))), "its wrapper")
        (tmp_path / "go").touch()
        await relay.pull_end(run_id)
        await until(lambda: not Path(f"/proc/{facts.pid}").exists(), "its wrapper to be reaped")
