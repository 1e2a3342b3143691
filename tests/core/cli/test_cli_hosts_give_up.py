"""`subdeck hosts give-up`, and stop, rm, clean and doctor with a run on an unreachable host."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

import pytest
from subdeck.core import paths
from subdeck.core.run.model import RunReason

from tests.core.command_line import Done, subdeck
from tests.core.hosts.relaying import Relaying, relaying
from tests.core.hosts.test_relay_given_up import placed

pytestmark = pytest.mark.processes


async def called(there: Relaying, *words: str) -> Done:
    return await asyncio.to_thread(subdeck, *words, cwd=Path(there.project.root))


async def test_a_run_is_given_up_by_a_command(project_dir: Path, tmp_path: Path) -> None:
    """The run's state is printed, also as JSON, and a finished run is refused."""
    async with relaying(project_dir, tmp_path, 1) as there:
        run_id = await placed(there, "hang")
        done = await called(there, "hosts", "give-up", run_id[-6:])
        assert (0, f"{run_id[-6:]} is abandoned\n", "") == done
        assert RunReason.LOST is (await there.end(run_id)).reason
        done = await called(there, "hosts", "give-up", run_id, "--json")
        assert done.code != 0
        assert f"run {run_id[-6:]} has already ended (lost)" in done.error["what"]


async def test_what_is_out_of_reach_is_deleted_after_a_question(project_dir: Path, tmp_path: Path) -> None:
    """Without a terminal, nothing is done. With --yes, the run is abandoned and deleted."""
    async with relaying(project_dir, tmp_path, 1) as there:
        run_id = await placed(there, "hang")
        done = await called(there, "rm", run_id)
        assert done.code != 0
        assert "it may still be running" in done.err and "--yes" in done.err
        assert there.result(run_id) is None
        done = await called(there, "rm", run_id, "--yes")
        assert (0, True) == (done.code, f"{run_id[-6:]} deleted" in done.out)
        trashed = os.path.join(there.project.trash, run_id)
        assert os.path.exists(os.path.join(trashed, paths.RESULT))


async def test_a_stop_says_when_it_arrives(project_dir: Path, tmp_path: Path) -> None:
    """A stop request waits until the run's host is back."""
    async with relaying(project_dir, tmp_path, 1) as there:
        run_id = await placed(there, "hang")
        done = await called(there, "stop", run_id)
        expected = f"{run_id[-6:]} will be stopped when h1 is back\n"
        assert (0, expected, "") == done
        there.carrier.cut = set()
        assert RunReason.STOPPED is (await there.end(run_id)).reason


async def test_nothing_else_ends_it(project_dir: Path, tmp_path: Path) -> None:
    """Lists, logs, doctor and clean leave the run unchanged, with or without a relay, and start none."""
    async with relaying(project_dir, tmp_path, 1) as there:
        run_id = await placed(there, "hang")
        await there.kill()
        for words in (
            ("status",),
            ("status", "--all"),
            ("status", run_id),
            ("logs", run_id),
            ("doctor",),
            ("clean", "--days", "0", "--yes"),
            ("clean", "--keep", "0", "--yes"),
            ("report",),
            ("hosts", "give-up", "--help"),
        ):
            done = await called(there, *words)
            assert "Traceback" not in done.err, words
            assert there.result(run_id) is None, words
            assert os.path.isdir(there.run_dir(run_id)), words
        there.carrier.cut = set()
        there.begin()
        there.engine.stop((run_id,))
        assert RunReason.STOPPED is (await there.end(run_id)).reason
