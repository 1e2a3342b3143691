"""Worktrees and their branches: made, listed and removed by git."""

from __future__ import annotations

import os
import shutil
import threading
from pathlib import Path

import pytest
from subdeck.core.git import merges, worktrees
from subdeck.core.git.program import GitError
from subdeck.core.git.repository import Repository
from subdeck.core.git.snapshot import Store

from .repositories import found, git, make, write

pytestmark = pytest.mark.processes


def references(root: Path) -> tuple[str, str]:
    return git(root, "for-each-ref"), git(root, "worktree", "list")


def test_a_worktree_comes_and_goes(tmp_path: Path) -> None:
    """A worktree has its commit's files on its own branch; nothing is left after its removal."""
    root = make(tmp_path / "r", {"a": "1", "deep/b": "2"})
    before = references(root)
    repository = found(root)
    path = tmp_path / "state" / "new\nline" / "tree"
    worktrees.add(repository, str(path), "subdeck/x-1", str(repository.head))
    assert "1" == (path / "a").read_text() and "" == git(path, "status", "--porcelain")
    made = found(path / "deep")
    assert made.is_linked and not made.trouble
    assert ("subdeck/x-1", "deep", str(path)) == (made.branch, made.prefix, made.root)
    assert [str(root), str(path)] == [tree.path for tree in worktrees.listed(repository)]
    assert [("subdeck/x-1", repository.head, str(path))] == [
        (branch.name, branch.commit, branch.worktree) for branch in worktrees.branches(repository, "subdeck")
    ]
    assert not worktrees.delete_branch(repository, "subdeck/x-1", str(repository.head)), "it is checked out"
    worktrees.remove(repository, str(path))
    assert not path.exists()
    assert not worktrees.delete_branch(repository, "subdeck/x-1", "0" * 40), "it is elsewhere"
    assert worktrees.delete_branch(repository, "subdeck/x-1", str(repository.head))
    assert before == references(root)


def test_a_failed_one_leaves_nothing(tmp_path: Path) -> None:
    """A worktree that cannot be made leaves neither directory nor branch, and existing ones stay."""
    root = make(tmp_path / "r", {"a": "1"})
    before = references(root)
    repository = found(root)
    with pytest.raises(GitError):
        worktrees.add(repository, str(tmp_path / "tree"), "subdeck/x", "0" * 40)
    with pytest.raises(GitError, match="not a valid branch name"):
        worktrees.add(repository, str(tmp_path / "tree"), "-x..y", str(repository.head))
    git(root, "config", "--global", "filter.broken.smudge", "false")
    git(root, "config", "--global", "filter.broken.clean", "cat")
    git(root, "config", "--global", "filter.broken.required", "true")
    write(root, {".gitattributes": "a filter=broken"})
    with pytest.raises(GitError):
        worktrees.add(repository, str(tmp_path / "tree"), "subdeck/x", _base(repository, tmp_path))
    assert before == references(root)
    assert not (tmp_path / "tree").exists()
    git(root, "branch", "taken")
    (tmp_path / "there").mkdir()
    for path, branch in (("tree", "taken"), ("there", "free")):
        with pytest.raises(GitError, match="already"):
            worktrees.add(repository, str(tmp_path / path), branch, str(repository.head))
    assert git(root, "rev-parse", "taken") == repository.head and (tmp_path / "there").is_dir()


def _base(repository: Repository, tmp_path: Path) -> str:
    """Commit the working tree as it is."""
    taken = Store(str(tmp_path / "store")).take(repository, into_repository=True)
    return merges.commit(repository.git, taken.tree, [str(repository.head)], "base")


def test_from_the_working_tree(tmp_path: Path) -> None:
    """A worktree made of a snapshot has uncommitted and untracked files, but no ignored files."""
    root = make(tmp_path / "r", {"a": "1", ".gitignore": "*.o"})
    write(root, {"a": "2", "new": "x", "a.o": "x"})
    repository = found(root)
    worktrees.add(repository, str(tmp_path / "tree"), "subdeck/x", _base(repository, tmp_path))
    assert {".git", ".gitignore", "a", "new"} == set(os.listdir(tmp_path / "tree"))
    assert "2" == (tmp_path / "tree" / "a").read_text()
    assert "M a" in git(root, "status", "--porcelain")


def test_what_has_gone_is_forgotten(tmp_path: Path) -> None:
    """A worktree whose directory was removed by hand is listed as gone, and can be removed without affecting others."""
    root = make(tmp_path / "r", {"a": "1"})
    repository = found(root)
    for name in ("one", "two"):
        worktrees.add(repository, str(tmp_path / name), name, str(repository.head))
        shutil.rmtree(tmp_path / name)
    assert all(tree.prunable for tree in worktrees.listed(repository)[1:])
    worktrees.remove(repository, str(tmp_path / "one"))
    assert [str(root), str(tmp_path / "two")] == [tree.path for tree in worktrees.listed(repository)]


@pytest.mark.parametrize(
    ("words", "name"),
    [
        ("reviewer", "reviewer"),
        ("my preset", "my-preset"),
        ("-x", "x"),
        ("a..b@{c}~^:?*[\\", "a.b-c"),
        ("x.lock", "x"),
        ("größe", "größe"),
        ("/../", "run"),
        ("\x1b[31m\n", "31m"),
        ("x" * 300, "x" * 60),
        ("", "run"),
    ],
)
def test_any_words_make_a_branch(words: str, name: str) -> None:
    """A preset with any name gives a valid branch name."""
    assert name == worktrees.fit(words)
    worktrees.check_branch(f"subdeck/{name}-4ae0bd")


def test_a_worktree_that_another_git_is_making(tmp_path: Path) -> None:
    """While another git has a worktree half made, git rejects every worktree; subdeck waits for that."""
    root = make(tmp_path / "r", {"a": "1"})
    repository = found(root)
    coming = root / ".git" / "worktrees" / "coming"
    coming.mkdir(parents=True)
    (coming / "gitdir").write_text(f"{tmp_path}/coming/.git\n")
    (coming / "commondir").touch()
    written = threading.Timer(0.2, (coming / "commondir").write_text, ("../..\n",))
    written.start()
    worktrees.add(repository, str(tmp_path / "tree"), "subdeck/x-1", str(repository.head))
    written.join()
    assert "1" == (tmp_path / "tree" / "a").read_text()
