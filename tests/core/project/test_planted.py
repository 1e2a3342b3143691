"""Planted files below `.pi/subagents` lead nowhere: neither reading nor acting changes anything elsewhere."""

from __future__ import annotations

import os
import shutil
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path

import pytest
from subdeck.core import paths
from subdeck.core.cli.main import main
from subdeck.core.engine import Engine
from subdeck.core.errors import LaunchError, UsageError
from subdeck.core.project.follower import watch
from subdeck.core.project.session import SessionFile
from subdeck.core.run.artifacts import RunnerFacts
from subdeck.core.run.events import RunStarted, encode_event
from subdeck.core.run.model import LauncherKind, RunnerKind

from ...factories import make_finished, make_meta, make_run, open_engine, run_to_end, write_runner, write_settings
from ...killing import IS_WHOLE
from ...planted import KINDS, make_outside, plant, tree_of
from ..command_line import Done, subdeck, write_preset

pytestmark = [pytest.mark.processes, pytest.mark.usefixtures("forked_wrappers")]

PLANTED = "20260101-000000-abcdef"
"""The planted run."""


@pytest.fixture
def project(project_dir: Path) -> paths.Project:
    write_settings()
    found = paths.Project(str(project_dir))
    for directory in (found.runs, found.active, found.sessions, found.trash):
        os.makedirs(directory)
    return found


@pytest.fixture
def outside(tmp_path: Path) -> Iterator[Path]:
    """Another user's files elsewhere, which must stay unchanged until the end."""
    outside = make_outside(tmp_path)
    before = tree_of(outside)
    yield outside
    assert before == tree_of(outside)


def planted_dir(project: paths.Project) -> Path:
    return Path(project.run_dir(PLANTED))


def command(project: paths.Project, *words: str) -> Done:
    return subdeck(*words, cwd=Path(project.root))


def first_update(project: paths.Project) -> None:
    """Do what the app does at its start."""
    with suppress(UsageError):
        engine = Engine.open(project.root, kind=LauncherKind.APP)
        engine.purge()
        next(iter(engine.updates(threading.Event())))


def test_a_link_in_the_place_of_a_run(project: paths.Project, outside: Path) -> None:
    """If a run's directory is a link, reading it changes nothing in the target: no lock, no result, no removal.

    An explicit delete removes only the link.
    """
    good = make_finished(project)
    planted_dir(project).symlink_to(outside / "directory")
    listed = command(project, "status", "--all")
    assert 0 == listed.code
    assert good.short_id in listed.out
    assert "abcdef" in listed.out
    assert 0 == command(project, "status", "abcdef").code
    first_update(project)
    assert 0 == command(project, "rm", "abcdef").code
    assert 0 == command(project, "rm", "--purge", "abcdef").code
    assert [good.run_id] == os.listdir(project.runs)
    assert [] == os.listdir(project.trash)


@pytest.mark.parametrize("target", ["not-there", "secret", "directory"])
def test_a_link_in_the_place_of_a_lock(project: paths.Project, outside: Path, target: str) -> None:
    """A lock that is a link is neither created nor opened at its target."""
    meta, lock = make_run(project, make_meta(PLANTED))
    os.close(lock)
    path = planted_dir(project) / paths.LOCK
    path.unlink()
    path.symlink_to(outside / target)
    assert 0 == command(project, "status", "--all").code
    first_update(project)
    assert not (planted_dir(project) / paths.RESULT).exists()
    assert 0 == command(project, "rm", meta.short_id).code


@pytest.mark.parametrize("option", ["--raw", "--stderr", "--events"])
def test_a_log_that_is_a_link(project: paths.Project, outside: Path, option: str) -> None:
    """The target of a linked log is not printed, and the error names the link."""
    run = make_finished(project)
    for name in (paths.STDOUT, paths.STDERR, paths.EVENTS):
        Path(project.run_dir(run.run_id), name).symlink_to(outside / "secret")
    shown = command(project, "logs", option, run.short_id)
    assert (2, "") == (shown.code, shown.out)
    assert "is a symbolic link; subdeck does not open links here" in shown.err


