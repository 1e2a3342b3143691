"""Locks of a killed git: the error names the lock and the way out."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest
from subdeck.core.errors import SubdeckError
from subdeck.core.git.program import Git, GitError
from subdeck.core.work.operation import COMMIT, MERGE, SAVE

from tests.factories import open_engine
from tests.repositories import commit, git, make_repository, make_worktree

pytestmark = pytest.mark.processes

COMMANDS = {
    "index.lock": ("reset", "--quiet"),
    "HEAD.lock": ("symbolic-ref", "HEAD", "refs/heads/other"),
    "refs/heads/other.lock": ("update-ref", "refs/heads/other", "HEAD"),
    "packed-refs.lock": ("update-ref", "-d", "refs/heads/packed"),
    "config.lock": ("config", "a.b", "c"),
}


@pytest.mark.parametrize("name", COMMANDS)
@pytest.mark.parametrize("is_linked", [False, True])
def test_every_lock_has_its_hint(project_dir: Path, tmp_path: Path, name: str, is_linked: bool) -> None:
    """Every command's error names the lock file, in repository and worktree; without the lock the command works."""
    root = make_repository(project_dir)
    git(root, "branch", "packed")
    git(root, "pack-refs", "--all")
    place, git_dir = root, root / ".git"
    if is_linked:
        place = tmp_path / "linked"
        git(root, "worktree", "add", "-q", "--detach", str(place))
        git_dir = git_dir / "worktrees" / "linked"
    lock = (git_dir if name in ("index.lock", "HEAD.lock") else root / ".git") / name
    lock.touch()
    with pytest.raises(GitError) as refusal:
        Git(str(place)).run(*COMMANDS[name])
    hint = refusal.value.hint
    assert "is locked: another git command is running, or was killed" in refusal.value.what
    assert hint.startswith("if no git command is running, remove ")
    assert os.path.realpath(lock) == os.path.realpath(hint.removeprefix("if no git command is running, remove "))
    Path(hint.removeprefix("if no git command is running, remove ")).unlink()
    Git(str(place)).run(*COMMANDS[name])


@pytest.mark.parametrize("name", ["index.lock", "HEAD.lock", "refs/heads/main.lock"])
def test_a_merge_is_refused_before(project_dir: Path, name: str) -> None:
    """A merge that a lock would stop midway is refused: nothing is merged, and no action is recorded."""
    (Path(os.environ["HOME"]) / ".gitconfig").write_text("[user]\nname = Me\nemail = me@example.org\n")
    engine = open_engine(make_repository(project_dir))
    meta, tree = make_worktree(engine.project)
    commit(tree, "new.txt")
    (run,) = engine.snapshots((meta.run_id,))
    root = Path(engine.project.root)
    plan = engine.work.plan(MERGE, run)
    lock = root / ".git" / name
    lock.touch()
    refused = engine.work.plan(MERGE, run)
    assert "is locked" in refused.refusal and f"remove {lock}" in refused.advice
    with pytest.raises(SubdeckError) as refusal:
        engine.work.act(plan)
    assert f"remove {lock}" in refusal.value.hint
    assert (False, None) == ((root / "new.txt").exists(), engine.last_act())
    lock.unlink()
    engine.work.act(engine.work.plan(MERGE, run))
    assert (root / "new.txt").exists()


@pytest.mark.parametrize("act", ["keep", "commit"])
def test_other_acts_pass_it_on(project_dir: Path, act: str) -> None:
    """Saving as a branch and committing in a worktree fail with the same hint."""
    (Path(os.environ["HOME"]) / ".gitconfig").write_text("[user]\nname = Me\nemail = me@example.org\n")
    engine = open_engine(make_repository(project_dir))
    meta, tree = make_worktree(engine.project)
    commit(tree, "new.txt")
    if act == "commit":
        (tree / "more.txt").write_text("more\n")
    (run,) = engine.snapshots((meta.run_id,))
    branch = git(tree, "symbolic-ref", "HEAD")
    names = {"keep": "refs/heads/kept.lock", "commit": f"{branch}.lock"}
    does: dict[str, Callable[[], object]] = {
        "keep": lambda: engine.work.act(engine.work.plan(SAVE, run, name="kept")),
        "commit": lambda: engine.work.act(engine.work.plan(COMMIT, run)),
    }
    lock = Path(engine.project.root, ".git", names[act])
    lock.touch()
    with pytest.raises(SubdeckError) as refusal:
        does[act]()
    assert "is locked" in refusal.value.what and f"remove {lock}" in refusal.value.hint
    lock.unlink()
    does[act]()
