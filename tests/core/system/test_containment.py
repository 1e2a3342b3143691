"""Keeping a run's processes together: its own control group, otherwise marks and a list."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from subdeck.core import paths
from subdeck.core.engine import Engine
from subdeck.core.run import artifacts
from subdeck.core.run.model import StopRequest
from subdeck.core.run.snapshot import RunSnapshot
from subdeck.core.runners import standby
from subdeck.core.runners.process import WrapperCall
from subdeck.core.system import cgroup, processes

from tests.factories import (
    lives,
    open_engine,
    pid_in,
    run_dir,
    run_to_end,
    run_wrappers_with,
    start,
    started,
    wait_for_end,
    wait_until_gone,
)
from tests.waiting import wait_until

pytestmark = pytest.mark.processes


def group_for_tests() -> str | None:
    home = cgroup.own()
    return home if home and cgroup.can_make_groups(home) else None


needs_groups = pytest.mark.skipif(
    group_for_tests() is None, reason="no control group (v2) can be made below that of this process"
)


@pytest.fixture(params=[pytest.param("auto", marks=needs_groups), "off"])
def engine(request: pytest.FixtureRequest, project_dir: Path) -> Engine:
    """Open a project with control groups, and one without."""
    return open_engine(project_dir, cgroup=request.param)


def group_of(pid: int) -> str:
    lines = Path(f"/proc/{pid}/cgroup").read_text().splitlines()
    return next(line for line in lines if line.startswith("0::")).rpartition("/")[2]


def with_daemon(engine: Engine, place: Path) -> tuple[RunSnapshot, int]:
    """Start a run with a daemon unknown to parent and environment; return it and the daemon's pid."""
    run = start(engine, f"daemonise {place}/daemon", "say Working.", "hang")
    daemon = pid_in(place / "daemon")
    wait_until(lambda: parent_of(daemon) == started(engine, run).pid, "the daemon to be handed to the wrapper")
    return run, daemon


def parent_of(pid: int) -> int:
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2].split()[1])


def kill_wrapper(engine: Engine, run: RunSnapshot) -> None:
    wrapper = started(engine, run).pid
    os.kill(wrapper, signal.SIGKILL)
    wait_until(lambda: not lives(wrapper), "the wrapper to die")


@needs_groups
@pytest.mark.parametrize("stands_by", [False, True])
@pytest.mark.parametrize("is_hidden", [False, True], ids=["at once", "moved"])
def test_a_group_for_each_run(
    project_dir: Path, monkeypatch: pytest.MonkeyPatch, stands_by: bool, is_hidden: bool
) -> None:
    """The agent is in a group that is found by the run's id and removed with it, even without a fork into the group."""
    engine = open_engine(project_dir)
    if is_hidden:
        run_wrappers_with(monkeypatch, "cgroup._CLONE3 = -1")
    elif stands_by:
        standby.start()
    run = start(engine, "hang")
    pids = started(engine, run)
    assert f"subdeck-{run.run_id}" == group_of(pids.child_pid)
    group = cgroup.find(run.run_id)
    assert group is not None and [pids.child_pid] == cgroup.members(group)
    engine.stop([run.run_id])
    wait_for_end(engine, run.run_id)
    wait_until(lambda: cgroup.find(run.run_id) is None, "the group to be removed")


@pytest.mark.parametrize("stands_by", [False, True])
def test_a_daemon_of_a_killed_wrapper(engine: Engine, tmp_path: Path, stands_by: bool) -> None:
    """A process that left parent, session and environment is ended by the process that finishes a lost run."""
    if stands_by:
        standby.start()
    run, daemon = with_daemon(engine, tmp_path)
    listed = run_dir(engine, run) / paths.CHILDREN
    if cgroup.find(run.run_id) is None:
        wait_until(lambda: str(daemon) in listed.read_text().split(), "the daemon to be written down")
    kill_wrapper(engine, run)
    (seen,) = engine.snapshots([run.run_id])
    assert "lost" == seen.reason
    assert not lives(daemon)
    assert (None, False) == (cgroup.find(run.run_id), listed.exists())


def test_a_daemon_of_a_run_that_ends(engine: Engine, tmp_path: Path) -> None:
    """An agent's daemons are ended before its run is finished."""
    run = run_to_end(engine, f"daemonise {tmp_path}/daemon", "answer ok")
    assert ("completed", False) == (run.status, lives(pid_in(tmp_path / "daemon")))


