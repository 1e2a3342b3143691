"""Runs on hosts reached by ssh: launcher, relay, ssh, agent and wrapper are separate processes."""

from __future__ import annotations

import random
import shutil
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from subdeck.core import paths
from subdeck.core.engine import Engine
from subdeck.core.run.describe import status_line
from subdeck.core.run.placement import Place, PlaceState, read_place
from subdeck.core.run.snapshot import RunSnapshot
from subdeck.core.runners.hosts import RELAY, see_to_relay
from subdeck.core.system import files, processes

from tests.core.command_line import subdeck
from tests.core.hosts.sshd import SshHost
from tests.factories import open_engine, request, result_of, run_dir, start, wait_for_end
from tests.repositories import git, make_repository
from tests.waiting import wait_until

MIRRORED = (paths.STDERR, paths.STDOUT, paths.TRANSCRIPT, paths.EVENTS)

pytestmark = [pytest.mark.timeout(180), pytest.mark.processes]


def relays(engine: Engine) -> list[int]:
    return [pid for pid in processes.living() if [RELAY, engine.project.root] == processes.arguments(pid)[4:6]]


def end_relay(engine: Engine, number: int = signal.SIGTERM) -> None:
    for pid in relays(engine):
        started = processes.start_time(pid)
        assert started
        processes.send(pid, number, started)
    wait_until(lambda: not relays(engine), "the relay to end")


@pytest.fixture
def engine(project_dir: Path, home: Path) -> Iterator[Engine]:
    """A project whose runs go to h1 and h2."""
    engine = open_engine(project_dir, runner="hosts", hosts={"ssh": ["h1", "h2"], "ssh_slots": 2, "reach": "2s"})
    yield engine
    end_relay(engine)


@pytest.fixture
def hosts(world: Path, engine: Engine) -> Iterator[dict[str, SshHost]]:
    with SshHost(world, "h1") as h1, SshHost(world, "h2") as h2:
        for host in (h1, h2):
            host.take_settings()
        yield {"h1": h1, "h2": h2}


def seen(engine: Engine, run: RunSnapshot) -> RunSnapshot:
    (found,) = engine.snapshots((run.run_id,))
    return found


def host_of(engine: Engine, run: RunSnapshot, hosts: dict[str, SshHost]) -> SshHost:
    """Return the host with a run in its spool."""
    found = [host for host in hosts.values() if list(host.home.rglob(run.run_id))]
    assert 1 == len(found), f"{run.run_id} is on {len(found)} hosts"
    return found[0]


def text(engine: Engine, run: RunSnapshot) -> bytes:
    return files.content(str(run_dir(engine, run) / paths.EVENTS))


def assert_mirrored(engine: Engine, run: RunSnapshot, host: SshHost) -> None:
    (there,) = wait_until(lambda: list(host.home.rglob(f"done/{run.run_id}")), "the word that all of it is here")
    for name in MIRRORED:
        assert files.content(str(there / name)) == files.content(str(run_dir(engine, run) / name)), name


def test_runs_go_to_hosts_and_end_here(engine: Engine, hosts: dict[str, SshHost], project_dir: Path) -> None:
    """Runs are spread over the hosts by their slots, and their files arrive byte for byte."""
    scripts = [("say Hello.", "wait-for go", f"answer {number}") for number in range(6)]
    launched = engine.launch([request(*script) for script in scripts], background=True)
    wait_until(lambda: 4 == [seen(engine, run).status for run in launched].count("running"), "both hosts to be full")
    (project_dir / "go").touch()
    ended = [wait_for_end(engine, run.run_id) for run in launched]
    assert {f"answer {number}" for number in range(6)} == {
        f"answer {result_of(engine, run).final_text}" for run in ended
    }
    assert {"completed"} == {run.status for run in ended}
    for run in ended:
        assert_mirrored(engine, run, host_of(engine, run, hosts))
    assert hosts.keys() == {host_of(engine, run, hosts).name for run in ended}


def test_a_cut_changes_nothing(engine: Engine, hosts: dict[str, SshHost], project_dir: Path) -> None:
    """Lost connections are made again: the agent starts once, and nothing is lost or doubled."""
    run = start(engine, "bash echo x >> starts", "say-many 300", "wait-for go", "say-many 300", "answer 42")
    wait_until(lambda: text(engine, run).count(b"\n") > 200, "its first words")
    host = host_of(engine, run, hosts)
    for _ in range(3):
        connections = set(host.connections)
        host.cut()
        wait_until(lambda before=connections: set(host.connections) - before, "another connection")
    (project_dir / "go").touch()
    ended = wait_for_end(engine, run.run_id)
    assert ("completed", "42") == (ended.status, result_of(engine, run).final_text)
    assert_mirrored(engine, run, host)
    assert "x\n" == (project_dir / "starts").read_text()


