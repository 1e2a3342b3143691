"""Checks: the user's commands that examine a run's work, after its agent and before its result."""

from __future__ import annotations

import os
import re
import signal
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace
from subdeck.core import paths
from subdeck.core.cli.output import worst
from subdeck.core.cli.status import status
from subdeck.core.delegation.results import end_fields, result_text, run_fields
from subdeck.core.engine import Engine
from subdeck.core.errors import SettingsError, UsageError
from subdeck.core.mcp._results import brief
from subdeck.core.project.diagnosis import DiagnosisReader, explain
from subdeck.core.run.changes import CheckResult
from subdeck.core.run.describe import check_word, check_words, doing
from subdeck.core.run.events import Check
from subdeck.core.run.snapshot import RunSnapshot
from subdeck.core.spec.request import RunRequest

from tests.factories import (
    events_of,
    make_snapshot,
    open_engine,
    pid_in,
    request,
    result_of,
    run_dir,
    run_to_end,
    start,
    started,
    wait_for_end,
    wait_until_gone,
)
from tests.repositories import make_repository
from tests.waiting import wait_until

pytestmark = [pytest.mark.processes, pytest.mark.usefixtures("forked_wrappers")]

FOREVER = 60.0


def shell(script: str) -> list[str]:
    return ["sh", "-c", script]


def engine_with(project: Path, script: str, **settings: Any) -> Engine:
    return open_engine(project, checks={"tests": shell(script)}, **settings)


def checked(engine: Engine, run: RunSnapshot) -> CheckResult:
    check = result_of(engine, run).check
    assert check is not None
    assert check == run.check
    return check


def checking(engine: Engine, run: RunSnapshot) -> RunSnapshot:
    """Wait until the check of a run is running."""

    def now() -> RunSnapshot | None:
        (found,) = engine.snapshots([run.run_id])
        return found if found.checking else None

    return wait_until(now, "the check to begin")


@pytest.mark.parametrize(
    ("script", "code", "words"),
    [
        ("cat made.txt; pwd >&2; echo last", 0, "tests ✓ passed after"),
        ("echo on; echo off >&2; echo bad; exit 3", 3, "tests ✗ exit code 3 after"),
        ("kill -SEGV $$", None, "tests ✗ it was killed by SIGSEGV after"),
    ],
)
def test_a_check_after_the_child(project_dir: Path, script: str, code: int | None, words: str) -> None:
    """A check runs in the agent's directory, sees its changes, and is recorded beside an unchanged result."""
    engine = engine_with(project_dir, script)
    run = run_to_end(engine, "put made.txt from-the-child\\n", "answer Done.", check="tests")
    check = checked(engine, run)
    assert ("completed", "Done.") == (run.status, result_of(engine, run).final_text)
    said, _, duration = check_words(check).rpartition(" ")
    assert (code, words, code == 0) == (check.exit_code, said, check.passed)
    assert re.fullmatch(r"\d+:\d\d", duration)
    log = (run_dir(engine, run) / paths.CHECK_LOG).read_text()
    assert check.output == log.strip("\n")
    if code == 0:
        assert f"from-the-child\n{project_dir}\nlast" == check.output
    if code == 3:
        assert "on\noff\nbad" == check.output
    begun, ended = [event for event in events_of(engine, run) if isinstance(event, Check)]
    assert ("started", "ended", check) == (begun.state, ended.state, ended.result)


def test_which_check_is_run(project_dir: Path) -> None:
    """The preset or the call names the check, or the call disables it; the run records its name, not the command."""
    preset = project_dir / ".pi" / "subagents" / "p.md"
    preset.parent.mkdir(parents=True)
    preset.write_text("---\nname: p\ndescription: d\ncheck: tests\n---\n")
    engine = open_engine(project_dir, checks={"tests": shell("echo one"), "other": shell("echo two")})
    for wanted, output in ((None, "one"), ("other", "two"), ("", None)):
        run = run_to_end(engine, "answer ok", preset="p", check=wanted)
        check = result_of(engine, run).check
        assert output == (check and check.output)
        assert (wanted if wanted is not None else "tests") == run.meta.check
        assert b"echo" not in (run_dir(engine, run) / paths.META).read_bytes()