@needs_groups
def test_a_group_is_found_wherever_it_is(project_dir: Path, tmp_path: Path) -> None:
    """A process in another group than the wrapper's can finish a run."""
    home = group_for_tests()
    assert home
    elsewhere = f"{home}/elsewhere-{os.getpid()}"
    os.mkdir(elsewhere)
    code = f"""
import sys
from subdeck.core.system import cgroup
cgroup.move_here({elsewhere!r})
from subdeck.core.engine import Engine
print(*(run.reason for run in Engine.open({str(project_dir)!r}).snapshots()))
"""
    engine = open_engine(project_dir)
    run, daemon = with_daemon(engine, tmp_path)
    kill_wrapper(engine, run)
    assert "lost\n" == subprocess.check_output([sys.executable, "-c", code], text=True)
    assert (False, None) == (lives(daemon), cgroup.find(run.run_id))
    os.rmdir(elsewhere)


@needs_groups
def test_who_looks_from_inside_lives_on(project_dir: Path, tmp_path: Path) -> None:
    """A process of a lost run that finishes it ends the other processes of its group and writes the result."""
    engine = open_engine(project_dir)
    run, daemon = with_daemon(engine, tmp_path)
    kill_wrapper(engine, run)
    code = f"""
from subdeck.core.system import cgroup
cgroup.move_here(cgroup.find({run.run_id!r}))
from subdeck.core.engine import Engine
print(*(run.reason for run in Engine.open({str(project_dir)!r}).snapshots()))
"""
    assert "lost\n" == subprocess.check_output([sys.executable, "-c", code], text=True)
    assert not lives(daemon)
    group = cgroup.find(run.run_id)
    assert group is not None, "who looked was in it"
    cgroup.remove(group)


