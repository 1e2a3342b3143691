"""Troubled worktrees: each problem is reported in a sentence with a way out."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from subdeck.core import paths
from subdeck.core.doctor import State, examine
from subdeck.core.engine import Engine
from subdeck.core.project import trash
from subdeck.core.work import acts, deletion, worktrees
from subdeck.core.work._worktree_state import WorkState
from subdeck.core.work.operation import ActKind
from subdeck.core.work.records import read_record, work_dirs
from subdeck.core.work.worktree import make, take_back
from subdeck.core.work.worktrees import RunState, Worktree

from tests.core.command_line import subdeck
from tests.factories import make_finished, open_engine
from tests.repositories import commit, git, make_repository, make_worktree, pinned

pytestmark = [pytest.mark.processes, pytest.mark.usefixtures("forked_commands")]


@pytest.fixture
def engine(project_dir: Path) -> Engine:
    return open_engine(make_repository(project_dir / "shop"))


def seen(engine: Engine, run_id: str) -> Worktree:
    (found,) = (one for one in worktrees.listed(engine.project) if one.run_id == run_id)
    return found


def admin(root: Path) -> Path:
    (directory,) = (root / ".git" / "worktrees").iterdir()
    return directory


Made = tuple[Path, Path, str]
"""Repository, worktree and branch."""


def lock_index(made: Made) -> None:
    (admin(made[0]) / "index.lock").touch()


def check_out_elsewhere(made: Made) -> None:
    root, tree, branch = made
    git(root, "worktree", "remove", "--force", str(tree))
    git(root, "worktree", "add", "-q", str(root.parent / "another"), branch)


def delete_branch(made: Made) -> None:
    git(made[1], "checkout", "-q", "--detach")
    git(made[0], "branch", "-q", "-D", made[2])


ODDITIES: dict[str, tuple[Callable[[Made], object], WorkState, str, str]] = {
    "forgotten": (
        lambda made: shutil.rmtree(admin(made[0])),
        *(WorkState.UNKNOWN, "git has forgotten it (git worktree prune)", "--repair"),
    ),
    "moved": (
        lambda made: (made[0] / ".git").rename(made[0] / "git-of-old"),
        *(WorkState.UNKNOWN, "is no longer at", "git worktree repair"),
    ),
    "led elsewhere": (
        lambda made: (made[1] / ".git").write_text(f"gitdir: {made[0]}/.git\n"),
        *(WorkState.UNKNOWN, "its .git was changed and points to another place", "it should contain"),
    ),
    "no .git": (
        lambda made: (made[1] / ".git").unlink(),
        *(WorkState.UNKNOWN, "its .git was changed and points to another place", "it should contain"),
    ),
    "index locked": (lock_index, WorkState.UNMERGED, "its index is locked", "if no git command is running, remove"),
    "locked": (
        lambda made: git(made[0], "worktree", "lock", str(made[1])),
        *(WorkState.UNMERGED, "it is locked", "git worktree unlock"),
    ),
    "renamed": (
        lambda made: git(made[0], "branch", "-m", made[2], "mine"),
        *(WorkState.TAKEN, "was renamed, or deleted; mine is checked out there", ""),
    ),
    "detached": (
        lambda made: git(made[1], "checkout", "-q", "--detach"),
        *(WorkState.UNMERGED, "no branch is checked out there", ""),
    ),
    "another branch": (
        lambda made: git(made[1], "checkout", "-q", "-b", "other", "main"),
        *(WorkState.UNMERGED, "other is checked out there", ""),
    ),
    "elsewhere": (check_out_elsewhere, WorkState.UNMERGED, "is checked out in", "it stays"),
    "deleted": (delete_branch, WorkState.UNMERGED, "was deleted", "create a new one"),
    "removed by hand": (lambda made: shutil.rmtree(made[1]), WorkState.UNMERGED, "", ""),
    "corrupt": (
        lambda made: (admin(made[0]) / "HEAD").write_text("nothing\n"),
        *(WorkState.UNKNOWN, "git cannot read it", "check "),
    ),
}


@pytest.mark.parametrize("what", ODDITIES)
def test_what_is_odd_is_told_and_loses_nothing(engine: Engine, what: str) -> None:
    """Each problem is a sentence with a way out; unmerged work stays, with its worktree."""
    make_odd, stand, trouble, advice = ODDITIES[what]
    root = Path(engine.project.root)
    meta, tree = make_worktree(engine.project)
    tip = commit(tree)
    make_odd((root, tree, f"subdeck/scout-{meta.short_id}"))
    had = (tree / "b.txt").exists()
    state = seen(engine, meta.run_id).state
    assert (stand, True, True) == (state.work, trouble in state.trouble, advice in state.advice), state
    assert bool(state.trouble) == bool(trouble)
    engine.delete([meta.run_id])
    assert (meta.run_id,) == engine.restore([meta.run_id])
    assert "commit" == git(root / "git-of-old" if what == "moved" else root, "cat-file", "-t", tip)
    assert (had and stand is not WorkState.TAKEN) == (tree / "b.txt").exists()


def test_what_was_never_made_to_its_end_is_no_work(engine: Engine) -> None:
    """A worktree incomplete because git was killed holds no work, and goes with its run."""
    root = Path(engine.project.root)
    before = pinned(root)
    meta, tree = make_worktree(engine.project)
    (tree / "a.txt").unlink()
    (admin(root) / "locked").write_text("initializing")
    other, empty = make_worktree(engine.project)
    git(root, "worktree", "remove", str(empty))
    empty.mkdir()
    third, bare = make_worktree(engine.project)
    (bare / "a.txt").unlink()
    (Path(git(bare, "rev-parse", "--git-dir")) / "index").unlink()
    worked, there = make_worktree(engine.project)
    (there / "a.txt").write_text("changed\n")
    (Path(git(there, "rev-parse", "--git-dir")) / "index").unlink()
    assert WorkState.UNMERGED is seen(engine, worked.run_id).state.work
    worktrees.remove(seen(engine, worked.run_id))
    for run_id in (meta.run_id, other.run_id, third.run_id):
        assert (WorkState.UNCHANGED, "") == ((now := seen(engine, run_id).state).work, now.trouble)
        engine.delete([run_id])
    assert (before, False, False) == (pinned(root), tree.exists(), empty.exists())


def test_a_forgotten_worktree_is_mended(engine: Engine) -> None:
    """After git worktree prune a repair recreates the worktree's data around its unchanged files."""
    meta, tree = make_worktree(engine.project)
    commit(tree)
    (tree / "a.txt").write_text("uncommitted\n")
    before = git(tree, "status", "--porcelain"), git(tree, "rev-parse", "HEAD")
    shutil.rmtree(admin(Path(engine.project.root)))
    done = subdeck("worktrees", "--repair", meta.short_id, cwd=Path(engine.project.root))
    assert (0, "") == (done.code, done.err)
    assert before == (git(tree, "status", "--porcelain"), git(tree, "rev-parse", "HEAD"))
    state = seen(engine, meta.run_id).state
    assert (WorkState.UNMERGED, "") == (state.work, state.trouble)


