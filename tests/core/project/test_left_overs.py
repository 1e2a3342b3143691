"""Processes left by a run whose wrapper died are ended when the run is finished."""

from __future__ import annotations

import os
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path

import pytest
from subdeck.core import paths
from subdeck.core.paths import Project, new_run_id
from subdeck.core.project.diagnosis import Evidence, explain
from subdeck.core.project.liveness import Proof, reconcile
from subdeck.core.project.registry import Registry
from subdeck.core.run import artifacts, describe
from subdeck.core.run.events import RunStarted
from subdeck.core.system import cgroup, processes, termination

from tests.factories import lives, make_result, wait_until_gone
from tests.waiting import wait_until

from .lost_runs import SLEEPERS, abandoned, facts, no_sleepers, sleeper

pytestmark = pytest.mark.processes

__all__ = ["no_sleepers"]


@pytest.fixture
def project(project_dir: Path) -> Project:
    return Project(str(project_dir))


def test_what_a_lost_run_left_is_ended(project: Project) -> None:
    """Processes with the run's mark are ended; those of other runs are not."""
    run_id, _ = abandoned(project)
    ours, other = sleeper(SUBDECK_RUN_ID=run_id), sleeper(SUBDECK_RUN_ID=new_run_id())
    reconcile(project, run_id, by="test")
    wait_until_gone(ours)
    assert lives(other)


def test_a_child_without_its_mark_is_ended(project: Project) -> None:
    """An agent without its environment mark is found by pid and start time, and ended with its descendants."""
    child = subprocess.Popen(
        [sys.executable, "-c", "import subprocess; subprocess.run(['sleep', '1000'])"], start_new_session=True
    )
    SLEEPERS.append(child)
    (grandchild,) = wait_until(lambda: processes.descendants(child.pid), "the child's own child")
    began = processes.start_time(child.pid)
    started = RunStarted(seq=1, pid=1, child_pid=child.pid, child_pid_started=began, attempt=1, max_attempts=1)
    run_id, _ = abandoned(project, started)
    reconcile(project, run_id, by="test")
    wait_until_gone(child.pid, grandchild)


@pytest.mark.parametrize("boot", ["ours", "another", ""])
def test_a_child_that_only_an_event_names(project: Project, boot: str) -> None:
    """Without runner.json the agent is ended by its start event, if that is of this boot.

    The run is lost, and counts as started.
    """
    pid = sleeper()
    boot_id = processes.boot_id() if boot == "ours" else boot
    namespace = processes.pid_namespace()
    event = RunStarted(
        seq=1,
        pid=1,
        child_pid=pid,
        child_pid_started=processes.start_time(pid),
        boot_id=boot_id,
        pid_namespace=namespace,
        attempt=1,
        max_attempts=1,
    )
    run_id, directory = abandoned(project, event)
    (directory / paths.RUNNER).unlink()
    (directory / paths.STDERR).write_text("a warning\n")
    assert Proof.FINISHED is reconcile(project, run_id, by="test")
    result = artifacts.read_result(str(directory))
    assert result is not None and "lost" == result.reason
    assert lives(pid) is (boot != "ours")


def test_a_child_that_only_runner_json_names(project: Project) -> None:
    """If a wrapper was killed before the first event, its agent is found in runner.json."""
    pid = sleeper()
    run_id, _ = abandoned(project, runner=facts(child_pid=pid, child_pid_started=processes.start_time(pid)))
    reconcile(project, run_id, by="test")
    wait_until_gone(pid)


@pytest.mark.parametrize("call", ["listdir", "scandir"])
def test_a_fault_while_looking_is_no_proof(project: Project, monkeypatch: pytest.MonkeyPatch, call: str) -> None:
    """If processes or groups cannot be listed, the run stays unknown until a later check."""
    run_id, _ = abandoned(project)
    pid = sleeper(SUBDECK_RUN_ID=run_id)

    def fail(path: object = ".") -> object:
        if str(path).startswith(("/proc", "/sys")):
            raise OSError(5, "Input/output error", path)
        return real(path)

    real = getattr(os, call)
    monkeypatch.setattr(os, call, fail)
    if call == "scandir" and cgroup.own() is None:
        pytest.skip("there are no control groups here")
    assert (Proof.UNKNOWN, True) == (reconcile(project, run_id, by="test"), lives(pid))
    monkeypatch.undo()
    assert Proof.FINISHED is reconcile(project, run_id, by="test")
    wait_until_gone(pid)


def test_a_result_that_was_prepared_says_what_lives(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    """A prepared result gets the processes that could not be ended, which its wrapper did not know."""
    run_id, directory = abandoned(project)
    pid = sleeper(SUBDECK_RUN_ID=run_id)
    artifacts.prepare_result(str(directory), make_result(run_id))
    monkeypatch.setattr(processes, "send", lambda *_: False)
    monkeypatch.setattr(termination, "PERSISTENCE_S", 0.05)
    reconcile(project, run_id, by="test")
    result = artifacts.read_result(str(directory))
    assert result is not None
    assert ("completed", (f"sleep (pid {pid})",)) == (result.status, result.not_ended)


def test_one_look_that_finds_nothing_is_no_proof(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    """A process that one search misses, while it forks or loads its program, is found by the next."""
    run_id, _ = abandoned(project)
    pid = sleeper(SUBDECK_RUN_ID=run_id)
    marked, misses = processes.marked, [None, None]
    monkeypatch.setattr(processes, "marked", lambda wanted: misses.pop() or [] if misses else marked(wanted))
    reconcile(project, run_id, by="test")
    wait_until_gone(pid)


def test_who_cannot_look_finishes_nothing(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    """If processes cannot be listed a run is not finished, because its leftover processes are unknown."""
    run_id, directory = abandoned(project)
    names = os.listdir
    monkeypatch.setattr(os, "listdir", lambda path=".": [] if path == "/proc" else names(path))
    assert Proof.UNKNOWN is reconcile(project, run_id, by="test")
    assert artifacts.read_result(str(directory)) is None
    monkeypatch.undo()
    assert Proof.FINISHED is reconcile(project, run_id, by="test")


def test_what_cannot_be_ended_is_told(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    """A process that cannot be ended is named in the result, in the row, and in the line about the run's end."""
    run_id, directory = abandoned(project)
    pid = sleeper(SUBDECK_RUN_ID=run_id)
    monkeypatch.setattr(processes, "send", lambda *_: False)
    monkeypatch.setattr(termination, "PERSISTENCE_S", 0.05)
    reconcile(project, run_id, by="test")
    result = artifacts.read_result(str(directory))
    assert result is not None and (f"sleep (pid {pid})",) == result.not_ended
    registry = Registry(project, by="test")
    registry.look([run_id], prove=True)
    (run,) = registry.snapshots()
    words = f"could not be ended: sleep (pid {pid})"
    assert words in describe.doing(run)
    assert words in explain(run, Evidence(), datetime.now(UTC))


def test_a_pid_that_is_somebody_elses_now(project: Project) -> None:
    """A process that started at another time than the run's agent is not ended."""
    pid = sleeper()
    began = processes.start_time(pid)
    assert began is not None
    started = RunStarted(seq=1, pid=1, child_pid=pid, child_pid_started=began - 1, attempt=1, max_attempts=1)
    run_id, _ = abandoned(project, started)
    assert Proof.FINISHED is reconcile(project, run_id, by="test")
    assert lives(pid)
