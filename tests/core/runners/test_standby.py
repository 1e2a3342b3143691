"""A standby wrapper takes a run, or leaves no trace."""

from __future__ import annotations

import errno
import fcntl
import json
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from subdeck.core.engine import Engine
from subdeck.core.runners import standby
from subdeck.core.system import files, processes

from tests.core.command_line import SUBDECK, run_dirs, subdeck, write_preset, write_settings
from tests.factories import open_engine, request, run_dir, start as start_run, started, wait_for_end
from tests.waiting import wait_until

pytestmark = pytest.mark.processes


def stand_by() -> standby.Standby:
    """Start a standby wrapper. Not in a fixture: pytest changes the environment between fixture and test."""
    standby.start()
    assert standby._standby is not None
    return standby._standby


def stand_by_without_loading(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> standby.Standby:
    """Start a standby wrapper that never loads."""
    hangs = tmp_path / "hangs"
    hangs.write_text("#!/bin/sh\nexec sleep 600\n")
    hangs.chmod(0o700)
    with monkeypatch.context() as during:
        during.setattr(sys, "executable", str(hangs))
        return stand_by()


def test_run_is_taken_over(project_dir: Path) -> None:
    """A standby wrapper supervises the run, as detached and with the same streams as any wrapper."""
    engine = open_engine(project_dir)
    ready = stand_by()
    run = start_run(engine, "hang")
    pids = started(engine, run)
    assert (ready._pid, "/") == (pids.pid, os.readlink(f"/proc/{pids.pid}/cwd"))
    assert pids.pid == os.getsid(pids.pid)
    streams = [os.readlink(f"/proc/{pids.pid}/fd/{number}") for number in (0, 1, 2)]
    assert ["/dev/null", "/dev/null", str(run_dir(engine, run) / "stderr.log")] == streams
    engine.stop([run.run_id])
    assert "stopped" == wait_for_end(engine, run.run_id).reason


def test_one_that_has_died_is_replaced(project_dir: Path) -> None:
    """If the standby wrapper was killed, a run starts and completes with another one."""
    os.kill(stand_by()._pid, signal.SIGKILL)
    engine = open_engine(project_dir)
    run = start_run(engine, "answer ok")
    assert "completed" == wait_for_end(engine, run.run_id).status


def test_other_environment_needs_another_wrapper(
    project_dir: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A run gets the environment of its launch, not that of an older standby wrapper."""
    engine = open_engine(project_dir, ("/bin/sh", "-c", 'echo "$GREETING" >greeting', "pi"))
    ready = stand_by()
    monkeypatch.setenv("GREETING", "hello")
    wait_for_end(engine, start_run(engine, "any", cwd=str(tmp_path)).run_id)
    assert "hello\n" == (tmp_path / "greeting").read_text()
    assert ready.has_gone()


def test_variables_for_the_agent(project_dir: Path, home: Path, tmp_path: Path) -> None:
    """An agent's extra variables need no other wrapper, and only the agent gets them."""
    command = ["/bin/sh", "-c", f'echo "$GREETING" >{tmp_path}/greeting; exec sleep 60', "pi"]
    agents = {"greeter": {"kind": "pi", "command": command, "env": {"GREETING": "hello\nyou"}}}
    write_settings(home)
    (home / ".config" / "subdeck" / "config.yaml").write_text(json.dumps({"agents": agents}))
    engine = Engine.open(str(project_dir), session="operator")
    ready = stand_by()
    run = start_run(engine, "any", agent="greeter", model="fake/test")
    pids = started(engine, run)
    wait_until(lambda: (tmp_path / "greeting").exists() and (tmp_path / "greeting").read_text(), "the child's words")
    assert (ready._pid, "hello\nyou\n") == (pids.pid, (tmp_path / "greeting").read_text())
    assert b"GREETING" not in Path(f"/proc/{pids.pid}/environ").read_bytes()
    engine.stop([run.run_id])
    wait_for_end(engine, run.run_id)


def test_one_that_does_not_load_is_replaced(project_dir: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A run does not wait forever for a standby wrapper that hangs, and that wrapper is ended."""
    monkeypatch.setattr(standby, "LOAD_TIMEOUT_S", 0.05)
    ready = stand_by_without_loading(tmp_path, monkeypatch)
    engine = open_engine(project_dir)
    run = start_run(engine, "answer ok")
    assert "completed" == wait_for_end(engine, run.run_id).status
    assert ready.has_gone()


def test_interrupted_launch_leaves_no_run(project_dir: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A launcher interrupted while the wrapper loads withdraws its run: none ends as lost."""
    ready = stand_by_without_loading(tmp_path, monkeypatch)
    engine = open_engine(project_dir)

    def interrupt() -> None:
        wait_until(lambda: files.names(engine.project.active), "the run to be about to start")
        os.kill(os.getpid(), signal.SIGINT)

    interrupting = threading.Thread(target=interrupt)
    interrupting.start()
    with pytest.raises(KeyboardInterrupt):
        start_run(engine, "answer ok")
    interrupting.join()
    assert ready.has_gone()
    assert ([], []) == (run_dirs(project_dir), list(engine.snapshots()))


def test_one_that_cannot_be_used_is_ended(project_dir: Path) -> None:
    """A standby wrapper ends if its runs need other wrappers, as runs that may have to wait do."""
    engine = open_engine(project_dir)
    ready = stand_by()
    runs = engine.launch([request("answer ok"), request("answer ok")], background=True)
    assert ready.has_gone()
    for run in runs:
        wait_for_end(engine, run.run_id)


def test_no_pipes_no_standby(monkeypatch: pytest.MonkeyPatch) -> None:
    """If no more files can be opened there is no standby wrapper, and nothing is left open."""
    made = os.pipe()
    answers = iter([made])

    def pipe() -> tuple[int, int]:
        try:
            return next(answers)
        except StopIteration:
            raise OSError(errno.EMFILE, "Too many open files") from None

    monkeypatch.setattr(os, "pipe", pipe)
    standby.start()
    assert standby._standby is None
    for descriptor in made:
        with pytest.raises(OSError, match="Bad file descriptor"):
            os.fstat(descriptor)


def test_killed_launcher_starts_nothing(project_dir: Path) -> None:
    """A launcher killed before it has anything to run leaves neither a wrapper nor a run."""
    write_preset(project_dir)
    launcher = subprocess.Popen(
        [*SUBDECK, "run", "scout", "-"], cwd=project_dir, stdin=subprocess.PIPE, stderr=subprocess.DEVNULL
    )
    (wrapper,) = wait_until(lambda: processes.descendants(launcher.pid), "the wrapper that stands by")
    launcher.kill()
    launcher.communicate()
    wait_until(lambda: processes.start_time(wrapper) is None, "the end of that wrapper")
    assert [] == run_dirs(project_dir)


def test_refused_launch_starts_nothing(project_dir: Path) -> None:
    """A refused launch leaves neither a wrapper nor a run directory."""
    done = subdeck("run", "nobody", "do it", cwd=project_dir)
    assert (2, []) == (done.code, run_dirs(project_dir))
    assert not any(
        b"--standby" in Path(f"/proc/{pid}/cmdline").read_bytes() for pid in processes.descendants(os.getpid())
    )


def test_command_line_hands_over(project_dir: Path, home: Path) -> None:
    """`subdeck bg` gives its run to its standby wrapper."""
    write_settings(home, sleeper="sleep 60")
    write_preset(project_dir)
    done = subdeck("bg", "scout", "do it", "--agent", "sleeper", cwd=project_dir)
    engine = open_engine(project_dir)
    (run,) = engine.snapshots()
    pid = started(engine, run).pid
    assert done.out.strip() == run.run_id
    assert b"--standby" in Path(f"/proc/{pid}/cmdline").read_bytes()
    engine.stop([run.run_id])
    wait_for_end(engine, run.run_id)


def test_descriptors_of_the_caller_are_not_kept(project_dir: Path, home: Path, tmp_path: Path) -> None:
    """A run does not keep a lock that the calling shell script holds."""
    write_settings(home, sleeper="sleep 60")
    write_preset(project_dir)
    lock = os.open(tmp_path / "lock", os.O_RDWR | os.O_CREAT)
    fcntl.flock(lock, fcntl.LOCK_EX)
    words = [*SUBDECK, "bg", "scout", "do it", "--agent", "sleeper"]
    subprocess.run(words, cwd=project_dir, pass_fds=(lock,), capture_output=True, check=True)
    os.close(lock)
    again = os.open(tmp_path / "lock", os.O_RDWR)
    fcntl.flock(again, fcntl.LOCK_EX | fcntl.LOCK_NB)
    os.close(again)
    engine = open_engine(project_dir)
    (run,) = engine.snapshots()
    engine.stop([run.run_id])
    wait_for_end(engine, run.run_id)


@pytest.mark.parametrize("closed", ["<&-", ">&-", "<&- >&-", "2>&-"])
def test_closed_streams(project_dir: Path, closed: str) -> None:
    """A command without stdin or stdout still starts its run."""
    write_preset(project_dir)
    words = " ".join(SUBDECK)
    script = f"{words} bg scout 'list files' --agent offline {closed}"
    assert 0 == subprocess.run(["/bin/sh", "-c", script], cwd=project_dir).returncode
    engine = open_engine(project_dir)
    (run,) = engine.snapshots()
    assert "completed" == wait_for_end(engine, run.run_id).status


def test_light_imports() -> None:
    """The standby module is imported first, and loads no others."""
    code = "import sys; before = {*sys.modules}; import subdeck.core.runners.standby; print(*{*sys.modules} - before)"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True, text=True).stdout.split()
    ours = {"subdeck", "subdeck.core", "subdeck.core.runners", "subdeck.core.runners.standby"}
    assert {name for name in loaded if not name.startswith(("subdeck", "__editable__"))} <= {"__future__"}
    assert {name for name in loaded if name.startswith("subdeck")} <= ours


@pytest.mark.parametrize(
    ("place", "told"),
    [
        ("lib/site-packages/subdeck", True),
        ("dist-packages/subdeck", True),
        ("src/subdeck", False),
        ("site-packages/other", False),
    ],
)
def test_who_is_told_where_it_is_installed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, place: str, told: bool
) -> None:
    """Only an installation with all its packages beside it loads without site; a checkout does not."""
    (tmp_path / place).parent.joinpath("msgspec").mkdir(parents=True)
    monkeypatch.setattr(standby, "__file__", str(tmp_path / place / "core" / "runners" / "standby.py"))
    assert told == ("-S" in standby.loading())
    (tmp_path / place).parent.joinpath("msgspec").rmdir()
    assert "-S" not in standby.loading()
