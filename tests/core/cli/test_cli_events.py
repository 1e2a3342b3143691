"""`subdeck events`, in separate processes."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from pathlib import Path
from typing import Any

import pytest
from subdeck.core.delegation.channels import Emitter
from subdeck.core.project.follower import Update
from subdeck.core.run.events import Decision
from subdeck.core.run.model import Verdict

from tests.core.command_line import SUBDECK, start as start_command, subdeck
from tests.core.talking import listening, permission
from tests.factories import open_engine, run_to_end, start, wait_for_end

pytestmark = pytest.mark.processes


def lines_of(process: subprocess.Popen[bytes], until: str) -> list[dict[str, Any]]:
    """Read emissions up to the first one on this channel."""
    assert process.stdout
    read: list[dict[str, Any]] = []
    for line in process.stdout:
        read.append(json.loads(line))
        if read[-1]["channel"] == f"subagents:{until}":
            return read
    raise AssertionError(f"the stream ended without {until}: {read}")


def end(process: subprocess.Popen[bytes]) -> bytes:
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=30)
    assert 0 == process.returncode
    return errors


def test_events_follow_until_interrupted(project_dir: Path) -> None:
    """The active run has one `started`, followed by its events and those of new runs. ctrl-C ends it quietly."""
    engine = open_engine(project_dir)
    first = start(engine, "wait-for go", "answer ok")
    following = start_command("events", "--json", cwd=project_dir)
    begun = lines_of(following, "started")
    assert [("subagents:started", first.run_id)] == [(line["channel"], line["payload"]["id"]) for line in begun]
    (project_dir / "go").touch()
    done = lines_of(following, "completed")[-1]
    assert (first.run_id, "ok") == (done["payload"]["id"], done["payload"]["result"])
    second = start(engine, "error boom", "finish")
    told = lines_of(following, "failed")
    assert ("subagents:created", second.run_id) == (told[0]["channel"], told[0]["payload"]["id"])
    assert "boom" == told[-1]["payload"]["error"]
    assert b"" == end(following)


def test_one_run_only(project_dir: Path) -> None:
    """--run follows one run and ends with it. A finished run has no output."""
    engine = open_engine(project_dir)
    other = start(engine, "wait-for go", "answer ok")
    run = start(engine, "wait-for go", "say-many 30", "answer ok")
    following = start_command("events", "--run", run.meta.short_id, "--entries", "all", "--json", cwd=project_dir)
    read = lines_of(following, "started")
    (project_dir / "go").touch()
    read += lines_of(following, "completed")
    assert {run.run_id} == {line["payload"]["id"] for line in read}
    assert all("entriesTotal" not in line["payload"]["details"] for line in read)
    following.communicate(timeout=30)
    assert 0 == following.returncode
    wait_for_end(engine, other.run_id)
    done = subdeck("events", "--run", run.run_id, "--json", cwd=project_dir)
    assert (0, "", "") == done


def test_one_run_that_is_removed(project_dir: Path) -> None:
    """--run ends if the run is removed with all others."""
    engine = open_engine(project_dir)
    run = start(engine, "wait-for go", "answer ok")
    following = start_command("events", "--run", run.run_id, "--json", cwd=project_dir)
    lines_of(following, "started")
    os.rename(engine.project.runs, project_dir / "removed")
    _, errors = following.communicate(timeout=30)
    (project_dir / "go").touch()
    assert (0, b"") == (following.returncode, errors)


def test_one_run_that_ends_before_the_first_look(project_dir: Path) -> None:
    """--run ends at once if the run finished or was removed before it is first read."""
    engine = open_engine(project_dir)
    run = run_to_end(engine, "answer ok")
    updates: list[Update] = []
    assert [run.run_id] == [each.run_id for each in engine.wait((run.run_id,), on_update=updates.append)]
    assert [] == [emission for update in updates for emission in Emitter(engine).take(update)]
    os.rename(engine.project.run_dir(run.run_id), project_dir / "removed")
    assert () == engine.wait((run.run_id,), on_update=updates.append)


def test_events_for_a_person(project_dir: Path) -> None:
    """Without --json each emission is one plain line."""
    engine = open_engine(project_dir)
    run = start(engine, "wait-for go", "answer ok")
    following = start_command("events", "--run", run.run_id, cwd=project_dir)
    assert following.stdout
    assert following.stdout.readline().decode().startswith(f"started {run.meta.short_id} one-off running")
    (project_dir / "go").touch()
    out, _ = following.communicate(timeout=30)
    assert f"completed {run.meta.short_id} one-off completed" in out.decode()


def test_requests_and_replies_for_a_person(project_dir: Path) -> None:
    """A request and its reply are one line each: what is asked, and who decided it how."""
    with listening(open_engine(project_dir).project, permission()) as run:
        following = start_command("events", "--run", run.run_id, cwd=project_dir)
        assert following.stdout
        lines = (line.decode().rstrip() for line in following.stdout)
        asked = next(line for line in lines if line.startswith("needs_input"))
        assert asked.endswith("wants to run a command: rm -rf build")
        run.write(Decision(request="q1", verdict=Verdict.DENY, text="not now", by="operator"))
        replied = next(line for line in lines if line.startswith("replied"))
        assert replied.endswith("Denied by the user: not now")
        end(following)


def test_a_reader_that_goes_ends_it(project_dir: Path) -> None:
    """`subdeck events --json | head -1` ends quietly when its reader is gone."""
    open_engine(project_dir)
    reader, writer = os.pipe()
    following = subprocess.Popen(
        [*SUBDECK, "events", "--json"], cwd=project_dir, stdin=subprocess.DEVNULL, stdout=writer, stderr=subprocess.PIPE
    )
    os.close(writer)
    os.close(reader)
    _, errors = following.communicate(timeout=30)
    assert (0, b"") == (following.returncode, errors)


def test_unknown_run(project_dir: Path) -> None:
    """An unknown run is an error at once."""
    done = subdeck("events", "--run", "nope", "--json", cwd=project_dir)
    assert (2, "") == (done.code, done.out)
    assert "nope" in done.error["what"]
