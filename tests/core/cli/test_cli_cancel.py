"""A command that waits for a run stops it on a signal, but not when it is killed."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.core.command_line import SUBDECK, run_dirs, start, subdeck, write_preset, write_settings
from tests.waiting import wait_until

pytestmark = [pytest.mark.processes, pytest.mark.usefixtures("forked_commands")]


@pytest.fixture
def project(project_dir: Path, home: Path) -> Path:
    write_preset(project_dir)
    write_settings(home, sleeper="exec sleep 60")
    return project_dir


def begun(project: Path) -> str:
    """Wait until the one run has an agent. Return the run's id."""

    def running() -> str | None:
        return next((path.name for path in run_dirs(project) if b"run_started" in _bytes(path / "events.jsonl")), None)

    return wait_until(running, "the run to start") or ""


def _bytes(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError:
        return b""


def result_of(project: Path, run_id: str) -> dict[str, str]:
    record = json.loads((project / ".pi/subagents/runs" / run_id / "result.json").read_bytes())
    assert record.pop("mark")
    return record


ELSEWHERE = """
import signal, threading
from subdeck.core.cli._stdio import Canceller

def waits():
    with open("/proc/self/stat") as stat:
        return stat.read().rpartition(")")[2].split()[0] == "S"

def ask_to_end():
    while not all(waits() for _ in range(100)):
        pass
    signal.pthread_kill(threading.get_ident(), signal.SIGTERM)

with Canceller(()) as canceller:
    threading.Thread(target=ask_to_end).start()
    canceller.wait()
"""
"""Another thread gets the signal while the first one waits: the kernel may choose any thread."""


def test_a_signal_cancels_whichever_thread_gets_it() -> None:
    """A signal wakes a wait without a timeout, even if no Python code runs in its thread."""
    subprocess.run([sys.executable, "-c", ELSEWHERE], check=True, timeout=60)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_signals_cancel_the_run(project: Path, number: signal.Signals) -> None:
    """ctrl-C, TERM and HUP cancel the run, wait for its end and exit with 3. Another shell sees the run before and
    after.
    """
    runner = start("run", "scout", "sleep", "--agent", "sleeper", cwd=project)
    run_id = begun(project)
    (seen,) = subdeck("status", "--json", cwd=project).document["runs"]
    assert (run_id, "running") == (seen["runId"], seen["status"])
    runner.send_signal(number)
    runner.send_signal(number)
    out, err = runner.communicate(timeout=30)
    assert (3, b"") == (runner.returncode, out)
    assert f"cancelling {run_id[-6:]}" in err.decode()
    assert "⊘ aborted (cancelled)" in err.decode()
    assert "cancelled" == result_of(project, run_id)["reason"]


def test_cancelled_run_is_a_document(project: Path) -> None:
    """With --json, a cancelled run is printed like any other."""
    runner = start("run", "scout", "sleep", "--agent", "sleeper", "--json", cwd=project)
    run_id = begun(project)
    runner.send_signal(signal.SIGINT)
    out, _ = runner.communicate(timeout=30)
    assert 3 == runner.returncode
    assert result_of(project, run_id) == json.loads(out)


def ignoring(*words: str, cwd: Path) -> subprocess.Popen[bytes]:
    """Start a command like a background job of a script: with SIGINT and SIGQUIT ignored."""
    script = 'trap "" INT QUIT; exec "$@"'
    pipe = subprocess.PIPE
    return subprocess.Popen(
        ["/bin/sh", "-c", script, "sh", *SUBDECK, *words], cwd=cwd, stdin=pipe, stdout=pipe, stderr=pipe
    )


def ignored_signals(pid: int) -> set[int]:
    mask = int(Path(f"/proc/{pid}/status").read_text().partition("SigIgn:")[2].split()[0], 16)
    return {number for number in range(1, 65) if mask >> (number - 1) & 1}


def test_a_background_job_is_not_cancelled_by_ctrl_c(project: Path) -> None:
    """`run` started with SIGINT ignored keeps it ignored, TERM still cancels, and its agent ignores neither signal."""
    runner = ignoring("run", "scout", "sleep", "--agent", "sleeper", cwd=project)
    run_id = begun(project)
    lines = _bytes(project / ".pi/subagents/runs" / run_id / "events.jsonl").splitlines()
    (agent,) = (event["childPid"] for event in map(json.loads, lines) if event["type"] == "run_started")
    assert not ignored_signals(agent) & {signal.SIGINT, signal.SIGQUIT, signal.SIGHUP, signal.SIGTERM}
    assert signal.SIGINT in ignored_signals(runner.pid)
    runner.send_signal(signal.SIGINT)
    runner.send_signal(signal.SIGTERM)
    _, err = runner.communicate(timeout=30)
    assert 3 == runner.returncode, err


@pytest.mark.parametrize("words", [("wait", ":run"), ("events",), ("grep", "-E", "(a+)+$"), ("mcp",)])
def test_commands_keep_sigint_ignored(project: Path, words: tuple[str, ...]) -> None:
    """`wait`, `events`, `grep` and `mcp` in a script's background survive ctrl-C of the foreground. TERM ends them."""
    subdeck("bg", "scout", "a" * 60 + "!", "--agent", "sleeper", cwd=project)  # grep backtracks in this task
    run_id = begun(project)
    process = ignoring(*(run_id if word == ":run" else word for word in words), cwd=project)
    try:
        wait_until(lambda: signal.SIGINT in ignored_signals(process.pid), "the command to be started")
        process.send_signal(signal.SIGINT)
        with pytest.raises(subprocess.TimeoutExpired):
            process.wait(1)
        process.send_signal(signal.SIGTERM)
        process.wait(20)
    finally:
        process.kill()
        process.communicate()
        subdeck("stop", run_id, cwd=project)
        subdeck("wait", run_id, cwd=project)


def test_killed_waiter_leaves_the_run(project: Path) -> None:
    """After SIGKILL of `run`, the run continues: it is visible and can be stopped."""
    runner = start("run", "scout", "sleep", "--agent", "sleeper", cwd=project)
    run_id = begun(project)
    runner.kill()
    runner.communicate(timeout=30)
    (run,) = subdeck("status", "--json", cwd=project).document["runs"]
    assert (run_id, "running") == (run["runId"], run["status"])
    assert 0 == subdeck("stop", run_id, cwd=project).code
    assert 3 == subdeck("wait", run_id, cwd=project).code


@pytest.mark.parametrize("name", ["stdout", "stderr"])
def test_reader_that_goes_away_cancels_the_run(project: Path, name: str) -> None:
    """A quiet run is also cancelled if the reader of its answer or progress is gone, and the result has the reason."""
    reader, writer = os.pipe()
    streams: dict[str, Any] = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, name: writer}
    words = ("run", "scout", "sleep", "--agent", "sleeper")
    runner = subprocess.Popen([*SUBDECK, *words], cwd=project, stdin=subprocess.DEVNULL, **streams)
    os.close(writer)
    run_id = begun(project)
    os.close(reader)
    assert 3 == runner.wait(timeout=30)
    result = result_of(project, run_id)
    assert ("cancelled", "cancelled: output pipe closed") == (result["reason"], result["errorMessage"])


