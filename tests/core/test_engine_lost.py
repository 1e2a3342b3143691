"""Killed wrappers, agents and launchers: every later reader sees the true state."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from msgspec.structs import replace
from subdeck.core.engine import Engine
from subdeck.core.errors import SubdeckError
from subdeck.core.run import artifacts
from subdeck.core.run.snapshot import RunSnapshot
from subdeck.core.system import processes

from tests.factories import (
    ahead_of,
    end_of,
    lives,
    make_finished,
    make_run,
    open_engine,
    pid_in,
    result_of,
    rewrite_meta,
    run_dir,
    run_to_end,
    start,
    started,
    wait_for_end,
    wait_until_gone,
    write_runner,
    write_settings,
)
from tests.waiting import wait_until

pytestmark = pytest.mark.processes


@pytest.fixture
def engine(project_dir: Path) -> Engine:
    return open_engine(project_dir)


@pytest.fixture
def other(engine: Engine, project_dir: Path) -> Engine:
    """Another engine on the same project."""
    return Engine.open(str(project_dir), session="other", kind="app")


def busy(engine: Engine, place: Path) -> tuple[RunSnapshot, int, list[int]]:
    """Start a run with two detached processes; return it, its wrapper's pid, and the pids of its processes."""
    run = start(engine, f"detach {place}/a", "say Working.", "deaf", f"touch {place}/deaf", "hang")
    pids = started(engine, run)
    wait_until((place / "deaf").exists, "the child to be deaf")
    return run, pids.pid, [pids.child_pid, pid_in(place / "a")]


@pytest.mark.parametrize("who", ["launching", "other"])
def test_a_killed_wrapper(engine: Engine, other: Engine, tmp_path: Path, who: str) -> None:
    """Either engine's next snapshot shows the run as lost, even with a zombie wrapper, and its processes end."""
    run, wrapper, left = busy(engine, tmp_path)
    os.kill(wrapper, signal.SIGKILL)
    wait_until(lambda: not lives(wrapper), "the wrapper to die")
    assert processes.start_time(wrapper) is not None, "it was reaped, so the test proves nothing"
    looker, name = (engine, "cli") if who == "launching" else (other, "app")
    (seen,) = looker.snapshots([run.run_id])
    assert ("failed", "lost") == (seen.status, seen.reason)
    assert name == result_of(engine, run).written_by
    assert [False, False] == [lives(pid) for pid in left]
    assert [seen] == list(engine.snapshots()) == list(other.snapshots())


def test_a_wrapper_killed_while_followed(engine: Engine, other: Engine, tmp_path: Path) -> None:
    """A process that waits for a run sees on its own that the run is lost."""
    run, wrapper, left = busy(engine, tmp_path)
    os.kill(wrapper, signal.SIGKILL)
    (seen,) = other.wait([run.run_id], timeout=30)
    assert ("failed", "lost") == (seen.status, seen.reason)
    wait_until_gone(*left)


def test_a_killed_wrapper_of_a_queued_run(project_dir: Path) -> None:
    """If a queued run's wrapper is killed, the run is lost and the next one in the queue starts."""
    engine = open_engine(project_dir, max_running=1)
    first = start(engine, "hang")
    started(engine, first)
    second, third = start(engine, "answer two"), start(engine, "answer three")
    facts = artifacts.read_runner(str(run_dir(engine, second)))
    assert facts is not None
    os.kill(facts.pid, signal.SIGKILL)
    assert "lost" == wait_for_end(engine, second.run_id).reason
    engine.stop([first.run_id])
    assert "completed" == wait_for_end(engine, third.run_id).status


LAUNCHER = """
import os, sys
from subdeck.core.engine import Engine
from subdeck.core.spec.request import RunRequest
engine = Engine.open()
requests = [RunRequest(task=task) for task in sys.argv[1:]]
runs = engine.launch(requests, background=False)
print(*(run.run_id for run in runs), flush=True)
engine.wait([run.run_id for run in runs])
"""


def test_a_killed_launcher(project_dir: Path, tmp_path: Path) -> None:
    """Runs of a killed launcher continue, queued ones too, and end normally."""
    write_settings(max_parallel=1)
    gate = tmp_path / "gate"
    tasks = [f"wait-for {gate}\nanswer ok"] * 3
    with subprocess.Popen(
        [sys.executable, "-c", LAUNCHER, *tasks], cwd=project_dir, stdout=subprocess.PIPE, text=True
    ) as launcher:
        assert launcher.stdout is not None
        ids = launcher.stdout.readline().split()
        launcher.kill()
    engine = Engine.open(str(project_dir))
    assert ["queued", "queued", "running"] == sorted(run.status for run in engine.snapshots(ids))
    gate.touch()
    ends = engine.wait(ids, timeout=30)
    assert [("completed", "wrapper")] * 3 == [(run.status, result_of(engine, run).written_by) for run in ends]