def test_a_host_out_of_reach_is_said_and_comes_back(
    engine: Engine, hosts: dict[str, SshHost], project_dir: Path
) -> None:
    """Runs of an unreachable host are unknown, never lost; they finish there, and here once the host is back."""
    run = start(engine, "say Hello.", "wait-for go", "answer 42")
    wait_until(lambda: "running" == seen(engine, run).status, "the run to run")
    host = wait_until(lambda: host_of(engine, run, hosts), "its host")
    host.stop()

    def away_at() -> Place | None:
        place = read_place(str(run_dir(engine, run)))
        return place if place and place.state is PlaceState.OUT_OF_REACH else None

    assert wait_until(away_at, "the host to be out of reach").host in (processes.host(), host.name)
    away = seen(engine, run)
    assert away.is_out_of_reach
    assert not away.has_ended
    (project_dir / "go").touch()
    host.start()
    assert "42" == result_of(engine, wait_for_end(engine, run.run_id)).final_text
    assert_mirrored(engine, run, host)


def test_a_relay_that_was_killed_is_followed_by_another(
    engine: Engine, hosts: dict[str, SshHost], project_dir: Path
) -> None:
    """The next relay finds the run on its host by its permit, and vouches for it."""
    run = start(engine, "bash echo x >> starts", "say Hello.", "wait-for go", "answer 42")
    wait_until(lambda: b"Hello" in text(engine, run), "its first words")
    end_relay(engine, signal.SIGKILL)
    wait_until(lambda: seen(engine, run).elsewhere, "nobody to vouch for it")
    see_to_relay(engine.project)
    wait_until(lambda: not seen(engine, run).elsewhere, "the next relay to vouch for it")
    (project_dir / "go").touch()
    assert "42" == result_of(engine, wait_for_end(engine, run.run_id)).final_text
    assert "x\n" == (project_dir / "starts").read_text()


def test_what_is_asked_of_a_run_reaches_its_host(engine: Engine, hosts: dict[str, SshHost]) -> None:
    """A stop request ends the agent on its host, and the result names the sender."""
    run = start(engine, "say Working.", "hang")
    wait_until(lambda: "running" == seen(engine, run).status, "the run to run")
    engine.stop([run.run_id])
    ended = wait_for_end(engine, run.run_id)
    assert ("aborted", "stopped") == (ended.status, result_of(engine, ended).reason)


def test_a_run_for_a_host_that_is_not_there_says_why(engine: Engine, world: Path) -> None:
    """While no host can be reached, a run waits and shows ssh's reason."""
    with SshHost(world, "h1", has_subdeck=False), SshHost(world, "h2", has_subdeck=False):
        run = start(engine, "answer 42")
        for name in ("h1", "h2"):
            fault = f"{name}: subdeck is not installed there".encode()
            wait_until(lambda fault=fault: fault in files.content(engine.project.hosts_file), f"the fault of {name}")
        why = "queued · h1: subdeck is not installed there"
        wait_until(lambda: status_line(seen(engine, run)).startswith(why), "the reason")
        engine.stop([run.run_id])
        assert "stopped" == result_of(engine, wait_for_end(engine, run.run_id)).reason


def test_the_command_line_runs_on_a_host(engine: Engine, hosts: dict[str, SshHost]) -> None:
    """`subdeck run` prints the answer of a run on a host; `subdeck hosts` lists hosts of equal names by address."""
    done = subdeck("run", "--no-preset", "answer 42", cwd=Path(engine.project.root))
    assert (0, "42\n") == (done.code, done.out), done.err

    def both() -> Any:
        found = subdeck("hosts", "--json", cwd=Path(engine.project.root)).document["hosts"]
        return found if 2 == len(found) else None

    listed = wait_until(both, "the hosts to be listed")
    (other,) = {host["name"] for host in listed} - {processes.host()}
    assert other in ("h1", "h2")


def test_the_doctor_asks_each_host(engine: Engine, world: Path) -> None:
    """Every host is examined without a relay; one without subdeck gets advice, even if its answer is late."""
    with SshHost(world, "h1") as h1, SshHost(world, "h2", has_subdeck=False) as h2:
        h1.take_settings()
        h2.write_program("sleep 1; exit 127")
        done = subdeck("hosts", "doctor", "--json", cwd=Path(engine.project.root))
    assert 1 == done.code, done.err
    checks = {host["host"]: host["checks"] for host in done.document["hosts"]}
    assert {None, processes.host()} == checks.keys()
    (fault,) = (check for check in checks[None] if check["name"] == "reach")
    assert fault["detail"].startswith("ssh: h2: subdeck is not installed there")
    assert "pip install subdeck" in fault["fix"]
    assert not relays(engine)


def test_the_files_travel_too(world: Path, home: Path, project_dir: Path) -> None:
    """With `code: git` a run works on a host with the local files, and its changes come back as a branch."""
    shutil.rmtree(project_dir / ".git")
    make_repository(project_dir)
    (project_dir / "a.txt").write_text("not committed\n")
    (project_dir / "large").write_bytes(random.Random(1).randbytes(3_000_000))
    engine = open_engine(project_dir, runner="hosts", hosts={"ssh": ["h1"], "code": "git"})
    with SshHost(world, "h1") as h1:
        h1.take_settings()
        try:
            run = wait_for_end(engine, start(engine, "bash cat a.txt large > b.txt", "answer 42").run_id)
        finally:
            end_relay(engine)
    result = result_of(engine, run)
    assert ("completed", "42") == (run.status, result.final_text)
    assert result.branch
    assert "a.txt\nb.txt\nlarge" == git(project_dir, "diff", "--name-only", "main", result.branch)
    assert "not committed" == git(project_dir, "show", f"{result.branch}:a.txt")
    assert not (project_dir / "b.txt").exists()
