"""The process runner: a detached wrapper."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest
from subdeck.core import paths
from subdeck.core.errors import LaunchError
from subdeck.core.launch import start as launching
from subdeck.core.run import artifacts
from subdeck.core.runners.process import HasGone, WrapperCall, start_wrapper
from subdeck.core.system import processes

from tests.factories import end_of, make_run, open_engine, run_dir, start, started, wait_for_end, write_settings
from tests.waiting import wait_until

pytestmark = pytest.mark.processes


def test_the_wrapper_is_detached(project_dir: Path) -> None:
    """The wrapper leads its own session and works in /, so that no terminal or directory is tied to it."""
    engine = open_engine(project_dir)
    run = start(engine, "hang")
    pids = started(engine, run)
    assert (pids.pid, "/") == (os.getsid(pids.pid), os.readlink(f"/proc/{pids.pid}/cwd"))
    streams = [os.readlink(f"/proc/{pids.pid}/fd/{number}") for number in (0, 1, 2)]
    assert ["/dev/null", "/dev/null", str(run_dir(engine, run) / "stderr.log")] == streams
    engine.stop([run.run_id])
    wait_for_end(engine, run.run_id)


def test_runner_facts(project_dir: Path) -> None:
    """runner.json has the machine, the boot and the processes of a run, including the agent."""
    engine = open_engine(project_dir)
    run = start(engine, "hang")
    pids = started(engine, run)
    expected = artifacts.RunnerFacts(
        kind="process",
        host=processes.host(),
        machine_id=processes.machine_id(),
        boot_id=processes.boot_id(),
        pid_namespace=processes.pid_namespace(),
        pid=pids.pid,
        pid_started=processes.start_time(pids.pid),
        child_pid=pids.child_pid,
        child_pid_started=pids.child_pid_started,
    )
    assert expected == artifacts.read_runner(str(run_dir(engine, run)))
    engine.stop([run.run_id])
    wait_for_end(engine, run.run_id)


def test_python_variables_do_not_reach_the_wrapper(
    project_dir: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A user's PYTHONPATH or PYTHONSTARTUP, or a module in the cwd, cannot replace the wrapper's code."""
    for name in ("msgspec.py", "subprocess.py", "select.py"):
        (tmp_path / name).write_text("raise SystemExit('hijacked')\n")
    engine = open_engine(project_dir)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    assert "completed" == wait_for_end(engine, start(engine, "answer ok", cwd=str(tmp_path)).run_id).status


def test_ctrl_c_at_the_launcher_does_not_reach_the_run(project_dir: Path, tmp_path: Path) -> None:
    """A signal to the launcher's process group does not reach its runs."""
    write_settings()
    gate = tmp_path / "gate"
    code = (
        "import sys; from subdeck.core.engine import Engine; from subdeck.core.spec.request import RunRequest\n"
        "(run,) = Engine.open().launch([RunRequest(task=sys.argv[1])], background=True)\n"
        "print(run.run_id, flush=True); sys.stdin.read()\n"
    )
    with subprocess.Popen(
        [sys.executable, "-c", code, f"wait-for {gate}\nanswer ok"],
        cwd=project_dir,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        start_new_session=True,
    ) as launcher:
        assert launcher.stdout is not None
        run_id = launcher.stdout.readline().strip()
        os.killpg(launcher.pid, signal.SIGINT)
        launcher.wait()
    gate.touch()
    from subdeck.core.engine import Engine

    assert "completed" == wait_for_end(Engine.open(str(project_dir)), run_id).status


def test_an_interpreter_that_is_gone(project_dir: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """If not even the wrapper can be started, the launch fails with the reason, and so does the run."""
    engine = open_engine(project_dir)
    meta, lock = make_run(engine.project)
    run_directory = engine.project.run_dir(meta.run_id)
    monkeypatch.setattr(sys, "executable", "/no/such/python")
    call = WrapperCall(meta=meta, project=str(project_dir), run_dir=run_directory, arguments=(), environment={})
    with pytest.raises(LaunchError, match="cannot start the wrapper"):
        start_wrapper(call, "")
    run = start(engine, "answer ok")
    assert ("failed", "start_failed") == (run.status, run.reason)
    assert "/no/such/python" in end_of(run).message
    os.close(lock)


def test_a_second_wrapper_leaves_again(project_dir: Path) -> None:
    """A run started twice has one agent process, as when a tmux client dies after its request was carried out."""
    engine = open_engine(project_dir)
    run = start(engine, "hang")
    first = started(engine, run)
    directory = str(run_dir(engine, run))
    argv = (
        sys.executable,
        "-P",
        "-E",
        "-m",
        "subdeck.core.wrapper",
        directory,
        f"{engine.project.active}/{run.run_id}",
    )
    assert 0 == subprocess.run(argv, stdin=subprocess.DEVNULL, timeout=60).returncode
    assert first.pid == artifacts.read_runner(directory).pid
    engine.stop([run.run_id])
    wait_for_end(engine, run.run_id)
    assert 1 == Path(directory, "events.jsonl").read_text().count('"run_started"')


def test_a_run_that_has_a_wrapper_has_not_failed_to_start(project_dir: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """If a start is reported as failed although the wrapper runs, the run is followed as running."""

    def start_and_fail(call: WrapperCall, tmux_socket: str, host_env: Sequence[str]) -> HasGone:
        start_wrapper(call, tmux_socket)
        wait_until(lambda: artifacts.read_runner(call.run_dir), "the wrapper to hold its run")
        raise LaunchError("the client died")

    engine = open_engine(project_dir)
    monkeypatch.setattr(launching, "start_wrapper", start_and_fail)
    assert "completed" == wait_for_end(engine, start(engine, "answer ok").run_id).status


def test_a_start_is_noted_before_it(project_dir: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A wrapper killed while it loads still counts as started, and the start note does not stay."""
    noted: list[bool] = []

    def see_and_start(call: WrapperCall, tmux_socket: str, host_env: Sequence[str]) -> HasGone:
        noted.append(Path(call.run_dir, paths.STARTING).exists())
        return start_wrapper(call, tmux_socket)

    engine = open_engine(project_dir)
    monkeypatch.setattr(launching, "start_wrapper", see_and_start)
    run = wait_for_end(engine, start(engine, "answer ok").run_id)
    assert ([True], "completed") == (noted, run.status)
    wait_until(lambda: not (run_dir(engine, run) / paths.STARTING).exists(), "the note to be removed")


def test_blocked_signals_of_a_launcher(project_dir: Path) -> None:
    """A wrapper and its agent receive signals that the launcher had blocked."""
    engine = open_engine(project_dir)
    blocked = {signal.SIGTERM, signal.SIGCHLD, signal.SIGALRM}
    before = signal.pthread_sigmask(signal.SIG_BLOCK, blocked)
    try:
        run = start(engine, "hang")
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
    child = started(engine, run).child_pid
    masks = [line for line in Path(f"/proc/{child}/status").read_text().splitlines() if line.startswith("SigBlk")]
    assert ["SigBlk:\t0000000000000000"] == masks
    engine.stop([run.run_id])
    assert "stopped" == wait_for_end(engine, run.run_id).reason