def test_an_unknown_check_is_refused(project_dir: Path) -> None:
    """An unknown check starts nothing, and the error lists the known checks and where to set them."""
    engine = open_engine(project_dir, checks={"tests": ["make"], "types": ["tsc"]})
    with pytest.raises(UsageError, match='unknown check "test"') as refused:
        start(engine, "answer ok", check="test")
    assert "known: tests, types; set checks in" in refused.value.hint
    assert paths.user_settings_file() in refused.value.hint
    assert not tuple(engine.snapshots())
    (problem,) = engine.check(RunRequest(task="x", check="nothing"))
    assert "known: tests, types" == problem.brief_hint


def test_a_project_cannot_set_checks(project_dir: Path) -> None:
    """A project cannot set checks, because only the user may choose commands."""
    settings = project_dir / ".pi" / "subagents" / "config.yaml"
    settings.parent.mkdir(parents=True)
    settings.write_text("checks: {tests: [make, test]}\n")
    with pytest.raises(SettingsError, match='"checks" cannot be set by a project'):
        open_engine(project_dir).launch([request("answer ok")], background=True)


@pytest.mark.parametrize(
    ("script", "note"),
    [(["error overloaded"], "not run: the run failed"), (["hang"], "not run: the run was ended")],
)
def test_no_check_of_what_did_not_complete(project_dir: Path, script: list[str], note: str) -> None:
    """A run that failed or was stopped is not checked, with a note and without a verdict."""
    engine = engine_with(project_dir, "touch ../checked")
    run = start(engine, *script, check="tests")
    if "hang" in script:
        engine.stop([run.run_id])
    run = wait_for_end(engine, run.run_id)
    check = checked(engine, run)
    assert (note, False, "") == (check.note, check.failed, check_word(check))
    assert not (project_dir.parent / "checked").exists()


def test_a_check_that_cannot_be_started(project_dir: Path) -> None:
    """A run whose check cannot start has still completed."""
    engine = open_engine(project_dir, checks={"tests": ["/missing/program"]})
    run = run_to_end(engine, "answer ok", check="tests")
    check = checked(engine, run)
    assert "cannot start it: /missing/program: No such file or directory" == check.note
    assert ("completed", True) == (run.status, check.failed)


def test_while_a_check_runs(project_dir: Path, tmp_path: Path) -> None:
    """While a check runs, the run shows its name and time, is never idle, and takes no messages."""
    gate = tmp_path / "gate"
    engine = engine_with(project_dir, f"while ! [ -e {gate} ]; do sleep 0.02; done")
    run = checking(engine, start(engine, "answer ok", check="tests"))
    assert re.fullmatch(r"checking: tests 0:0\d", doing(run))
    assert ("running", None, False) == (run.status, run.silent_from, run.can_talk)
    evidence = DiagnosisReader(engine.project, run.run_id).read(run)
    assert "checking: tests" in explain(run, evidence, datetime.now(UTC))
    gate.touch()
    assert checked(engine, wait_for_end(engine, run.run_id)).passed


@pytest.mark.parametrize("force", [False, True])
def test_a_stop_ends_a_check(project_dir: Path, tmp_path: Path, force: bool) -> None:
    """A stop ends the check and everything it started; the run stays completed, because its agent had finished."""
    script = f"sleep 1000 & echo $! > {tmp_path}/pid; echo begun; wait"
    engine = engine_with(project_dir, script, grace_seconds=FOREVER)
    run = checking(engine, start(engine, "answer Kept.", check="tests"))
    pid = pid_in(tmp_path / "pid")
    engine.stop([run.run_id], force=force)
    run = wait_for_end(engine, run.run_id)
    wait_until_gone(pid)
    check = checked(engine, run)
    assert f"the run was {'killed' if force else 'stopped'} while the check was running" == check.note
    assert ("completed", "begun", "Kept.") == (run.status, check.output, result_of(engine, run).final_text)


def test_a_check_that_takes_too_long(project_dir: Path) -> None:
    """A check that exceeds its time limit is ended, even if it ignores TERM."""
    engine = engine_with(project_dir, "trap '' TERM; echo deaf; while :; do sleep 1000; done", check_timeout=0.3)
    check = checked(engine, run_to_end(engine, "answer ok", check="tests"))
    assert ("it took longer than 0:00", True, "deaf") == (check.note, check.failed, check.output)


def test_a_wrapper_that_dies_while_it_checks(project_dir: Path, tmp_path: Path) -> None:
    """If the wrapper dies during a check, the run is lost, the check's processes are ended, and no verdict is noted."""
    engine = engine_with(project_dir, f"echo $$ > {tmp_path}/pid; sleep 1000")
    run = checking(engine, start(engine, "answer ok", check="tests"))
    pid = pid_in(tmp_path / "pid")
    os.kill(started(engine, run).pid, signal.SIGKILL)
    run = wait_for_end(engine, run.run_id)
    wait_until_gone(pid)
    assert ("lost", "its wrapper died while the check was running") == (run.reason, checked(engine, run).note)


