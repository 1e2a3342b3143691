"""Runs that wait for each other: groups, the cap of a project, and the order in the queue."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest
from subdeck.core.engine import Engine
from subdeck.core.errors import SubdeckError
from subdeck.core.run.events import RunQueued, RunStarted
from subdeck.core.run.snapshot import RunSnapshot

from tests.factories import ahead_of, end_of, events_of, open_engine, request, run_to_end, start, started, wait_for_end
from tests.waiting import wait_until

pytestmark = [pytest.mark.quick, pytest.mark.processes]


def status(engine: Engine, ids: list[str]) -> list[str]:
    return sorted(run.status.value for run in engine.snapshots(ids))


def test_a_group(project_dir: Path, tmp_path: Path) -> None:
    """At most max_parallel runs of a group run at a time, and all complete with their own answers."""
    engine = open_engine(project_dir, max_parallel=2)
    gate = tmp_path / "gate"
    script = (f"touch {tmp_path}/in-%d", f"wait-for {gate}", "answer number %d")
    requests = [request(*(line.replace("%d", str(number)) for line in script)) for number in range(5)]
    runs = engine.launch(requests, background=False)
    ids = [run.run_id for run in runs]
    assert [(index, 5, 2) for index in range(5)] == [
        (run.meta.group.index, run.meta.group.size, run.meta.group.max_parallel) for run in runs if run.meta.group
    ]
    assert 1 == len({run.meta.group.id for run in runs if run.meta.group})
    wait_until(lambda: len(list(tmp_path.glob("in-*"))) == 2, "two children at work")
    assert ["queued"] * 3 + ["running"] * 2 == status(engine, ids)
    gate.touch()
    ends = engine.wait(ids, timeout=30)
    assert [f"number {number}" for number in range(5)] == [end_of(run).message for run in ends]
    assert 3 <= sum(isinstance(events_of(engine, run)[0], RunQueued) for run in ends)


def test_never_more_than_allowed(project_dir: Path, tmp_path: Path) -> None:
    """There are never more running agents of a group than slots."""
    counter = tmp_path / "child.py"
    counter.write_text(
        "import os, time\n"
        "open(f'in/{os.getpid()}', 'w').close()\n"
        "time.sleep(0.03)\n"
        "print(len(os.listdir('in')), file=open(f'seen-{os.getpid()}', 'w'))\n"
        "os.unlink(f'in/{os.getpid()}')\n"
    )
    (tmp_path / "in").mkdir()
    import sys

    engine = open_engine(project_dir, [sys.executable, "-I", "-S", str(counter)], max_parallel=3)
    runs = engine.launch([request("-", cwd=str(tmp_path)) for _ in range(12)], background=False)
    engine.wait([run.run_id for run in runs], timeout=60)
    seen = [int(file.read_text()) for file in tmp_path.glob("seen-*")]
    assert (12, True) == (len(seen), max(seen) <= 3)


def test_who_goes_first(project_dir: Path) -> None:
    """A launch reports each run's position in the queue; later snapshots agree, of one run or of all."""
    engine = open_engine(project_dir, max_parallel=1)
    runs = engine.launch([request("hang") for _ in range(4)], background=False)

    def aheads(snapshots: tuple[RunSnapshot, ...]) -> list[int | None]:
        waiting = sorted(snapshots, key=lambda run: run.meta.group.index if run.meta.group else -1)
        return [ahead_of(run) for run in waiting if run.status == "queued"]

    assert [0, 1, 2] == aheads(runs) == aheads(engine.snapshots())
    alone = [one for run in runs for one in engine.snapshots([run.run_id])]
    assert [0, 1, 2] == aheads(tuple(alone))
    engine.stop([run.run_id for run in runs])
    engine.wait([run.run_id for run in runs], timeout=30)


def test_two_groups_do_not_wait_for_each_other(project_dir: Path) -> None:
    """Groups do not share slots."""
    engine = open_engine(project_dir, max_parallel=1)
    first = engine.launch([request("hang"), request("hang")], background=False)
    second = engine.launch([request("answer a"), request("answer b")], background=False)
    ends = engine.wait([run.run_id for run in second], timeout=30)
    assert ["completed", "completed"] == [run.status for run in ends]
    assert ["queued", "running"] == status(engine, [run.run_id for run in first])
    engine.stop([run.run_id for run in first])
    engine.wait([run.run_id for run in first], timeout=30)


def test_the_cap_of_a_project(project_dir: Path, tmp_path: Path) -> None:
    """At most max_running runs of a project run at a time, across launchers and groups."""
    engine = open_engine(project_dir, max_running=2, max_parallel=4)
    other = Engine.open(str(project_dir), session="other")
    gate = tmp_path / "gate"
    script = (f"wait-for {gate}", "answer ok")
    runs = [start(engine, *script), *other.launch([request(*script)] * 3, background=False), start(other, *script)]
    ids = [run.run_id for run in runs]
    wait_until(lambda: status(engine, ids).count("running") == 2, "two to run")
    assert ["queued"] * 3 + ["running"] * 2 == status(engine, ids)
    assert [0, 1, 2] == sorted(ahead for run in engine.snapshots(ids) if (ahead := ahead_of(run)) is not None)
    gate.touch()
    assert ["completed"] * 5 == [run.status for run in engine.wait(ids, timeout=30)]


def test_a_slot_goes_with_its_wrapper(project_dir: Path) -> None:
    """The slot of a killed wrapper is free at once."""
    engine = open_engine(project_dir, max_parallel=1)
    runs = engine.launch([request("hang"), request("hang"), request("hang")], background=False)
    for _ in range(3):
        (running,) = wait_until(
            lambda: [run for run in engine.snapshots() if run.status == "running"], "the next one to run"
        )
        os.kill(started(engine, running).pid, signal.SIGKILL)
        assert "lost" == wait_for_end(engine, running.run_id).reason
    assert ["failed"] * 3 == [run.status for run in engine.wait([run.run_id for run in runs], timeout=30)]


def test_waiting_is_light(project_dir: Path) -> None:
    """A waiting run has one small process without the modules for supervision."""
    engine = open_engine(project_dir, max_running=1)
    first = start(engine, "hang")
    running = started(engine, first)
    second = start(engine, "answer ok")
    from subdeck.core.run import artifacts
    from subdeck.core.system import processes

    facts = artifacts.read_runner(engine.project.run_dir(second.run_id))
    assert facts is not None
    assert [] == processes.descendants(facts.pid)
    assert "msgspec" in Path(f"/proc/{running.pid}/maps").read_text()
    loaded = Path(f"/proc/{facts.pid}/maps").read_text()
    assert [False] * 4 == [name in loaded for name in ("msgspec", "_json", "_ctypes", "_posixsubprocess")]
    engine.stop([first.run_id])
    wait_for_end(engine, second.run_id)


def test_a_run_alone_is_no_group(project_dir: Path) -> None:
    """A single run does not wait and mentions no queue."""
    engine = open_engine(project_dir)
    run = run_to_end(engine, "answer ok")
    assert (None, True) == (run.meta.group, isinstance(events_of(engine, run)[0], RunStarted))


def test_all_or_none(project_dir: Path) -> None:
    """If one request cannot be launched, none is."""
    engine = open_engine(project_dir)
    with pytest.raises(SubdeckError, match="does not exist"):
        engine.launch([request("answer ok"), request("answer ok", cwd="/no/such/place")], background=False)
    assert () == engine.snapshots()
