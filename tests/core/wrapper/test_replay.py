"""Recorded streams become runs, by the same code as live ones."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest
from subdeck.core.errors import UsageError
from subdeck.core.wrapper.replay import replay

from tests import replay as recorded
from tests.core.agents.pi.test_recordings import EXPECTED
from tests.core.command_line import subdeck

pytestmark = [pytest.mark.processes, pytest.mark.usefixtures("forked_commands")]

RECORDINGS = recorded.RECORDINGS


def stdout_of(case: str) -> Path:
    return next((RECORDINGS / case).glob("stdout.jsonl*"))


def recording_of(case: str) -> tuple[str, str, int]:
    """Return the stdout and stderr files and the exit code."""
    directory = RECORDINGS / case
    code = json.loads((directory / "exit.txt").read_text())["rc"]
    return str(stdout_of(case)), str(directory / "stderr.txt"), code


@pytest.mark.parametrize("case", recorded.cases())
def test_recording_becomes_a_run(case: str, tmp_path: Path) -> None:
    """Each pi recording leaves the run directory of the live run, with its true outcome."""
    stdout, stderr, returncode = recording_of(case)
    result = replay(stdout, str(tmp_path), stderr=stderr, returncode=returncode)
    run_dir = tmp_path / result.run_id
    status, reason, said = EXPECTED[case]
    assert (status, reason) == (result.status, result.reason)
    assert said in (result.error_message or result.final_text or "")
    events = [json.loads(line) for line in (run_dir / "events.jsonl").read_bytes().splitlines()]
    assert list(range(1, len(events) + 1)) == [event["seq"] for event in events]
    assert ("run_ended", status, reason) == tuple(events[-1][key] for key in ("type", "status", "reason"))
    alive = recorded.replay(case)
    assert len(alive.events) + 1 == len(events)
    assert alive.facts.usage == result.usage
    assert () == result.artifact_errors
    assert b"message_update" not in (run_dir / "stdout.log").read_bytes()
    assert f"{status}: {reason}" in (run_dir / "transcript.log").read_text()


@pytest.mark.parametrize("case", ["0.73.1/c_edit_write", "1.5.2/f_401", "0.73.1/h_sigterm"])
def test_cli_replays(case: str, project_dir: Path) -> None:
    """The command prints transcript and answer, the result, or the events, and leaves nothing behind."""
    stdout, stderr, returncode = recording_of(case)
    words = ("replay", stdout, "--exit-code", str(returncode), "--stderr", stderr)
    status, reason, said = EXPECTED[case]
    code = {"completed": 0, "failed": 1}[status]
    shown = subdeck(*words, cwd=project_dir)
    assert code == shown.code
    assert (said + "\n" if status == "completed" else "") == shown.out
    assert f"{status}: {reason}" in shown.err
    as_json = subdeck(*words, "--json", cwd=project_dir)
    assert (code, status, reason) == (as_json.code, as_json.document["status"], as_json.document["reason"])
    events = subdeck(*words, "--events", cwd=project_dir)
    assert code == events.code
    assert "run_ended" == json.loads(events.out.splitlines()[-1])["type"]
    assert [] == [path for path in project_dir.iterdir() if path.name != ".git"]


def test_negative_exit_code_is_a_signal(project_dir: Path) -> None:
    """--exit-code -9 means that the agent was killed."""
    words = ("replay", str(stdout_of("0.73.1/h_sigkill")), "--exit-code", "-9", "--json")
    assert "SIGKILL" == subdeck(*words, cwd=project_dir).document["signal"]


def test_last_line_needs_no_newline(tmp_path: Path) -> None:
    """Text after the last newline counts, as with a live agent."""
    torn = tmp_path / "recording"
    torn.write_bytes(stdout_of("0.73.1/a_text").read_bytes().removesuffix(b"\n"))
    assert "completed" == replay(str(torn), str(tmp_path / "runs")).status


def test_packed_recording(tmp_path: Path) -> None:
    """A recording may be compressed by gzip under any name; a torn one is an error."""
    packed = tmp_path / "recording"
    packed.write_bytes(gzip.compress(stdout_of("0.73.1/a_text").read_bytes()))
    assert "completed" == replay(str(packed), str(tmp_path / "runs")).status
    packed.write_bytes(packed.read_bytes()[:200])
    with pytest.raises(UsageError, match="not a complete gzip file"):
        replay(str(packed), str(tmp_path / "runs"))


@pytest.mark.parametrize("name", ["nowhere", "."])
def test_recording_that_cannot_be_read(project_dir: Path, name: str) -> None:
    """An unreadable recording exits with 2, prints its path and starts no run."""
    done = subdeck("replay", name, cwd=project_dir)
    assert (2, "") == (done.code, done.out)
    assert done.err.startswith("subdeck: cannot read the recording: ")


def test_kept_run_stays(project_dir: Path, tmp_path: Path) -> None:
    """--keep prints the run directory."""
    done = subdeck("replay", str(stdout_of("0.73.1/a_text")), "--keep", "--json", cwd=project_dir)
    run_dir = Path(done.err.removeprefix("kept in ").strip())
    record = json.loads((run_dir / "result.json").read_bytes())
    assert record.pop("mark") and record == done.document
    refused = subdeck("replay", "x", "--json", "--events", cwd=project_dir)
    assert 2 == refused.code