def test_a_launcher_killed_between_two_steps(project_dir: Path) -> None:
    """A run whose launcher died before starting the wrapper is lost, and leaves no activity file."""
    engine = open_engine(project_dir)
    meta, lock = make_run(engine.project)
    assert [("queued", 0)] == [(run.status, ahead_of(run)) for run in engine.snapshots()]
    os.close(lock)
    assert ["lost"] == [run.reason for run in engine.snapshots()]
    assert [] == os.listdir(engine.project.active)
    assert meta.run_id == engine.snapshots()[0].run_id


def test_a_run_of_another_machine(engine: Engine, tmp_path: Path) -> None:
    """A run of another machine is unknown: it cannot be stopped, is never signalled, and can be deleted."""
    run, wrapper, left = busy(engine, tmp_path)
    os.kill(wrapper, signal.SIGKILL)
    wait_until(lambda: not lives(wrapper), "the wrapper to die")
    directory = str(run_dir(engine, run))
    facts = artifacts.read_runner(directory)
    assert facts is not None
    write_runner(directory, replace(facts, host="another", boot_id="another"))
    (seen,) = engine.snapshots()
    assert (True, "running", None) == (seen.elsewhere, seen.status, seen.reason)
    with pytest.raises(SubdeckError, match="another machine, boot"):
        engine.stop([run.run_id], force=True)
    assert [True, True] == [lives(pid) for pid in left]
    assert (run.run_id,) == engine.delete([run.run_id])
    assert ((), [], [True, True]) == (
        engine.snapshots(),
        os.listdir(engine.project.active),
        [lives(pid) for pid in left],
    )
    for pid in left:
        os.kill(pid, signal.SIGKILL)


def test_a_missing_doorbell(engine: Engine) -> None:
    """A run without its activity file is found, followed to its end, and reported."""
    gate = Path(engine.project.root, "gate")
    run = start(engine, f"wait-for {gate}", "answer ok")
    started(engine, run)
    os.unlink(os.path.join(engine.project.active, run.run_id))
    gate.touch()
    assert ("completed", "ok") == ((seen := wait_for_end(engine, run.run_id)).status, end_of(seen).message)


def test_a_missing_doorbell_directory(engine: Engine) -> None:
    """Without any activity files runs are still listed and followed."""
    gate = Path(engine.project.root, "gate")
    run = start(engine, f"wait-for {gate}", "answer ok")
    started(engine, run)
    os.unlink(os.path.join(engine.project.active, run.run_id))
    os.rmdir(engine.project.active)
    assert ["running"] == [seen.status for seen in engine.snapshots()]
    gate.touch()
    assert "completed" == wait_for_end(engine, run.run_id).status


def test_stale_doorbells_are_taken_away(engine: Engine) -> None:
    """The activity file of a finished or missing run does not count as an unfinished run, and is removed."""
    done = make_finished(engine.project)
    os.makedirs(engine.project.active)
    for run_id in (done.run_id, "20200101-000000-abcdef"):
        Path(engine.project.active, run_id).touch()
    assert [done.run_id] == [run.run_id for run in engine.snapshots(last=1)]
    assert [] == os.listdir(engine.project.active)


def test_a_broken_result(engine: Engine) -> None:
    """A broken result.json of an earlier version makes a failed run with the reason, not a running one."""
    run = run_to_end(engine, "answer ok")
    rewrite_meta(run_dir(engine, run), resultSigned=False)
    (run_dir(engine, run) / "result.json").write_text('{"runId": "')
    (seen,) = engine.snapshots()
    assert ("failed", "lost") == (seen.status, seen.reason)
    what = "result.json is damaged: invalid JSON (empty or truncated)"
    assert f"the run's result is unknown: {what}" == end_of(seen).message


def test_a_broken_meta(engine: Engine) -> None:
    """A finished run with a broken meta.json is listed with its outcome, and can be deleted."""
    run = run_to_end(engine, "answer ok")
    cut = "invalid JSON (empty or truncated)"
    contents = {"": cut, '{"runId":': cut, json.dumps({"runId": run.run_id}): "object missing required field task"}
    for content, what in contents.items():
        (run_dir(engine, run) / "meta.json").write_text(content)
        (seen,) = engine.snapshots()
        assert ("completed", f"(meta.json is damaged: {what})") == (seen.status, seen.meta.task)
    assert (run.run_id,) == engine.delete([run.run_id])


def test_a_strange_directory_among_the_runs(engine: Engine) -> None:
    """Other files and directories among the runs are ignored; a directory with a run's name is untrusted."""
    run = run_to_end(engine, "answer ok")
    for name in ("notes", ".hidden", "20260101-000000-ABCDEF"):
        os.mkdir(os.path.join(engine.project.runs, name))
    Path(engine.project.runs, "20260101-000000-abcdef").touch()
    seen = {seen.run_id: seen.foreign for seen in engine.snapshots()}
    assert {run.run_id: False, "20260101-000000-abcdef": True} == seen