def test_an_extension_for_pi_stays_in_the_project(project: paths.Project, tmp_path: Path) -> None:
    """If `.pi` leads out of the project nothing is installed there."""
    shutil.rmtree(Path(project.root, ".pi"))
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    Path(project.root, ".pi").symlink_to(elsewhere)
    refused = command(project, "connect", "pi", "--project")
    assert (2, []) == (refused.code, os.listdir(elsewhere))
    assert ".pi is a symbolic link out of the project" in refused.err


def test_another_project_in_the_place_of_the_trash(project: paths.Project, tmp_path: Path) -> None:
    """If the trash is a link to another project's runs, starting the app purges none of them."""
    other = paths.Project(str(tmp_path / "other"))
    run = make_finished(other)
    long_ago = time.time() - 40 * 24 * 3600
    os.utime(other.run_dir(run.run_id), (long_ago, long_ago))
    mine = make_finished(project)
    before = tree_of(Path(other.root))
    os.rmdir(project.trash)
    os.symlink(other.runs, project.trash)
    first_update(project)
    assert 0 == command(project, "rm", "--purge").code
    refused = command(project, "rm", mine.short_id)
    assert 0 != refused.code
    assert "trash is a symbolic link; subdeck does not open links here" in refused.err
    assert before == tree_of(Path(other.root))


def test_a_link_in_the_place_of_the_session(project: paths.Project, outside: Path) -> None:
    """A launch appends nothing to the target of a linked session file, and fails with the reason."""
    write_preset(Path(project.root), "x$(touch pwned)")
    os.symlink(outside / "secret", project.session_file("operator"))
    launched = command(project, "bg", "x$(touch pwned)", "answer ok")
    assert 2 == launched.code
    assert "sessions/operator.jsonl is a symbolic link; subdeck does not open links here" in launched.err
    assert () == Engine.open(project.root).snapshots()


@pytest.mark.parametrize("name", ["runs", "active", "sessions"])
def test_a_link_in_the_place_of_our_own_directories(project: paths.Project, outside: Path, name: str) -> None:
    """If one of subdeck's directories is a link, nothing is made or removed in its target."""
    os.rmdir(f"{project.home}/{name}")
    os.symlink(outside / "directory", f"{project.home}/{name}")
    command(project, "status", "--all")
    first_update(project)
    command(project, "bg", "--no-preset", "answer ok")
    command(project, "rm", "--keep", "0", "--yes")


IN_A_RUN = (
    "meta.json",
    "result.json",
    "events.jsonl",
    "stop.json",
    "runner.json",
    "transcript.log",
    "stdout.log",
    "stderr.log",
    "lock",
    "prompt.md",
    "system-prompt.md",
    "child-session.jsonl",
    "environment",
)
BESIDE_RUNS = (
    "active/" + PLANTED,
    "sessions/operator.jsonl",
    "trash/" + PLANTED,
    "active",
    "sessions",
    "trash",
    "a.md",
)
"""Names below `.pi/subagents`; with any of them planted, the runs are still listed."""
ALL_RUNS = ("runs", "runs/.slots", "config.yaml", ".gitignore")
"""More names there, for which the list may be empty."""