def test_a_changed_link_is_mended(engine: Engine) -> None:
    """A worktree whose .git leads elsewhere is repaired, and the other place is not touched."""
    root = Path(engine.project.root)
    meta, tree = make_worktree(engine.project)
    commit(tree)
    before = pinned(root)
    (tree / ".git").write_text(f"gitdir: {root}/.git\n")
    assert 0 == subdeck("worktrees", "--repair", meta.run_id, cwd=root).code
    assert WorkState.UNMERGED is seen(engine, meta.run_id).state.work
    assert before == pinned(root)


def test_a_moved_project_takes_its_worktrees_along(engine: Engine) -> None:
    """After a move of the whole project, a repair finds the worktree by its record and reattaches it."""
    root = Path(engine.project.root)
    meta, tree = make_worktree(engine.project)
    tip = commit(tree)
    new = root.rename(root.parent / "new-shop")
    other = open_engine(new)
    assert [] == list(worktrees.listed(other.project))
    assert meta.run_id in subdeck("worktrees", "--all", "--json", cwd=new).out
    done = subdeck("worktrees", "--repair", meta.short_id, cwd=new)
    assert (0, "") == (done.code, done.err)
    found = seen(other, meta.run_id)
    assert (RunState.THERE, WorkState.UNMERGED, "") == (found.run, found.state.work, found.state.trouble)
    assert tip == git(found.path, "rev-parse", "HEAD") and not tree.exists()
    other.delete([meta.run_id])
    other.purge([meta.run_id])
    assert f"scout-{meta.short_id}" not in git(new, "for-each-ref")


