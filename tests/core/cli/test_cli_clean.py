"""`subdeck rm` with a rule, and the reason in `subdeck status` why a run is not done."""

from __future__ import annotations

import os
import pty
import subprocess
import time
from pathlib import Path

import pytest
from subdeck.core import paths
from subdeck.core.engine import Engine
from subdeck.core.project.trash import DAY
from subdeck.core.run.model import RunMeta

from tests.core.command_line import SUBDECK, run_dirs, subdeck
from tests.factories import make_finished, open_engine, run_dir, start, started, wait_for_end

pytestmark = [pytest.mark.processes, pytest.mark.usefixtures("forked_commands")]


@pytest.fixture
def engine(project_dir: Path) -> Engine:
    return open_engine(project_dir, retention={"days": 30})


def finished(engine: Engine, days: float) -> RunMeta:
    meta = make_finished(engine.project, exit_code=0)
    then = time.time() - days * DAY
    os.utime(os.path.join(engine.project.run_dir(meta.run_id), paths.RESULT), (then, then))
    return meta


def test_a_dry_run_changes_nothing(engine: Engine, project_dir: Path) -> None:
    """It prints the runs to delete, the space freed and when. Without options, the settings' rules apply."""
    old = finished(engine, 31)
    finished(engine, 1)
    done = subdeck("rm", "--retention", "--dry-run", cwd=project_dir)
    assert (0, "") == (done.code, done.err)
    first, second, third = done.out.splitlines()
    assert first.startswith("2 runs, ") and first.endswith("in the trash: 0 runs, 0 B")
    assert second.startswith("to delete: 1 run, ") and second.endswith(f"({old.short_id})")
    assert third.startswith("this frees ") and "in a day" in third
    assert "at once" in subdeck("rm", "--retention", "--dry-run", "--purge", cwd=project_dir).out
    assert 2 == len(run_dirs(project_dir))


def test_rules_of_the_call_replace_those_of_the_settings(engine: Engine, project_dir: Path) -> None:
    """With --keep, the age in the settings does not apply."""
    old, new = finished(engine, 31), finished(engine, 1)
    document = subdeck("rm", "--keep", "5", "--dry-run", "--json", cwd=project_dir).document
    assert ([], {"olderThanDays": None, "keep": 5, "maxMb": None}) == (document["going"]["runs"], document["rule"])
    document = subdeck("rm", "--older-than", "0.5", "--dry-run", "--json", cwd=project_dir).document
    assert [old.run_id, new.run_id] == document["going"]["runs"]
    document = subdeck("rm", "--max-mb", "0", "--dry-run", "--json", cwd=project_dir).document
    assert 2 == len(document["going"]["runs"])


@pytest.mark.parametrize(
    ("days", "going"),
    [("2d", 1), ("2", 1), ("12h", 2), ("4W", 1), ("9w", 0), ("3m", '"3m": expected a number of days')],
)
def test_an_age_may_have_a_unit(engine: Engine, project_dir: Path, days: str, going: int | str) -> None:
    """Units are those of the app's filter, and an invalid age is a readable error."""
    for age in (31, 1):
        finished(engine, age)
    done = subdeck("rm", "--older-than", days, "--dry-run", "--json", cwd=project_dir)
    if isinstance(going, str):
        assert going in done.error["what"]
    else:
        assert going == len(done.document["going"]["runs"])


def test_what_went_comes_back(engine: Engine, project_dir: Path) -> None:
    """With --yes, the runs are moved to the trash, and `rm --undo` restores them."""
    old, new = finished(engine, 31), finished(engine, 1)
    document = subdeck("rm", "--retention", "--yes", "--json", cwd=project_dir).document
    assert ([old.run_id], []) == (document["moved"], document["left"])
    assert [new.run_id] == [path.name for path in run_dirs(project_dir)]
    assert 0 == subdeck("rm", "--undo", old.short_id, cwd=project_dir).code
    assert 2 == len(run_dirs(project_dir))
    done = subdeck("rm", "--retention", "--yes", "--purge", cwd=project_dir)
    assert "1 run deleted permanently" in done.out
    assert 2 == subdeck("rm", "--undo", old.short_id, cwd=project_dir).code


def test_nothing_is_done_without_a_yes(engine: Engine, project_dir: Path) -> None:
    """Without a terminal, --yes is required. A missing rule is an error, a rule without matches is not."""
    finished(engine, 31)
    refused = subdeck("rm", "--retention", cwd=project_dir)
    assert 2 == refused.code
    assert "--yes" in refused.err
    assert "--json cannot ask" in subdeck("rm", "--retention", "--json", cwd=project_dir).error["what"]
    assert 1 == len(run_dirs(project_dir))
    assert "nothing to delete" in subdeck("rm", "--keep", "5", cwd=project_dir).out
    open_engine(project_dir)
    ruleless = subdeck("rm", "--retention", cwd=project_dir)
    assert 2 == ruleless.code
    assert "--older-than, --keep or --max-mb" in ruleless.err
    assert 2 == subdeck("rm", "--keep", "-1", cwd=project_dir).code


@pytest.mark.parametrize(("answer", "left"), [(b"\n", 1), (b"n\n", 1), (b"y\n", 0)])
def test_it_asks(engine: Engine, project_dir: Path, answer: bytes, left: int) -> None:
    """On a terminal it asks, and Enter means no."""
    finished(engine, 31)
    ours, theirs = pty.openpty()
    with subprocess.Popen(
        [*SUBDECK, "rm", "--retention"], cwd=project_dir, stdin=theirs, stdout=subprocess.PIPE
    ) as process:
        os.write(ours, answer)
        assert process.stdout is not None
        said = process.stdout.read()
        assert 0 == process.wait(timeout=30)
    for descriptor in (ours, theirs):
        os.close(descriptor)
    assert b"to delete: 1 run" in said
    assert left == len(run_dirs(project_dir))


def test_a_running_run_stays(engine: Engine, project_dir: Path) -> None:
    """It is counted and kept, and `status` has the reason why it is not done, in text and JSON."""
    run = start(engine, "hang")
    child = started(engine, run).child_pid
    document = subdeck("rm", "--keep", "0", "--yes", "--json", cwd=project_dir).document
    assert ([], 1) == (document["moved"], document["unfinished"])
    shown = subdeck("status", run.run_id, cwd=project_dir).out
    assert f"{run.meta.short_id} running 0:" in shown
    assert f"pid {child} alive" in shown
    assert f"pid {child} alive" in subdeck("status", "--json", cwd=project_dir).document["runs"][0]["why"]
    engine.stop([run.run_id], force=True)
    ended = wait_for_end(engine, run.run_id)
    assert run_dir(engine, ended).is_dir()
    assert "killed by" in subdeck("status", run.run_id, cwd=project_dir).out


@pytest.mark.parametrize(
    ("words", "what"),
    [
        (["abcdef", "--keep", "1"], "RUN and a rule cannot be combined"),
        (["--undo", "--retention"], "--undo and a rule cannot be combined"),
        (["abcdef", "--dry-run"], "--dry-run requires a rule"),
        (["--purge", "--unmerged"], "--unmerged requires a rule"),
        (["--yes"], "RUN is missing"),
    ],
)
def test_a_rule_is_given_on_purpose(engine: Engine, project_dir: Path, words: list[str], what: str) -> None:
    """Without names, runs are only deleted by an explicit rule, and names have no rule."""
    finished(engine, 31)
    error = subdeck("rm", *words, "--json", cwd=project_dir).error
    assert what == error["what"]
    assert 1 == len(run_dirs(project_dir))