@pytest.fixture
def cli(
    project: paths.Project, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> Callable[..., Done]:
    """Call the command line in this process, so that an uncaught error fails the test."""
    monkeypatch.chdir(project.root)

    def call(*words: str) -> Done:
        capfd.readouterr()
        code = main(lambda runs, readonly, beside: 0, words)
        return Done(code, *capfd.readouterr())

    return call


def unfinished(project: paths.Project) -> None:
    """Make a run whose wrapper has died, recorded in a session."""
    meta, lock = make_run(project, make_meta(PLANTED, background=True, session_path="child-session.jsonl"))
    os.close(lock)
    write_runner(project.run_dir(meta.run_id), RunnerFacts(RunnerKind.PROCESS, "here", "b", "n", 1, 1))
    (planted_dir(project) / "events.jsonl").write_bytes(
        encode_event(RunStarted(pid=1, child_pid=2, attempt=1, max_attempts=1))
    )
    SessionFile(project, "operator").add_run(meta)


def pairs(names: Sequence[str]) -> list[tuple[str, str]]:
    """Return each kind with each name for `make soak`, or else each kind and name with a third of the others."""
    found = [(kind, name, row + column) for row, kind in enumerate(KINDS) for column, name in enumerate(names)]
    return [(kind, name) for kind, name, number in found if IS_WHOLE or number % 3 == 0]


def look_and_act(cli: Callable[..., Done], project: paths.Project) -> str:
    """Read and act on the planted run and on all runs, as users do; return the first list of runs."""
    listed = cli("status", "--all").out
    first_update(project)
    for words in (
        ("status", "abcdef", "--json"),
        ("logs", "abcdef"),
        ("logs", "abcdef", "--raw"),
        ("logs", "abcdef", "--stderr"),
        ("logs", "abcdef", "--events", "--json"),
        ("logs", "abcdef", "--markdown"),
        ("stop", "abcdef"),
        ("doctor",),
        ("presets",),
        ("rm", "--keep", "1", "--dry-run"),
        ("rm", "abcdef"),
        ("rm", "--undo", "abcdef"),
        ("rm", "--purge", "abcdef"),
        ("rm", "--keep", "0", "--yes"),
    ):
        cli(*words)
    return listed


@pytest.mark.timeout(30)
@pytest.mark.parametrize(("kind", "name"), pairs(IN_A_RUN))
def test_anything_in_the_place_of_a_file_of_a_run(
    project: paths.Project, outside: Path, cli: Callable[..., Done], kind: str, name: str
) -> None:
    """Anything in place of a run's file changes nothing elsewhere, blocks no command and hides no other run."""
    good = make_finished(project)
    unfinished(project)
    (planted_dir(project) / name).unlink(missing_ok=True)
    plant(kind, planted_dir(project) / name, outside)
    listed = look_and_act(cli, project)
    assert good.short_id in listed
    assert "abcdef" in listed


@pytest.mark.timeout(60)
@pytest.mark.parametrize(("kind", "name"), pairs((*BESIDE_RUNS, *ALL_RUNS, f"runs/{PLANTED}")))
def test_anything_in_the_place_of_what_a_project_keeps(
    project: paths.Project, outside: Path, cli: Callable[..., Done], kind: str, name: str
) -> None:
    """Anything in place of subdeck's own files and directories changes nothing elsewhere, even by a launch."""
    good = make_finished(project)
    unfinished(project)
    path = Path(project.home, name)
    if path.is_dir():
        shutil.rmtree(path)
    path.unlink(missing_ok=True)
    plant(kind, path, outside)
    assert (good.short_id in look_and_act(cli, project)) or name in ALL_RUNS
    is_directory = kind == "directory"
    launched = cli("run", "--no-preset", "answer ok")
    assert 0 == launched.code or (f"{name} is a" in launched.err and not is_directory) or "config.yaml" in launched.err


def watched_inodes() -> set[int]:
    """Return the inodes that this process watches."""
    found: set[int] = set()
    for entry in os.listdir("/proc/self/fdinfo"):
        with suppress(OSError):
            lines = Path("/proc/self/fdinfo", entry).read_text().split("\n")
            found |= {int(line.split(" ino:")[1].split()[0], 16) for line in lines if line.startswith("inotify ")}
    return found


def test_a_watch_stays_in_the_project(project: paths.Project, outside: Path) -> None:
    """If the directory of the activity files is a link, its target is not watched, but the project is."""
    os.rmdir(project.active)
    os.symlink(outside / "directory", project.active)
    changes = watch(project, lambda: (project.home,), threading.Event())
    assert next(changes).restarted
    assert os.stat(project.home).st_ino in watched_inodes()
    assert (outside / "directory").stat().st_ino not in watched_inodes()


@pytest.mark.parametrize("kind", KINDS)
def test_anything_in_the_place_of_the_slots(project: paths.Project, outside: Path, kind: str) -> None:
    """If the slots' directory is invalid, a run that would wait for a slot is refused before it exists."""
    plant(kind, Path(project.slots), outside)
    if kind == "directory":
        assert run_to_end(open_engine(Path(project.root), max_running=1), "answer ok").status == "completed"
        return
    with pytest.raises(LaunchError, match=r"runs/.slots is a"):
        run_to_end(open_engine(Path(project.root), max_running=1), "answer ok")
    assert [".slots"] == os.listdir(project.runs)