def test_signals_cancel_the_run_without_stdout(project: Path) -> None:
    """A signal also cancels a command without stdout."""
    words = ("run", "scout", "sleep", "--agent", "sleeper")
    runner = subprocess.Popen(
        ["/bin/sh", "-c", 'exec "$@" >&-', "sh", *SUBDECK, *words],
        cwd=project, stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    run_id = begun(project)
    runner.send_signal(signal.SIGTERM)
    try:
        assert 3 == runner.wait(timeout=30)
    finally:
        runner.kill()
        runner.wait()
    assert "cancelled" == result_of(project, run_id)["reason"]


def test_ignored_signals_stay_ignored(project: Path) -> None:
    """Under nohup, a hangup does not end the run."""
    words = ("run", "scout", "sleep", "--agent", "sleeper")
    runner = subprocess.Popen(
        ["/bin/sh", "-c", 'trap "" HUP; exec "$@"', "sh", *SUBDECK, *words],
        cwd=project, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip
    run_id = begun(project)
    runner.send_signal(signal.SIGHUP)
    assert 0 == subdeck("stop", run_id, cwd=project).code
    runner.communicate(timeout=30)
    assert (3, "stopped") == (runner.returncode, result_of(project, run_id)["reason"])


def test_run_deleted_under_us_is_told(project: Path) -> None:
    """If all runs are deleted, waiting ends with an error and no traceback, and the agent ends."""
    runner = start("run", "scout", "sleep", "--agent", "sleeper", cwd=project)
    run_id = begun(project)
    run_dir = project / ".pi/subagents/runs" / run_id
    facts = json.loads((run_dir / "runner.json").read_bytes())
    run_dir.parent.rename(project / "gone")  # at once, because rm would race with the wrapper's writes
    _, err = runner.communicate(timeout=30)
    assert 1 == runner.returncode
    assert "was deleted while waiting for it" in err.decode()
    assert "Traceback" not in err.decode()
    os.kill(facts["pid"], signal.SIGTERM)
