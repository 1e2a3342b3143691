"""`subdeck hosts`: the hosts from the relay's list, or asked just now."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from subdeck.core import paths
from subdeck.core.engine import Engine
from subdeck.core.run.model import RunnerKind
from subdeck.core.run.placement import HostState, HostStates, Place, PlaceState, write_host_states, write_place
from subdeck.core.system import files

from tests.core.command_line import subdeck
from tests.core.hosts.clusters import UP_S, trial
from tests.factories import make_meta, make_run, open_engine
from tests.waiting import wait_until

pytestmark = [pytest.mark.processes, pytest.mark.usefixtures("forked_commands")]

H1 = HostState(
    name="h1",
    carrier="dask",
    in_reach=True,
    heard_at=paths.now_iso(),
    slots=4,
    used=3,
    runs=2,
    load=1.5,
    cores=8,
    memory_mb=2048,
    labels={"gpu": 2},
    subdeck="0.1.0",
    python="3.11.7",
    carrier_version="distributed 2026.8.0",
)
H2 = HostState(name="h2", carrier="ssh", heard_at="2026-01-01T10:00:00.000Z", slots=4, runs=1)
STATES = HostStates(at=paths.now_iso(), hosts=(H1, H2), faults=("ssh: h3: Permission denied (publickey)",))


@pytest.fixture
def engine(project_dir: Path) -> Engine:
    engine = open_engine(project_dir)
    Path(engine.project.runs).mkdir(parents=True)
    return engine


@contextmanager
def relay_of(engine: Engine) -> Iterator[None]:
    """Hold a project's relay lock, as a relay does."""
    lock = files.open_lock(engine.project.relay_lock)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
    finally:
        os.close(lock)


def test_no_hosts_are_set_up(project_dir: Path) -> None:
    """Without hosts, the output has the steps to add some."""
    open_engine(project_dir)
    done = subdeck("hosts", cwd=project_dir)
    assert (0, "") == (done.code, done.err)
    assert ("subdeck hosts try 3" in done.out, paths.user_settings_file() in done.out) == (True, True)
    assert {"hosts": [], "faults": [], "relay": False} == {
        key: value for key, value in subdeck("hosts", "--json", cwd=project_dir).document.items() if key != "at"
    }


def test_as_the_relay_knows_them(engine: Engine, project_dir: Path) -> None:
    """While a relay runs, its list is shown without asking the hosts, with unreachable hosts and faults."""
    write_host_states(engine.project, STATES)
    with relay_of(engine):
        done = subdeck("hosts", cwd=project_dir, COLUMNS="200")
        document = subdeck("hosts", "--json", cwd=project_dir).document
    first, second, _, counted, fault = done.out.splitlines()
    for words in ("h1", "● online", "3/4 slots", "2 runs", "load 1.5/8", "2.0 GB, gpu 2", "distributed 2026.8.0"):
        assert words in first
    assert ("? unreachable" in second, "1 run" in second) == (True, True)
    assert counted == "1 of 2 hosts online, 3 of 4 slots used"
    assert fault == "! ssh: h3: Permission denied (publickey)"
    assert (True, ["h1", "h2"], [2.0]) == (
        document["relay"],
        [host["name"] for host in document["hosts"]],
        list(document["hosts"][0]["labels"].values()),
    )
    assert (0.0, "") == (document["hosts"][1]["load"], document["hosts"][1]["python"])


def test_asked_where_no_relay_lives(project_dir: Path, tmp_path: Path) -> None:
    """Without a relay, the hosts are asked once. A missing host is listed while runs are on it."""
    with trial(2, cwd=tmp_path):
        engine = Engine.open(str(project_dir))
        meta, lock = make_run(engine.project, make_meta(runner=RunnerKind.HOSTS))
        other, other_lock = make_run(engine.project, make_meta(runner=RunnerKind.HOSTS))
        write_place(engine.project.run_dir(meta.run_id), Place(PlaceState.PLACED, host="h1"))
        write_place(engine.project.run_dir(other.run_id), Place(PlaceState.OUT_OF_REACH, host="gone"))
        write_host_states(engine.project, HostStates(at="", hosts=(H1, H2, HostState(name="gone", in_reach=True))))

        def asked() -> Any:
            document = subdeck("hosts", "--json", cwd=project_dir).document
            return document if sum(host["inReach"] for host in document["hosts"]) == 2 else None

        document = wait_until(asked, "both hosts to come up", UP_S)
        assert not document["relay"]
        assert [("h1", True, 1, 4), ("h2", True, 0, 4), ("gone", False, 1, 0)] == [
            (host["name"], host["inReach"], host["runs"], host["slots"]) for host in document["hosts"]
        ]
        os.close(lock)
        os.close(other_lock)


def test_an_unreachable_host_is_a_fault(project_dir: Path) -> None:
    """A host that ssh does not reach is a readable fault, and the rest is still listed."""
    open_engine(project_dir, hosts={"ssh": ["nosuch.invalid"]})
    done = subdeck("hosts", cwd=project_dir)
    assert done.code == 0
    assert "! ssh: " in done.out
    assert "nosuch.invalid" in done.out
