"""The relay between a project and its hosts: placing, mirroring, vouching, stopping; the agents are real."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from msgspec.structs import replace
from subdeck.core import paths
from subdeck.core.errors import RunBusy
from subdeck.core.hosts.protocol import Verb
from subdeck.core.hosts.relay.journal import Journal
from subdeck.core.hosts.relay.relay import Relay
from subdeck.core.run.describe import status_line
from subdeck.core.run.events import Message, decode_event
from subdeck.core.run.inbox import EntryKind, put
from subdeck.core.run.model import MessageState, Verdict
from subdeck.core.run.placement import Permit, Place, PlaceState, read_permit
from subdeck.core.run.snapshot import RunSnapshot

from tests.core.hosts.hosting import until
from tests.core.hosts.relaying import relaying
from tests.core.offline_agent.offline_reader import SHOP, write_tree

pytestmark = [pytest.mark.usefixtures("soon"), pytest.mark.processes]


def is_running(run: RunSnapshot) -> bool:
    return run.status == "running" and not run.elsewhere


async def test_a_run_on_a_host_ends_here(project_dir: Path, tmp_path: Path) -> None:
    """A run launched for a host is placed, mirrored byte for byte and finished in the project."""
    async with relaying(project_dir, tmp_path, 2) as there:
        run_id = await there.start("say Hello.", "answer 42")
        result = await there.end(run_id)
        assert ("completed", "42") == (result.status, result.final_text)
        agent = there.carrier.agents["h1"]
        there.assert_mirrored(run_id, agent)
        await until(lambda: there.on_host(run_id, agent).parent.name == "done", "the word that all of it is here")


async def test_runs_go_where_there_is_room(project_dir: Path, tmp_path: Path) -> None:
    """No host gets more runs than it has slots, the oldest runs go first, and all finish."""
    async with relaying(project_dir, tmp_path, 2, 1) as there:
        run_ids = await there.launch(*[("say Hello.", f"answer {number}") for number in range(8)])
        results = [await there.end(run_id) for run_id in run_ids]
        assert {"completed"} == {result.status for result in results}
        assert {"h1", "h2"} == {(there.place(run_id) or Place(PlaceState(""))).host for run_id in run_ids}
        for run_id in run_ids:
            there.assert_mirrored(run_id, there.agent_of(run_id))


async def test_what_waits_says_for_what(project_dir: Path, tmp_path: Path) -> None:
    """A waiting run shows how many are ahead, or which resource no host has."""
    async with relaying(project_dir, tmp_path, 1) as there:
        first = await there.start("hang")
        await there.see(first, is_running, "the first one to run")
        second, third = await there.start("answer 2"), await there.start("answer 3")
        needy = await there.start("answer 4", needs={"gpu": 1})
        seen = await there.see(
            third, lambda run: status_line(run) == "queued · waiting for a host (1 ahead)", "its turn"
        )
        assert not seen.place or not seen.place.passed_over
        seen = await there.see(needy, lambda run: run.place and run.place.why, "what it lacks")
        assert "queued · no host has gpu" == status_line(seen)
        there.engine.stop((first, second, third, needy))
        for run_id, message in (
            (second, "stopped by the user before it was sent to a host"),
            (first, "stopped by the user"),
        ):
            result = await there.end(run_id)
            assert ("stopped", message) == (result.reason, result.error_message)
        assert Permit("", "", "") == replace(read_permit(there.run_dir(second)), at="")


async def test_a_carrier_that_misses_a_cancellation(project_dir: Path, tmp_path: Path) -> None:
    """A relay ends even if a carrier's library swallows the cancellation."""
    async with relaying(project_dir, tmp_path, 1) as there:
        cancelled = asyncio.Event()

        async def connect() -> None:
            while not cancelled.is_set():
                try:
                    await asyncio.Event().wait()
                except asyncio.CancelledError:
                    cancelled.set()
            await asyncio.Event().wait()

        await there.kill()
        there.carrier.run = connect
        there.begin()
        await until(lambda: there.relay and there.relay._connections._running_carriers, "the carrier to work")
        await asyncio.wait_for(there.kill(), 20)
        assert cancelled.is_set()


async def test_a_relay_may_be_killed(project_dir: Path, tmp_path: Path) -> None:
    """Without a relay a run on a host is unknown, never lost; another relay continues where the first one stopped."""
    async with relaying(project_dir, tmp_path, 2) as there:
        run_id = await there.start("say One.", f"wait-for {tmp_path}/go", "say Two.", "answer 42")
        await there.see(run_id, is_running, "the run to run")
        await until(lambda: "One." in there.text(run_id), "its first words")
        await there.kill()
        assert (await there.see(run_id, lambda run: run.elsewhere, "nobody to vouch")).is_out_of_reach
        (tmp_path / "go").touch()
        there.begin()
        assert "42" == (await there.end(run_id)).final_text
        there.assert_mirrored(run_id, there.agent_of(run_id))


async def test_lost_answers_change_nothing(project_dir: Path, tmp_path: Path) -> None:
    """A lost answer to any request changes nothing: a run starts once, and its result counts once."""
    async with relaying(project_dir, tmp_path, 1) as there:
        there.carrier.deaf = dict.fromkeys((Verb.PULL, Verb.START, Verb.ACK, Verb.STOP), 2)
        run_id = await there.start(f"bash echo x >> {tmp_path}/starts", "say Hello.", "hang")
        await until(lambda: "Hello." in there.text(run_id), "its words")
        there.engine.stop((run_id,))
        assert "stopped" == (await there.end(run_id)).reason
        agent = there.agent_of(run_id)
        await until(lambda: there.on_host(run_id, agent).parent.name == "done", "the word that all of it is here")
        assert "x\n" == (tmp_path / "starts").read_text()
        there.assert_mirrored(run_id, agent)


