"""Other processes and users in a run's directory: their changes are not claimed for the run."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from subdeck.core import paths
from subdeck.core.engine import Engine
from subdeck.core.work import presence

from tests.factories import open_engine, request, result_of, run_to_end, start, started, wait_for_end
from tests.waiting import wait_until

from ..git.repositories import git, make

pytestmark = [pytest.mark.processes, pytest.mark.usefixtures("forked_wrappers")]

ROOT = "/src/shop"


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    return make(tmp_path / "repository", {"a.py": "one\ntwo\n", "sub/b.py": "b\n"})


def shared(engine: Engine, *script: str) -> str:
    changes = result_of(engine, run_to_end(engine, *script, "answer Done.")).changes
    assert changes is not None
    assert bool(changes.shared) == (changes.figure == "shared")
    return changes.shared


def run_id(number: int) -> str:
    return f"20261123-000000-{number:06x}"


def test_who_is_there() -> None:
    """Runs are known while they hold their files, and afterwards while a run from that time still needs it."""
    first = presence.announce(run_id(1), ROOT, "first")
    assert [] == presence.others(run_id(1), ROOT)
    second = presence.announce(run_id(2), ROOT, "second")
    elsewhere = presence.announce(run_id(3), "/src/other", "third")
    assert [("first", True)] == [(one.words, one.is_there) for one in presence.others(run_id(2), ROOT)]
    presence.leave(run_id(2), ROOT)
    os.close(second)
    assert [("second", False)] == [(one.words, one.is_there) for one in presence.others(run_id(1), ROOT)]
    presence.leave(run_id(1), ROOT)
    os.close(first)
    os.close(elsewhere)  # as after a kill
    assert [] == presence.others(run_id(4), ROOT)
    assert [] == os.listdir(paths.state_file("work", "present"))


def test_ten_at_once(repository: Path) -> None:
    """Of ten agents writing at the same time, none claims the others' files."""
    engine = open_engine(repository, max_parallel=10)
    gate = repository.parent / "gate"
    scripts = [(f"save own{number}.py x", f"wait-for {gate}", "answer Done.") for number in range(10)]
    runs = engine.launch([request(*script) for script in scripts], background=True)
    wait_until(lambda: len(list(repository.glob("own*.py"))) == 10, "all to have written")
    gate.touch()
    for run in runs:
        changes = result_of(engine, wait_for_end(engine, run.run_id)).changes
        assert "shared" == changes.figure
        assert "other runs there" in changes.shared
    assert "" == shared(engine, "save later.py x")


def test_a_run_of_another_project(repository: Path) -> None:
    """A run of another project counts if it works in the same working tree, and only then."""
    other = make(repository.parent / "other", {"x": "x\n"})
    gate = repository.parent / "gate"
    far = open_engine(other)
    inside = start(far, f"wait-for {gate}", "answer Done.", cwd=str(repository / "sub"))
    outside = start(far, f"wait-for {gate}", "answer Done.")
    for run in (inside, outside):
        started(far, run)
    said = shared(open_engine(repository), "edit a.py one 1")
    assert f"other runs there: one-off {inside.meta.short_id}" == said
    gate.touch()
    for run in (inside, outside):
        wait_for_end(far, run.run_id)


@pytest.mark.parametrize(
    ("script", "said"),
    [
        (("save new.py x", "put a.py changed"), "not written by its tools: a.py"),
        (("put sub/b.py changed", "bash true"), ""),
        (("save new.py x", "bash touch y"), ""),
    ],
)
def test_files_that_its_tools_did_not_write(repository: Path, script: tuple[str, ...], said: str) -> None:
    """A run without a shell changed only the files that its tools wrote."""
    assert said == shared(open_engine(repository), *script)


def test_a_person_who_checks_something_out(repository: Path) -> None:
    """If HEAD or the branch moved without a git command of the run, a user did that."""
    git(repository, "branch", "other")
    engine = open_engine(repository)

    def meanwhile(*words: str) -> str:
        gate, seen = repository.parent / "gate", repository.parent / "seen"
        run = start(engine, f"touch {seen}", f"wait-for {gate}", "save new.py x", "bash true", "answer Done.")
        wait_until(seen.exists, "the child to be at work")
        git(repository, *words)
        gate.touch()
        changes = result_of(engine, wait_for_end(engine, run.run_id)).changes
        for path in (gate, seen, repository / "new.py"):
            path.unlink()
        return changes.shared

    assert "another branch was checked out: other" == meanwhile("checkout", "-q", "other")
    assert "HEAD was moved" == meanwhile("commit", "-q", "--allow-empty", "-m", "mine")


def test_a_child_that_commits(repository: Path) -> None:
    """A run's own commits are its changes."""
    engine = open_engine(repository)
    identity = "-c user.name=A -c user.email=a@example.org"
    run = run_to_end(engine, "save new.py x", f"bash git add -A && git {identity} commit -qm mine", "answer Done.")
    changes = result_of(engine, run).changes
    assert ("1 file +1 −0", "") == (changes.words, changes.shared)
