"""A host's wrappers are forked from a loaded one: as detached as others, and replaceable."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from subdeck.core import paths
from subdeck.core.hosts._host_agent import HostAgent
from subdeck.core.project.liveness import living_wrappers
from subdeck.core.run import artifacts
from subdeck.core.system import processes

from tests.core.hosts.hosting import Asking, hosting, until
from tests.waiting import wait_until

pytestmark = pytest.mark.processes

OWNER = """
import os, sys
from subdeck.core.runners.forker import Forker

forker = Forker()
forker.fork_off((sys.argv[1], "/nowhere"), dict(os.environ))
print(forker._process.pid, flush=True)
sys.stdin.read()
"""


def forker_of(agent: HostAgent) -> int:
    process = agent._forker._process
    assert process is not None
    return process.pid


async def wrapper_of(relay: Asking, run_id: str) -> int:
    run_dir = relay.run_dir(run_id)
    await until(lambda: (run_dir / paths.RUNNER).exists(), "the wrapper")
    facts = artifacts.read_runner(str(run_dir))
    assert facts is not None
    return facts.pid


def opened_by(pid: int) -> Iterator[str]:
    """Yield the paths of a process's descriptors, skipping one that is closed in between."""
    for entry in Path(f"/proc/{pid}/fd").iterdir():
        with suppress(FileNotFoundError):
            yield os.readlink(entry)


async def test_a_wrapper_that_was_forked_off(tmp_path: Path) -> None:
    """A forked wrapper is as detached as any, with its own mark and descriptors, and outlives agent and forker."""
    async with hosting(tmp_path / "spool") as agent:
        relay = Asking(agent)
        runs = [await relay.begin("hang"), await relay.begin("hang")]
        pids = [await wrapper_of(relay, run_id) for run_id in runs]
        ready = forker_of(agent)
        assert {ready} == {processes.living()[pid] for pid in pids}
        for run_id, pid in zip(runs, pids, strict=True):
            assert (pid, "/") == (os.getsid(pid), os.readlink(f"/proc/{pid}/cwd"))
            streams = [os.readlink(f"/proc/{pid}/fd/{number}") for number in (0, 1, 2)]
            assert ["/dev/null", "/dev/null", str(relay.run_dir(run_id) / paths.STDERR)] == streams
            assert processes.is_marked(pid, run_id)
            (relay.run_dir(run_id) / paths.RUNNER).unlink()  # as before it is written
            assert [pid] == list(living_wrappers(run_id, str(relay.run_dir(run_id))))
        assert not [path for path in opened_by(pids[1]) if runs[0] in path]
    assert not Path(f"/proc/{ready}").exists()
    async with hosting(tmp_path / "spool") as agent:
        relay.agent = agent
        for run_id in runs:
            await relay.stop(run_id, force=True)
        assert "killed" == (await relay.pull_end(*runs)).reason


async def test_a_forker_that_died_is_missed_by_nobody(tmp_path: Path) -> None:
    """A run that finds the forker dead still starts, and the next run gets a new forker."""
    async with hosting(tmp_path / "spool") as agent:
        relay = Asking(agent)
        await relay.pull_end(await relay.begin("answer 1"))
        before = forker_of(agent)
        os.kill(before, signal.SIGKILL)
        assert "2" == (await relay.pull_end(await relay.begin("answer 2"))).final_text
        assert "3" == (await relay.pull_end(await relay.begin("answer 3"))).final_text
        assert before != forker_of(agent)


async def test_a_forker_that_stands_still(tmp_path: Path) -> None:
    """A stopped forker is waited for only briefly, and the run starts once, in another wrapper."""
    async with hosting(tmp_path / "spool") as agent:
        relay = Asking(agent)
        await relay.pull_end(await relay.begin("answer 1"))
        ours = agent._forker._socket
        assert ours is not None
        ours.settimeout(0.3)  # instead of `ANSWER_S`, which a forker that starts may need
        os.kill(forker_of(agent), signal.SIGSTOP)
        run_id = await relay.begin(f"bash echo x >> {tmp_path}/starts", "answer 2")
        assert "2" == (await relay.pull_end(run_id)).final_text
    assert "x\n" == (tmp_path / "starts").read_text()


def test_a_killed_owner(tmp_path: Path) -> None:
    """A forker ends when its owner is killed."""
    command = [sys.executable, "-P", "-c", OWNER, str(tmp_path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as owner:
        assert owner.stdout
        pid = int(owner.stdout.readline())
        started = processes.start_time(pid)
        owner.kill()
    assert started is not None
    wait_until(lambda: not processes.is_alive(pid, started), "the end of the forker")