async def test_a_host_out_of_reach(project_dir: Path, tmp_path: Path) -> None:
    """The runs of an unreachable host are unknown, with a time; their output is complete once it is back."""
    async with relaying(project_dir, tmp_path, 1) as there:
        run_id = await there.start("say One.", f"wait-for {tmp_path}/go", "say Two.", "answer 42")
        await there.see(run_id, is_running, "the run to run")
        there.carrier.cut = {"h1"}
        seen = await there.see(run_id, lambda run: run.is_out_of_reach, "nobody to vouch")
        assert "h1 not seen since " in status_line(seen)
        await until(lambda: not there.hosts["hosts"][0].get("inReach"), "the list of hosts to say so")
        (tmp_path / "go").touch()
        there.carrier.cut = set()
        assert "42" == (await there.end(run_id)).final_text
        there.assert_mirrored(run_id, there.agent_of(run_id))


async def test_a_stop_reaches_a_host_that_comes_back(project_dir: Path, tmp_path: Path) -> None:
    """An unreachable run can be stopped: its host gets the request once it is back, a hard one after a soft one."""
    async with relaying(project_dir, tmp_path, 1) as there:
        run_id = await there.start("say One.", "hang")
        await until(lambda: "One." in there.text(run_id), "its first words")
        there.carrier.cut = {"h1"}
        await there.see(run_id, lambda run: run.is_out_of_reach, "nobody to vouch")
        assert (run_id,) == there.engine.stop((run_id,))
        seen = await there.see(run_id, lambda run: run.stop_waits, "the wish to be waiting")
        assert "stops when h1 is back" in status_line(seen)
        there.engine.stop((run_id,), force=True)
        there.carrier.cut = set()
        assert "killed" == (await there.end(run_id)).reason


async def test_what_is_said_reaches_its_run_once(
    project_dir: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A message and a reply reach the host once, even if it was unreachable or its answer was lost."""
    monkeypatch.setenv("SUBDECK_OFFLINE_PACE", "0")
    write_tree(project_dir, SHOP)
    async with relaying(project_dir, tmp_path, 1) as there:
        run_id = await there.start("Where is the token checked? Ask me which file.", agent="offline")
        seen = await there.see(run_id, lambda run: run.requests, "what it asks")
        there.carrier.cut = {"h1"}
        await there.see(run_id, lambda run: run.is_out_of_reach, "nobody to vouch")
        there.carrier.deaf = {Verb.MESSAGE: 2}
        there.engine.send(run_id, "And what does `total` do?")
        there.engine.reply(run_id, seen.requests[0].id, Verdict.REPLY, "src/app.py")
        there.carrier.cut = set()
        answer = (await there.end(run_id)).final_text or ""
        assert "src/app.py" in answer and "src/prices.py" in answer
        events = [decode_event(line) for line in there.text(run_id).encode().splitlines()]
        said = [event.state for event in events if isinstance(event, Message)]
        assert [MessageState.ACCEPTED, MessageState.DELIVERED] == said
        with pytest.raises(RunBusy, match=r"has finished \(done\)"):
            there.engine.send(run_id, "too late")


async def test_what_never_reached_its_host_is_said(project_dir: Path, tmp_path: Path) -> None:
    """A message sent after the run ended on its host is listed as undelivered."""
    async with relaying(project_dir, tmp_path, 1) as there:
        run_id = await there.start("say One.", f"wait-for {tmp_path}/go", "answer 42")
        await until(lambda: "One." in there.text(run_id), "its first words")
        there.carrier.cut = {"h1"}
        await there.see(run_id, lambda run: run.is_out_of_reach, "nobody to vouch")
        (tmp_path / "go").touch()
        agent = there.agent_of(run_id)
        await until((there.on_host(run_id, agent) / paths.RESULT).exists, "its end on the host")
        put(there.run_dir(run_id), EntryKind.MESSAGE, by="operator", text="hello")
        there.carrier.cut = set()
        result = await there.end(run_id)
        assert ["hello"] == [one.text for one in result.undelivered]
        # The relay cleans up just after it has published the result.
        await until(lambda: not list(Path(there.run_dir(run_id)).glob("*inbox*")), "the inbox to be removed")


async def test_what_runs_spend_counts_here(project_dir: Path, tmp_path: Path) -> None:
    """Spending on hosts enters the user's ledger once."""
    async with relaying(project_dir, tmp_path, 1) as there:
        for _ in range(2):
            await there.end(await there.start("say One.", "answer 42", budget=5.0))
        spent = there.engine.spending().today
        assert (spent.spent, spent.held) == (sum(run.usage.cost for run in there.engine.snapshots()), 0.0)
        assert spent.spent > 0


async def test_a_relay_ends_when_nothing_is_open(
    project_dir: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An idle relay waits for another run for a while, and a run left at the last moment is noticed."""
    async with relaying(project_dir, tmp_path, 1) as there:
        run_id = await there.start("answer 42")
        await there.end(run_id)
        await there.kill()
        relay = Relay(there.project, lambda: there.carrier_set, Journal(there.project.relay_log))
        await asyncio.wait_for(relay.run(idle=0.3), 20)
        assert not relay.has_work()
        monkeypatch.setattr("subdeck.core.runners.hosts.PATIENCE_S", 0.1)  # no relay is there to take it
        left = await there.start("answer 43")
        assert relay.has_work()
        there.begin()
        assert "43" == (await there.end(left)).final_text