def test_another_repository_is_not_taken_for_the_moved_one(engine: Engine) -> None:
    """A worktree is not attached to a repository without its first commit."""
    root = Path(engine.project.root)
    meta, tree = make_worktree(engine.project)
    commit(tree)
    run_dir = Path(engine.project.run_dir(meta.run_id))
    other = make_repository(root.parent / "other", a_txt="different\n")
    (other / ".pi/subagents/runs").mkdir(parents=True)
    run_dir.rename(other / ".pi/subagents/runs" / meta.run_id)
    shutil.rmtree(root)
    done = subdeck("worktrees", "--repair", meta.short_id, cwd=other)
    assert 2 >= done.code > 0 and "a different repository" in done.err
    assert (tree / "b.txt").exists()


@pytest.mark.parametrize("is_another", [True, False])
def test_a_repository_that_went_before_the_worktree_was_made(engine: Engine, is_another: bool) -> None:
    """A run without a worktree gives the reason. Another branch of its name is not touched; leftovers of a missing
    repository keep their record and go once it is back.
    """
    root = Path(engine.project.root)
    before = pinned(root)
    meta, tree = make_worktree(engine.project)
    git(root, "worktree", "remove", str(tree))
    (root / ".git").rename(root / "git-of-old")
    if is_another:
        make_repository(root, a_txt="different\n")
        git(root, "branch", f"subdeck/scout-{meta.short_id}")
    there = pinned(root) if is_another else []
    made = make(str(tree.parent), str(root.parent / "setup.log"))
    assert ("created for it, was moved" if is_another else "a git repository") in made.fault
    take_back(engine.project, [meta.run_id])
    assert not tree.exists()
    if is_another:
        assert there == pinned(root)
        return
    assert read_record(str(tree.parent)) is not None
    (root / "git-of-old").rename(root / ".git")
    take_back(engine.project, [meta.run_id])
    assert (before, False) == (pinned(root), tree.parent.exists())


def test_the_list(engine: Engine) -> None:
    """Each worktree is listed with branch, state, size, its run's status and path."""
    root = Path(engine.project.root)
    assert "No worktrees.\n" == subdeck("worktrees", cwd=root).out
    safe, _ = make_worktree(engine.project)
    deleted, tree = make_worktree(engine.project)
    lost, lost_tree = make_worktree(engine.project)
    commit(tree)
    (lost_tree / "a.txt").write_text("changed\n")
    engine.delete([deleted.run_id])
    shutil.rmtree(engine.project.run_dir(lost.run_id))
    listed = subdeck("worktrees", cwd=root).out
    assert f"{safe.short_id}  subdeck/scout-{safe.short_id}  unchanged: nothing was changed" in listed
    assert "run deleted" in listed and "run lost" in listed and str(tree) in listed and "3 worktrees, " in listed
    rows = {row["runId"]: row for row in subdeck("worktrees", "--json", cwd=root).document["worktrees"]}
    assert ["there", "deleted", "lost"] == [rows[meta.run_id]["run"] for meta in (safe, deleted, lost)]
    assert ("unmerged", "1 file changed, 1 insertion(+)") == (
        rows[deleted.run_id]["state"],
        rows[deleted.run_id]["words"],
    )
    (only,) = subdeck("worktrees", lost.short_id, "--json", cwd=root).document["worktrees"]
    assert (str(lost_tree), True) == (only["path"], only["bytes"] > 0)


