"""Runs that work in a git worktree of their own: launched, made, left alone, gone on with."""

from __future__ import annotations

from pathlib import Path

import pytest
from subdeck.core import paths
from subdeck.core.run.model import WorktreeFrom

from tests.factories import open_engine, result_of, run_to_end

from .repositories import git, make


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    root = make(tmp_path / "repository", {"a.py": "one\n", "lib/b.py": "b\n", ".gitignore": ".env\n"})
    (root / "a.py").write_text("not committed\n")
    (root / "new.py").write_text("untracked\n")
    (root / ".env").write_text("KEY=1\n")
    return root


def state_of(root: Path) -> tuple[str, ...]:
    """What of a repository no run in a worktree may touch."""
    index = (root / ".git" / "index").read_bytes().hex()
    return (
        *(git(root, "status", "--porcelain"), git(root, "stash", "list"), git(root, "rev-parse", "HEAD"), index),
        *(git(root, "symbolic-ref", "HEAD"), git(root, "branch", "--list", "main")),
    )


def test_a_run_in_a_worktree(repository: Path) -> None:
    """It works in a copy of the files as they are, on a branch of its own; the user's files, index, branch and stash
    stay as they were.
    """
    before = state_of(repository)
    engine = open_engine(repository)
    run = run_to_end(engine, "save a.py mine\\n", "save more.py x\\n", "answer Done.", worktree=WorktreeFrom.FILES)
    assert "completed" == run.status, result_of(engine, run)
    tree = Path(run.meta.cwd)
    assert str(tree) == paths.work_dir(engine.project, run.run_id) + "/tree"
    assert ("mine\n", "untracked\n", "x\n") == tuple(
        (tree / name).read_text() for name in ("a.py", "new.py", "more.py")
    )
    assert before == state_of(repository)
    plan, changes = run.meta.worktree, result_of(engine, run).changes
    assert plan
    assert changes
    branch = f"subdeck/adhoc-{run.meta.short_id}"
    assert (branch, str(repository), 2) == (plan.branch, plan.root, plan.uncommitted)
    assert branch == git(tree, "branch", "--show-current")
    assert "not committed" == git(tree, "show", "HEAD:a.py")
    assert [("a.py", 1, 1), ("more.py", 1, 0)] == [(file.path, file.added, file.removed) for file in changes.named]