@needs_groups
def test_empty_groups_are_taken_away(project_dir: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An empty group left by a killed wrapper is removed by a later one; a group in use is not."""
    home = group_for_tests()
    assert home
    empty, used = f"{home}/subdeck-20200101-000000-aaaaaa", f"{home}/subdeck-20200101-000000-bbbbbb"
    sleeper = subprocess.Popen(["sleep", "1000"])
    for group in (empty, used):
        os.mkdir(group)
    Path(used, cgroup.MEMBERS).write_text(str(sleeper.pid))
    monkeypatch.setattr(cgroup, "OLD_S", -1.0)
    cgroup.remove_old(home)
    there = [os.path.exists(empty), os.path.exists(used)]
    sleeper.kill()
    sleeper.wait()
    wait_until(lambda: cgroup.remove(used) or not os.path.exists(used), "the other group to be empty")
    assert [False, True] == there


@pytest.mark.parametrize("change", ["cgroup.own = lambda: {place!r}", "cgroup.make = lambda run_id: {place!r}"])
def test_no_group_no_matter(project_dir: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, change: str) -> None:
    """If no group can be made or entered, a run continues without one."""
    run_wrappers_with(monkeypatch, change.format(place=str(tmp_path)))
    engine = open_engine(project_dir)
    run, daemon = with_daemon(engine, tmp_path)
    listed = run_dir(engine, run) / paths.CHILDREN
    wait_until(lambda: str(daemon) in listed.read_text().split(), "the daemon to be written down")
    engine.stop([run.run_id])
    assert ("stopped", False) == (wait_for_end(engine, run.run_id).reason, lives(daemon))
    assert not list(tmp_path.glob("subdeck-*"))


def test_a_scope_by_setting(project_dir: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With `cgroup: scope` the wrapper is started by systemd under the run's name, without a standby wrapper."""
    program = tmp_path / "bin" / "systemd-run"
    program.parent.mkdir()
    program.write_text(
        f'#!/bin/sh\necho "$*" >{tmp_path}/asked\nwhile [ "$1" != -- ]; do shift; done\nshift\nexec "$@"\n'
    )
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{program.parent}:{os.environ['PATH']}")
    engine = open_engine(project_dir, cgroup="scope")
    run = run_to_end(engine, "answer ok")
    asked = (tmp_path / "asked").read_text()
    assert "completed" == run.status
    assert asked.startswith("--user --scope ") and run.run_id in asked


@pytest.mark.parametrize("how", ["process", "standby", pytest.param("tmux", marks=pytest.mark.tmux)])
def test_the_wrapper_wears_the_mark(project_dir: Path, how: str) -> None:
    """An agent between fork and exec still has its wrapper's environment, which includes the mark."""
    engine = open_engine(project_dir)
    if how == "standby":
        standby.start()
    run = start(engine, "hang", runner="tmux" if how == "tmux" else "process")
    pids = started(engine, run)
    assert {pids.pid, pids.child_pid} == set(processes.marked(run.run_id))
    engine.stop([run.run_id])
    wait_for_end(engine, run.run_id)
    wait_until_gone(pids.pid)


@pytest.mark.parametrize("stands_by", [False, True])
def test_no_group_by_setting(project_dir: Path, stands_by: bool) -> None:
    """With `cgroup: off` a run is in its launcher's group."""
    engine = open_engine(project_dir, cgroup="off")
    if stands_by:
        standby.start()
    pids = started(engine, run := start(engine, "hang"))
    assert {group_of(os.getpid())} == {group_of(pid) for pid in (pids.pid, pids.child_pid)}
    engine.stop([run.run_id])
    wait_for_end(engine, run.run_id)


def test_variables_are_called_the_same() -> None:
    """The module that must load no other one spells the variables itself."""
    assert (processes.RUN_MARK, paths.AGENT_ENVIRONMENT) == (standby.MARK, standby._FOR_AGENT)


@pytest.mark.skipif(shutil.which("strace") is None, reason="strace makes the moment between fork and exec long")
def test_a_child_between_fork_and_exec(project_dir: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A wrapper killed between fork and exec leaves no program that starts later."""
    shell = os.path.realpath("/bin/sh")
    strace = ("strace", "-D", "-f", "-q", "-o", "/dev/null", "-P", shell, "-e", "inject=execve:delay_enter=20s")
    plain = WrapperCall.argv.fget
    assert plain
    monkeypatch.setattr(WrapperCall, "argv", property(lambda call: (*strace, *plain(call))))
    engine = open_engine(project_dir, (shell, "-c", f"touch {tmp_path}/begun; exec sleep 1000"), cgroup="off")
    launching = threading.Thread(target=start, args=(engine, "any"))
    launching.start()
    runner = Path(engine.project.runs)
    written = wait_until(lambda: list(runner.glob("*/runner.json")), "the wrapper to say who it is")
    facts = artifacts.read_runner(str(written[0].parent))
    assert facts is not None
    forked = f"/proc/{facts.pid}/task/{facts.pid}/children"
    (child,) = wait_until(lambda: list(map(int, Path(forked).read_text().split())), "the child to be forked")
    os.kill(facts.pid, signal.SIGKILL)
    wait_until(lambda: not lives(facts.pid), "the wrapper to die")
    launching.join()
    run = wait_until(lambda: next((run for run in engine.snapshots() if run.reason), None), "the run to be lost")
    assert ("lost", False, False) == (run.reason, lives(child), (tmp_path / "begun").exists())


BLIND = """
import errno, os
from subdeck.core.system import processes, termination
see, list_ = processes._pids, processes.children
def see_or_not():
    if os.path.exists({switch!r}):
        raise OSError(errno.EIO, os.strerror(errno.EIO))
    return see()
termination.PERSISTENCE_S = 0.2
processes.children = lambda: [] if os.path.exists({switch!r}) else list_()
processes._pids = see_or_not
"""
"""Makes `/proc` fail from some moment on, like a broken disk."""


def test_a_wrapper_that_cannot_look(project_dir: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A wrapper that cannot list its processes writes no result; a process that can ends them and writes it."""
    engine = open_engine(project_dir, cgroup="off")
    with monkeypatch.context() as changed:
        run_wrappers_with(changed, BLIND.format(switch=str(tmp_path / "blind")))
        run = start(engine, f"daemonise {tmp_path}/daemon", "say Working.", "hang")
        daemon = pid_in(tmp_path / "daemon")
        wrapper = started(engine, run).pid
    listed = run_dir(engine, run) / paths.CHILDREN
    wait_until(lambda: str(daemon) in listed.read_text().split(), "the daemon to be written down")
    (tmp_path / "blind").touch()
    try:
        artifacts.write_stop(str(run_dir(engine, run)), StopRequest(by="test", force=False, at=paths.now_iso()))
        os.kill(wrapper, signal.SIGTERM)
        wait_until(lambda: not lives(wrapper), "the wrapper to end")
        assert lives(daemon) and not (run_dir(engine, run) / paths.RESULT).exists()
        (seen,) = engine.snapshots([run.run_id])
        result = artifacts.read_result(str(run_dir(engine, run)))
        assert result is not None
        assert (True, False, ()) == (seen.has_ended, lives(daemon), result.not_ended)
    finally:
        if lives(daemon):
            os.kill(daemon, signal.SIGKILL)


@pytest.mark.parametrize("cgroups", [pytest.param("auto", marks=needs_groups), "off"])
def test_what_is_known_of_what_was_left(project_dir: Path, tmp_path: Path, cgroups: str) -> None:
    """A lost run reports that all its processes were ended only with a control group."""
    engine = open_engine(project_dir, cgroup=cgroups)
    run, daemon = with_daemon(engine, tmp_path)
    if cgroups == "off":
        listed = run_dir(engine, run) / paths.CHILDREN
        wait_until(lambda: str(daemon) in listed.read_text().split(), "the daemon to be written down")
    kill_wrapper(engine, run)
    engine.snapshots([run.run_id])
    result = artifacts.read_result(str(run_dir(engine, run)))
    assert result is not None and result.error_message is not None
    assert ("where found" in result.error_message) == (cgroups == "off")
