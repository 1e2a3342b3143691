"""Commands whose stdin, stdout or stderr is closed, full, or no longer read."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from tests.core.command_line import SUBDECK, subdeck, write_preset, write_settings
from tests.factories import make_finished, open_engine

pytestmark = pytest.mark.processes

ANSWERING = """printf '%s\\n' \
'{"type":"message_end","message":{"role":"assistant","content":"Done.","stopReason":"stop"}}' \
'{"type":"agent_end","messages":[],"willRetry":false}' '{"type":"agent_settled","aborted":false}'"""
FULL = "the output could not be written: No space left on device"


@pytest.fixture
def project(project_dir: Path, home: Path) -> Path:
    write_preset(project_dir)
    write_settings(home, brief=ANSWERING, failing="exit 7")
    return project_dir


def called(words: list[str], redirection: str, cwd: Path) -> subprocess.CompletedProcess[bytes]:
    """Run a subdeck command with this redirection in a shell."""
    script = f'exec "$@" {redirection}'
    return subprocess.run(["/bin/sh", "-c", script, "sh", *SUBDECK, *words], cwd=cwd, capture_output=True, timeout=60)


@pytest.mark.parametrize("redirection", [">&-", "2>&-", ">&- 2>&-", "<&- >&- 2>&-", "2>/dev/full", ">/dev/full"])
@pytest.mark.parametrize(("agent", "code"), [("brief", 0), ("failing", 1)])
def test_the_exit_code_is_that_of_the_run(project: Path, redirection: str, agent: str, code: int) -> None:
    """With any redirection, a run has its usual outcome, and terminal output never gets into a file of the run."""
    done = called(["run", "scout", "look", "--agent", agent], redirection, project)
    assert code == done.returncode
    assert b"Traceback" not in done.stderr
    (run_dir,) = (project / ".pi/subagents/runs").glob("2*")
    assert b"" == (run_dir / "lock").read_bytes()
    status = {0: "completed", 1: "failed"}[code]
    assert status == subdeck("status", "--json", cwd=project).document["runs"][0]["status"]


COMMANDS = [
    *(["status"], ["status", "--json"], ["presets"], ["settings"], ["models"], ["doctor"], ["wait", "RUN"]),
    *(["logs", "RUN"], ["logs", "-f", "RUN"], ["logs", "--events", "RUN"], ["logs", "--markdown", "RUN"]),
    *(["stop", "RUN"], ["clean", "--keep", "9", "--yes"], ["--help"], ["run", "--help"], ["rm", "RUN"]),
]


@pytest.mark.parametrize("words", COMMANDS, ids=" ".join)
def test_a_command_without_stdout_or_stderr(project: Path, words: list[str]) -> None:
    """It does its work and has its usual exit code."""
    run_id = make_finished(open_engine(project).project).run_id
    given = [run_id if word == "RUN" else word for word in words]
    for redirection in ("2>&-", "2>/dev/full", ">&-"):
        if words[0] == "rm":
            subdeck("rm", "--undo", run_id, cwd=project)
        done = called(given, redirection, project)
        assert done.returncode == 0, done.stderr
        assert b"Traceback" not in done.stderr


@pytest.mark.parametrize("words", [["status"], ["logs", "--markdown", "RUN"], ["stop", "RUN"], ["settings", "--json"]])
def test_a_full_disk_behind_stdout(project: Path, words: list[str]) -> None:
    """The error names stdout, and the exit code is 1, not that of an error before any work."""
    run_id = make_finished(open_engine(project).project).run_id
    done = called([run_id if word == "RUN" else word for word in words], ">/dev/full", project)
    assert 1 == done.returncode
    assert FULL in done.stderr.decode()
    assert "stdout" in done.stderr.decode()


def test_waiting_ends_as_the_run(project: Path) -> None:
    """`wait` exits with the run's outcome even if its table cannot be printed or read."""
    subdeck("run", "scout", "look", "--agent", "failing", cwd=project)
    run_id = subdeck("status", "--json", cwd=project).document["runs"][0]["runId"]
    done = called(["wait", run_id], ">/dev/full", project)
    assert (1, True) == (done.returncode, FULL in done.stderr.decode())
    subdeck("run", "scout", "look", "--agent", "brief", cwd=project)
    run_id = subdeck("status", "--json", cwd=project).document["runs"][0]["runId"]
    reader, writer = os.pipe()
    os.close(reader)
    done = subprocess.run([*SUBDECK, "wait", run_id], cwd=project, stdout=writer, stderr=subprocess.PIPE, timeout=60)
    os.close(writer)
    assert (0, b"") == (done.returncode, done.stderr)


@pytest.mark.parametrize("words", [["events"], ["events", "--json"], ["tool", "register"]])
def test_a_stream_for_nobody(project: Path, words: list[str]) -> None:
    """A command that only streams to a closed stdout ends with an error."""
    done = called(words, ">&- </dev/null", project)
    assert done.returncode in (1, 2)
    assert b"closed" in done.stderr
    assert b"Traceback" not in done.stderr
