"""The wrapper's lock on its run: a removed or replaced lock does not prove that the wrapper is gone."""

from __future__ import annotations

import errno
import fcntl
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from subdeck.core import paths
from subdeck.core.engine import Engine
from subdeck.core.paths import Project
from subdeck.core.project import liveness
from subdeck.core.project.liveness import Proof, reconcile
from subdeck.core.run.snapshot import RunSnapshot
from subdeck.core.runners import standby
from subdeck.core.system import processes
from subdeck.core.wrapper._run_lock import RunHold

from tests.factories import make_run, open_engine, run_dir, start, started, wait_for_end, wait_until_gone
from tests.waiting import wait_until

pytestmark = pytest.mark.processes


def is_held(lock: Path) -> bool:
    """Return whether a process has locked a file."""
    try:
        descriptor = os.open(lock, os.O_RDWR)
    except FileNotFoundError:
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(descriptor)
    return False


def waiting(engine: Engine, go: Path) -> RunSnapshot:
    run = start(engine, f"wait-for {go}", "answer ok")
    started(engine, run)
    return run


@pytest.mark.parametrize("is_replaced", [False, True])
def test_a_lock_that_is_taken_away(project_dir: Path, is_replaced: bool) -> None:
    """A run whose lock is removed stays running for every reader, and its wrapper soon holds another lock."""
    engine = open_engine(project_dir)
    run = waiting(engine, project_dir / "go")
    lock = run_dir(engine, run) / "lock"
    lock.unlink()
    if is_replaced:
        lock.touch()
    assert "running" == engine.snapshots([run.run_id])[0].status
    wait_until(lambda: is_held(lock), "the lock to be held again")
    assert "running" == engine.snapshots([run.run_id])[0].status
    (project_dir / "go").touch()
    assert ("completed", "done") == (wait_for_end(engine, run.run_id).status, engine.result(run.run_id).reason)


def test_the_lock_of_one_that_waits(project_dir: Path) -> None:
    """A queued run stays queued if its lock is removed."""
    engine = open_engine(project_dir, max_running=1)
    first, second = waiting(engine, project_dir / "go"), start(engine, "answer ok")
    lock = run_dir(engine, second) / "lock"
    wait_until(lambda: engine.snapshots([second.run_id])[0].status == "queued", "it to be queued")
    lock.unlink()
    assert "queued" == engine.snapshots([second.run_id])[0].status
    wait_until(lambda: is_held(lock), "the lock to be held again")
    (project_dir / "go").touch()
    assert ["completed"] * 2 == [wait_for_end(engine, run.run_id).status for run in (first, second)]


def test_without_lock_and_wrapper(project_dir: Path) -> None:
    """A run whose wrapper was killed is lost, even without its lock file."""
    engine = open_engine(project_dir)
    run = waiting(engine, project_dir / "go")
    (run_dir(engine, run) / "lock").unlink()
    wrapper = started(engine, run).pid
    os.kill(wrapper, signal.SIGKILL)
    wait_until_gone(wrapper)
    assert ("failed", "lost") == (wait_for_end(engine, run.run_id).status, engine.result(run.run_id).reason)


def test_a_lock_that_goes_before_the_wrapper_comes(project_dir: Path) -> None:
    """A wrapper recreates a missing lock of its run, but never a missing run."""
    project = Project(str(project_dir))
    meta, launcher = make_run(project)
    directory = Path(project.run_dir(meta.run_id))
    (directory / paths.LOCK).unlink()
    hold = RunHold(str(directory))
    assert hold.take()
    assert is_held(directory / paths.LOCK)
    hold.close()
    os.close(launcher)
    shutil.rmtree(directory)
    assert not RunHold(str(directory)).take()
    assert not directory.exists()


def test_a_deleted_run_is_not_made_again(project_dir: Path) -> None:
    """If all runs of a project are removed, the wrapper of one ends and leaves nothing in its place."""
    engine = open_engine(project_dir)
    run = waiting(engine, project_dir / "go")
    pids = started(engine, run)
    os.rename(engine.project.runs, project_dir / "taken away")
    wait_until_gone(pids.pid, pids.child_pid)
    assert () == engine.snapshots()


def test_who_cannot_look_believes_nobody_gone(project_dir: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """If the lock is missing and wrappers cannot be listed, the state of the run is unknown."""
    project = Project(str(project_dir))
    meta, lock = make_run(project)
    os.close(lock)
    Path(project.run_dir(meta.run_id), paths.LOCK).unlink()

    def too_many(run_id: str) -> list[int]:
        raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))

    monkeypatch.setattr(processes, "marked", too_many)
    assert Proof.UNKNOWN is reconcile(project, meta.run_id, by="test")
    monkeypatch.undo()
    assert Proof.FINISHED is reconcile(project, meta.run_id, by="test")


def test_one_that_stood_by_is_found(project_dir: Path) -> None:
    """A standby wrapper is found by its run even without runner.json."""
    engine = open_engine(project_dir)
    standby.start()
    run = waiting(engine, project_dir / "go")
    wrapper = started(engine, run).pid
    directory = run_dir(engine, run)
    (directory / paths.RUNNER).unlink()
    assert [wrapper] == list(liveness.living_wrappers(run.run_id, str(directory)))
    engine.stop([run.run_id], force=True)
    assert "killed" == wait_for_end(engine, run.run_id).reason


def test_what_becomes_the_agent_is_no_wrapper(project_dir: Path) -> None:
    """The wrapper's forked processes do not count as wrappers."""
    project = Project(str(project_dir))
    meta, lock = make_run(project)
    os.close(lock)
    code = "import os, signal; print(os.fork(), flush=True); signal.pause()"
    command = [sys.executable, "-I", "-S", "-c", code, "subdeck.core.wrapper"]
    environment = os.environ | {processes.RUN_MARK: meta.run_id}
    wrapper = subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True, start_new_session=True)
    try:
        assert wrapper.stdout is not None
        children = {int(wrapper.stdout.readline()), int(wrapper.stdout.readline())} - {0}
        assert {wrapper.pid, *children} == set(processes.marked(meta.run_id))
        assert [wrapper.pid] == list(liveness.living_wrappers(meta.run_id, project.run_dir(meta.run_id)))
    finally:
        os.killpg(wrapper.pid, signal.SIGKILL)
        wrapper.communicate()
