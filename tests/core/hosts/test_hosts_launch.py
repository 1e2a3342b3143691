"""Launching for hosts: the files left for the relay, the start of the relay, and the time needed."""

from __future__ import annotations

import os
import signal
import stat
import time
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest
from subdeck.core import paths
from subdeck.core.engine import Engine
from subdeck.core.run.artifacts import read_runner
from subdeck.core.runners import hosts
from subdeck.core.runners.hosts import Luggage, has_relay, read_luggage, see_to_relay
from subdeck.core.system import files

from tests.core.hosts.relaying import SETTINGS, relaying
from tests.factories import request, write_settings
from tests.waiting import wait_until

pytestmark = pytest.mark.processes

MANY = 200
SOON = 20.0
"""Seconds on a busy machine that also plays the hosts; one relay check per run would take twice as long."""


@pytest.fixture
def engine(project_dir: Path) -> Iterator[Engine]:
    """A project with a host in its settings; ends its relay afterwards."""
    write_settings(hosts={**SETTINGS, "env": ["A_KEY", "NOT_SET"]}, runner="hosts", checks={"tests": ["make", "test"]})
    engine = Engine.open(str(project_dir))
    yield engine
    end_relay(engine)


def relay_pid(engine: Engine) -> int:
    return int(files.content(engine.project.relay_lock) or b"0") if has_relay(engine.project) else 0


def end_relay(engine: Engine) -> None:
    if os.path.isdir(engine.project.runs) and (pid := relay_pid(engine)):
        os.kill(pid, signal.SIGTERM)
        wait_until(lambda: not has_relay(engine.project), "the relay to end")
    for relay in hosts._relays.values():
        relay.process.wait(10)
    hosts._relays.clear()


async def test_many_are_launched_soon(project_dir: Path, tmp_path: Path) -> None:
    """Launching many runs takes as long as one sign of the relay, however few hosts there are."""
    async with relaying(project_dir, tmp_path, 1) as there:
        began = time.monotonic()
        run_ids = await there.launch(*[("answer 1",)] * MANY)
        took = time.monotonic() - began
        assert MANY == len(run_ids)
        assert took < SOON, took
        there.engine.stop(run_ids)
        for run_id in run_ids:
            await there.end(run_id)


def test_a_launch_starts_one_relay(engine: Engine) -> None:
    """Launches start one relay, in its own process, which also takes runs whose launcher is gone."""
    runs = engine.launch([request("answer 1"), request("answer 2")], background=True)
    first = wait_until(lambda: relay_pid(engine), "a relay")
    assert {"queued"} == {run.status for run in runs}
    places = [Path(engine.project.run_dir(run.run_id), paths.PLACE) for run in runs]
    wait_until(lambda: all(place.exists() for place in places), "both to be taken up")
    engine.launch([request("answer 3")], background=True)
    see_to_relay(engine.project)
    assert first == relay_pid(engine)
    os.kill(first, signal.SIGKILL)
    wait_until(lambda: not has_relay(engine.project), "the relay to be gone")
    assert {"queued"} == {run.status for run in engine.snapshots()}
    assert not has_relay(engine.project), "a look starts no relay"
    engine.stop([run.run_id for run in engine.snapshots()])
    ended = engine.wait([run.run_id for run in engine.snapshots()], timeout=30)
    assert {"stopped"} == {run.reason for run in ended}
    assert first != relay_pid(engine)


def test_who_follows_revives_the_relay(engine: Engine) -> None:
    """A wait starts a relay if an open run has none."""
    (run,) = engine.launch([request("answer 1")], background=True)
    os.kill(wait_until(lambda: relay_pid(engine), "a relay"), signal.SIGKILL)
    wait_until(lambda: not has_relay(engine.project), "the relay to be gone")
    engine.wait([run.run_id], timeout=4)
    wait_until(lambda: relay_pid(engine), "another relay")


def test_a_child_agent_starts_no_relay(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    """An agent starts no relay, because it would be ended with the agent."""
    os.makedirs(engine.project.runs)
    monkeypatch.setenv(paths.CHILD, "1")
    see_to_relay(engine.project)
    assert not hosts._relays


def test_what_travels_is_left_in_a_private_file(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    """A private file has the launcher's named variables and the user's check; no other variables."""
    monkeypatch.setenv("A_KEY", "secret")
    (run,) = engine.launch([request("answer 1", check="tests")], background=True)
    run_dir = engine.project.run_dir(run.run_id)
    luggage = read_luggage(run_dir)
    assert {"A_KEY": "secret"} == luggage.env
    assert ["make", "test"] == msgspec.json.decode(luggage.check)["argv"]
    assert 0o600 == stat.S_IMODE(os.stat(os.path.join(run_dir, paths.ENVIRONMENT)).st_mode)
    facts = read_runner(run_dir)
    assert facts and ("", "", "", "") == (facts.host, facts.boot_id, facts.pid_namespace, facts.machine_id)
    engine.stop([run.run_id])
    engine.wait([run.run_id], timeout=30)
    assert not os.path.exists(os.path.join(run_dir, paths.ENVIRONMENT))


def test_luggage_that_is_broken_is_as_good_as_none(tmp_path: Path) -> None:
    """A run can be started with any content in the file; a broken file counts as empty."""
    assert Luggage() == read_luggage(str(tmp_path))
    (tmp_path / paths.ENVIRONMENT).write_bytes(b'{"env": [')
    assert Luggage() == read_luggage(str(tmp_path))
