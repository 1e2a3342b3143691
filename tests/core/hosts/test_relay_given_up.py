"""Runs whose host does not come back, or that were deleted: never assumed lost, and nothing remains."""

from __future__ import annotations

import asyncio
from pathlib import Path

import msgspec
import pytest
from subdeck.core import paths
from subdeck.core.engine import Engine
from subdeck.core.errors import RunBusy, SubdeckError
from subdeck.core.project.abandoned import give_up
from subdeck.core.project.liveness import Proof, reconcile
from subdeck.core.run.describe import status_line
from subdeck.core.run.model import RunResult
from subdeck.core.system import files

from tests.core.full_disk import no_file_longer_than
from tests.core.hosts.hosting import until
from tests.core.hosts.relaying import Relaying, relaying
from tests.factories import open_engine, start

pytestmark = [pytest.mark.usefixtures("soon"), pytest.mark.processes]


async def placed(there: Relaying, *script: str) -> str:
    """Return a run that has written its first words and whose host became unreachable."""
    run_id = await there.start("say One.", *script)
    await until(lambda: "One." in there.text(run_id), "its first words")
    there.carrier.cut = {"h1"}
    await there.see(run_id, lambda run: run.is_out_of_reach, "nobody to vouch")
    return run_id


async def test_a_run_out_of_reach_is_given_up(project_dir: Path, tmp_path: Path) -> None:
    """Once the host of an abandoned run is back, its agent is ended, and its outcome is kept beside the result."""
    async with relaying(project_dir, tmp_path, 1) as there:
        run_id = await placed(there, "hang")
        there.engine.give_up(run_id)
        result = await there.end(run_id)
        assert ("lost", "operator") == (result.reason, result.written_by)
        assert "abandoned; h1 not seen since " in str(result.error_message)
        assert str(result.error_message).endswith(", may still be running")
        assert "One." == result.final_text
        agent = there.agent_of(run_id)
        there.carrier.cut = set()
        late = Path(there.run_dir(run_id), paths.LATE_RESULT)
        await until(late.exists, "the end that the host tells")
        assert "killed" == msgspec.json.decode(late.read_bytes(), type=RunResult).reason
        assert "lost" == (await there.end(run_id)).reason
        assert "finished later on h1: aborted" in status_line(await there.see(run_id, lambda run: run.end, "its end"))
        await until(lambda: there.on_host(run_id, agent).parent.name == "done", "the word that all of it is here")
        there.assert_mirrored(run_id, agent)


async def test_a_run_in_reach_is_not_given_up(project_dir: Path, tmp_path: Path) -> None:
    """A reachable or finished run cannot be abandoned, but it can be stopped."""
    async with relaying(project_dir, tmp_path, 1) as there:
        run_id = await there.start("hang")
        await there.see(run_id, lambda run: run.place and not run.place.is_waiting, "the run to have a host")
        with pytest.raises(RunBusy, match="is reachable, on h1"):
            there.engine.give_up(run_id)
        there.engine.stop((run_id,))
        await there.end(run_id)
        with pytest.raises(RunBusy, match=r"has already ended \(stopped\)"):
            there.engine.give_up(run_id)


async def test_a_run_without_a_host_is_given_up(project_dir: Path, tmp_path: Path) -> None:
    """An abandoned run without a host never started, and never will."""
    async with relaying(project_dir, tmp_path, 1) as there:
        run_id = await there.start("answer 1", needs={"gpu": 1})
        await there.kill()
        there.engine.give_up(run_id)
        result = await there.end(run_id)
        assert ("stopped", "abandoned before it was sent to a host") == (result.reason, result.error_message)
        there.begin()
        await until(lambda: there.hosts.get("hosts"), "the relay to have asked its hosts")
        assert not there.carrier.tickets


async def test_what_keeps_a_run_from_being_given_up(project_dir: Path, tmp_path: Path) -> None:
    """A full disk is reported and the run keeps waiting; an earlier result remains the only one."""
    async with relaying(project_dir, tmp_path, 1) as there:
        run_id = await there.start("answer 1", needs={"gpu": 1})
        await there.kill()
        (run,) = there.engine.snapshots((run_id,))
        with no_file_longer_than(0), pytest.raises(SubdeckError, match=f"cannot abandon run {run_id[-6:]}: File too l"):
            there.engine.give_up(run_id)
        assert there.result(run_id) is None
        there.engine.give_up(run_id)
        result = Path(there.run_dir(run_id), paths.RESULT)
        before = result.read_bytes()
        with pytest.raises(RunBusy, match="has just finished"):
            give_up(there.project, run)
        assert before == result.read_bytes()


async def test_a_run_out_of_reach_is_never_lost_by_guess(project_dir: Path, tmp_path: Path) -> None:
    """An unreachable run is unknown to every reader, and cannot be deleted before it is abandoned."""
    async with relaying(project_dir, tmp_path, 1) as there:
        run_id = await placed(there, "hang")
        await there.kill()
        for by in ("cli", "app", "launcher", "wrapper", None):
            assert Proof.UNKNOWN is reconcile(there.project, run_id, by=by)
        runner = Path(there.run_dir(run_id), paths.RUNNER)
        kept = runner.read_bytes()
        for broken in (b"", b"{", None):
            runner.unlink(missing_ok=True)
            if broken is not None:
                runner.write_bytes(broken)
            assert reconcile(there.project, run_id, by="cli") in (Proof.UNKNOWN, Proof.ALIVE)  # its wrapper is here
        runner.write_bytes(kept)
        with pytest.raises(RunBusy, match="which is unreachable"):
            there.engine.delete((run_id,))
        assert there.result(run_id) is None
        there.carrier.cut = set()
        there.begin()
        there.engine.stop((run_id,))
        assert "stopped" == (await there.end(run_id)).reason


async def test_what_was_deleted_is_ended_on_its_host(project_dir: Path, tmp_path: Path) -> None:
    """A deleted run is stopped on its host, and archived there."""
    async with relaying(project_dir, tmp_path, 1) as there:
        run_id = await placed(there, "hang")
        agent = there.agent_of(run_id)
        there.engine.give_up(run_id)
        there.engine.delete((run_id,))
        there.carrier.cut = set()
        await until(lambda: there.on_host(run_id, agent).parent.name == "done", "it to be put aside")
        assert (there.on_host(run_id, agent) / paths.RESULT).exists()
        assert not files.exists(there.run_dir(run_id))


async def test_nobody_else_may_give_up(project_dir: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An agent cannot abandon runs, and a local run cannot be abandoned."""
    engine: Engine = open_engine(project_dir)
    run = await asyncio.to_thread(start, engine, "hang")
    with pytest.raises(SubdeckError, match="is not on a host"):
        engine.give_up(run.run_id)
    monkeypatch.setenv(paths.CHILD, "1")
    with pytest.raises(SubdeckError, match="an agent cannot abandon runs"):
        engine.give_up(run.run_id)
    monkeypatch.delenv(paths.CHILD)
    engine.stop((run.run_id,), force=True)
    await asyncio.to_thread(engine.wait, (run.run_id,))