def test_much_output(project_dir: Path) -> None:
    """The check log is capped with a note, and the result always has the last lines."""
    script = "yes 0123456789 | head -c 3000000; echo; echo the end"
    engine = engine_with(project_dir, script, logs={"stderr_mb": 1})
    run = run_to_end(engine, "answer ok", check="tests")
    log = (run_dir(engine, run) / paths.CHECK_LOG).read_bytes()
    assert len(log) < 1_100_000
    assert log.endswith(b"has reached its cap]\n")
    lines = checked(engine, run).output.split("\n")
    assert ("the end", 20) == (lines[-1], len(lines))


def test_hostile_output(project_dir: Path) -> None:
    """A check's output never reaches a terminal as control sequences."""
    engine = engine_with(project_dir, "printf 'a\\033]0;title\\007b\\r\\377c\\033[31m\\n'; exit 1")
    run = run_to_end(engine, "answer ok", check="tests")
    assert "\x1b" not in checked(engine, run).output
    assert "\x1b" not in (run_dir(engine, run) / paths.TRANSCRIPT).read_text()


def test_what_parents_are_told(project_dir: Path) -> None:
    """A delegating agent reads the verdict and, unless it passed, the end of the output; clients get fields."""
    engine = engine_with(project_dir, "echo 1 failed; exit 1")
    run = run_to_end(engine, "answer Done.", check="tests")
    result = result_of(engine, run)
    text = result_text(run, result)
    assert "**Check:** tests ✗ exit code 1" in text
    assert text.index("Done.") < text.index("1 failed")
    fields = end_fields(run, result)["check"]
    assert ("tests", False, 1, "1 failed") == tuple(fields[key] for key in ("name", "passed", "exitCode", "output"))
    passed = replace(result, check=CheckResult("tests", 0, 1.0, "fine"))
    assert "fine" not in result_text(run, passed)
    assert "output" not in end_fields(run, passed)["check"]
    shown = brief({"counts": {}, **run_fields(run), **end_fields(run, result)}, 10_000, lambda *_: "")
    assert "1 failed" == shown["check"]["output"]


def test_where_it_is_shown(project_dir: Path, capsys: pytest.CaptureFixture[str], monkeypatch: Any) -> None:
    """Lists show a check by glyph and word, a named run with its verdict, and JSON as an object."""
    engine = engine_with(project_dir, "exit 1")
    run = run_to_end(engine, "answer Done.", check="tests")
    monkeypatch.chdir(project_dir)
    status.main([run.run_id], standalone_mode=False)
    listed = capsys.readouterr().out
    assert "check ✗ · Done." in listed
    assert re.search(r"check tests ✗ exit code 1 after \d+:\d\d", listed)
    status.main([run.run_id, "--json"], standalone_mode=False)
    assert '"check": {\n        "name": "tests",\n        "passed": false,' in capsys.readouterr().out


def test_words_of_a_passed_one() -> None:
    """A passed check comes before the run's final message."""
    run = make_snapshot(message="31 functions", check=CheckResult("tests", 0, 14.0))
    assert ("check ✓ · 31 functions", "tests ✓ passed after 0:14") == (doing(run), check_words(run.check))


def test_exit_codes() -> None:
    """A failed check has its own exit code, below those of failed and ended runs."""
    passed, failed = (make_snapshot(check=CheckResult("tests", code)) for code in (0, 1))
    unchecked = make_snapshot(check=CheckResult("tests", note="not run: the run was being stopped"))
    stopped = make_snapshot(status="aborted")
    codes = [worst(runs) for runs in ((passed, unchecked), (passed, failed), (failed, stopped))]
    assert [0, 4, 3] == codes


def test_a_check_in_a_worktree(project_dir: Path) -> None:
    """A check sees the agent's changes in its worktree, and its own files do not count as changes of the run."""
    engine = engine_with(make_repository(project_dir), "cat made.txt; touch by-the-check")
    run = run_to_end(engine, "save made.txt mine\\n", "answer Done.", check="tests", worktree=True)
    assert "mine" == checked(engine, run).output
    assert run.meta.cwd != str(project_dir)
    assert run.changes and ["made.txt"] == [file.path for file in run.changes.named]
    assert not (project_dir / "made.txt").exists()