def test_removing_what_nobody_has(engine: Engine) -> None:
    """Removing orphaned worktrees needs a confirmation, and leaves nothing in repository and state."""
    root = Path(engine.project.root)
    before = pinned(root)
    meta, tree = make_worktree(engine.project)
    commit(tree)
    os.chmod(tree, 0o500)
    trash.delete(engine.project, [meta.run_id])
    trash.purge(engine.project, [meta.run_id])
    asked = subdeck("worktrees", "--remove", meta.short_id, cwd=root)
    assert (2, True, True) == (asked.code, "add --yes" in asked.err, tree.exists())
    done = subdeck("worktrees", "--remove", meta.short_id, "--yes", cwd=root)
    assert (0, f"{meta.short_id} removed, with the branch subdeck/scout-{meta.short_id}\n") == (done.code, done.out)
    assert before == pinned(root)
    assert [] == [name for directory in work_dirs(engine.project) for name in os.listdir(directory) if name == "tree"]


def test_what_the_command_line_says(engine: Engine) -> None:
    """rm lists kept work and purges nothing unasked; clean keeps unmerged work and says how to include it."""
    root = Path(engine.project.root)
    meta, tree = make_worktree(engine.project)
    commit(tree)
    branch = f"subdeck/scout-{meta.short_id}: 1 file changed, 1 insertion(+)"
    cleaned = subdeck("rm", "--keep", "0", "--yes", cwd=root)
    assert "including 1 worktree, " in cleaned.out
    assert "kept: 1 run with unmerged changes; add --unmerged to delete them" in cleaned.out
    assert "nothing to delete" in cleaned.out
    dry = subdeck("rm", "--keep", "0", "--unmerged", "--dry-run", cwd=root)
    assert "! the unmerged changes of 1 of them are kept until the runs leave the trash" in dry.out
    deleted = subdeck("rm", meta.short_id, cwd=root)
    assert f"! {meta.short_id} has unmerged changes, kept until the run is purged: {branch}" in deleted.err
    purged = subdeck("rm", "--purge", meta.short_id, cwd=root)
    assert (2, True, True) == (purged.code, branch in purged.err, "add --yes" in purged.err)
    assert tree.exists()
    assert 0 == subdeck("rm", "--purge", meta.short_id, "--yes", cwd=root).code
    assert not tree.exists()


def test_work_outside_git_is_not_looked_for(project_dir: Path) -> None:
    """Without worktrees git is never called, whether or not it is installed."""
    engine = open_engine(project_dir)
    meta = make_finished(engine.project)
    os.environ["PATH"] = "/nowhere"
    assert () == deletion.unmerged(engine.project, [meta.run_id])
    engine.delete([meta.run_id])
    engine.purge([meta.run_id])
    assert not os.path.exists(paths.work_dir(engine.project, meta.run_id))


def test_doctor_names_what_is_left(engine: Engine) -> None:
    """doctor omits worktrees if there are none, counts them, and warns of orphaned ones and interrupted acts."""
    root = Path(engine.project.root)

    def checks(name: str) -> list[tuple[State, str, str]]:
        return [(check.state, check.detail, check.fix) for check in examine(str(root)) if check.name == name]

    assert [] == checks("worktrees")
    meta, tree = make_worktree(engine.project)
    ((state, detail, fix),) = checks("worktrees")
    assert (State.OK, True, "") == (state, detail.startswith("1 ("), fix)
    shutil.rmtree(engine.project.run_dir(meta.run_id))
    ((state, detail, fix),) = checks("worktrees")
    assert (State.WARN, True, "subdeck worktrees") == (state, detail.endswith("1 of lost runs"), fix)
    shutil.rmtree(tree.parent)
    ((state, detail, fix),) = checks("worktrees")
    assert (State.WARN, "0 (0 B), 1 known to git only", "git worktree prune") == (state, detail, fix)
    acts.record(engine.project, ActKind.APPLY, "scout 4ae0bd", {}, begun=True)
    assert ["applying scout 4ae0bd was interrupted"] == [detail for _, detail, _ in checks("undo")]
