"""Merging, squashing, committing, saving and discarding the work of runs, and undoing that."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest
from subdeck.core import paths
from subdeck.core.cli.changes import edited
from subdeck.core.engine import Engine
from subdeck.core.errors import SubdeckError
from subdeck.core.run.snapshot import RunSnapshot
from subdeck.core.work import acts
from subdeck.core.work.operation import APPLY, COMMIT, DISCARD, MERGE, SAVE, SQUASH
from subdeck.core.work.records import Taken, read_record

from tests.core.command_line import subdeck
from tests.factories import make_meta, open_engine
from tests.repositories import commit, git, make_repository, make_worktree, pinned

pytestmark = [pytest.mark.processes, pytest.mark.usefixtures("forked_commands")]


@pytest.fixture
def engine(project_dir: Path) -> Engine:
    (Path(os.environ["HOME"]) / ".gitconfig").write_text("[user]\nname = Me\nemail = me@example.org\n")
    return open_engine(make_repository(project_dir, b_txt="begin\n"))


@pytest.fixture
def root(engine: Engine) -> Path:
    return Path(engine.project.root)


def in_worktree(engine: Engine, base: str = "HEAD") -> tuple[RunSnapshot, Path]:
    meta, tree = make_worktree(engine.project, make_meta(preset="scout", task="Mend b\n\nIt was broken."), base=base)
    (run,) = engine.snapshots((meta.run_id,))
    return run, tree


def undo(engine: Engine) -> str:
    act = engine.last_act()
    assert act is not None
    return engine.take_back(act).outcome


def parents(root: Path) -> list[str]:
    return git(root, "log", "-1", "--format=%P").split()


def taken(engine: Engine, run: RunSnapshot) -> Taken | None:
    record = read_record(paths.work_dir(engine.project, run.run_id))
    return record.taken if record else None


@pytest.mark.parametrize("squash", [False, True])
def test_merging_and_squashing(engine: Engine, root: Path, squash: bool) -> None:
    """A merge has two parents, a squash one; the user's staged and edited files stay, also after an undo."""
    run, tree = in_worktree(engine)
    tip = commit(tree, "new.txt")
    if squash:
        (tree / "b.txt").write_text("not committed\n")
    (root / "a.txt").write_text("mine\n")
    (root / "staged.txt").write_text("staged\n")
    git(root, "add", "staged.txt")
    before, mine = git(root, "rev-parse", "HEAD"), git(root, "status", "--porcelain")
    plan = engine.work.plan(SQUASH if squash else MERGE, run)
    assert ("Squashes" if squash else "Merges") in plan.words and "into main" in plan.words
    engine.work.act(plan, "Say something else")
    assert [before, *([] if squash else [tip])] == parents(root)
    assert ("Say something else", "Me") == (
        git(root, "log", "-1", "--format=%s"),
        git(root, "log", "-1", "--format=%an"),
    )
    assert (mine, "b\n") == (git(root, "status", "--porcelain"), (root / "new.txt").read_text())
    assert (Taken.PICKED if squash else Taken.MERGED) is taken(engine, run)
    assert "main is at" in undo(engine)
    assert (before, mine) == (git(root, "rev-parse", "HEAD"), git(root, "status", "--porcelain"))
    assert not (root / "new.txt").exists() and taken(engine, run) is None


def test_uncommitted_work_stays_out_of_the_history(engine: Engine, root: Path) -> None:
    """Neither the worktree's first commit nor the user's uncommitted work in it is merged."""
    (root / "a.txt").write_text("mine, not committed\n")
    base = git(root, "stash", "create")
    run, tree = in_worktree(engine, base)
    commit(tree, "new.txt")
    engine.work.act(engine.work.plan(MERGE, run))
    assert " M a.txt" == git(root, "status", "--porcelain")
    assert base not in git(root, "log", "--format=%H").split()
    assert "one\ntwo\nthree" == git(root, "show", "HEAD^2:a.txt")
    second, other = in_worktree(engine, base)
    (other / "a.txt").write_text("mine, not committed\nand theirs\n")
    assert "not committed" in engine.work.plan(MERGE, second).refusal or engine.work.plan(MERGE, second).conflicts


@pytest.mark.parametrize(
    ("prepare", "refusal"),
    [
        (lambda root: git(root, "checkout", "-q", "--detach"), "no branch is checked out"),
        (lambda root: (root / ".git/MERGE_HEAD").write_text(git(root, "rev-parse", "HEAD")), "a merge is in progress"),
        (lambda root: (root / ".git/rebase-merge").mkdir(), "a rebase is in progress"),
        (lambda root: (root / ".git/index.lock").touch(), "its index is locked"),
        (lambda root: (root / "b.txt").write_text("mine\n"), "in the same files: b.txt"),
        (lambda root: (root / "ignored").write_text("mine\n"), "in the way"),
        (lambda root: (Path(os.environ["HOME"]) / ".gitconfig").unlink(), "has no user name and email"),
        (lambda root: commit(root, "b.txt", "other\n"), "conflicts with"),
    ],
    ids=["detached", "merge", "rebase", "locked", "dirty", "ignored", "identity", "conflict"],
)
def test_where_git_would_refuse(engine: Engine, root: Path, prepare: Callable[[Path], object], refusal: str) -> None:
    """An act that git would refuse is refused beforehand with a way out, and changes nothing."""
    run, tree = in_worktree(engine)
    (tree / "b.txt").write_text("theirs\n")
    (tree / "ignored").write_text("theirs\n")
    git(tree, "add", "-f", "ignored")
    git(tree, "commit", "-q", "-am", "ignored")
    prepare(root)
    head, status = git(root, "rev-parse", "HEAD"), git(root, "status", "--porcelain", "--ignored")
    plan = engine.work.plan(MERGE, run)
    assert refusal in plan.refusal and plan.advice[1:] in plan.words
    with pytest.raises(SubdeckError):
        engine.work.act(plan)
    assert (head, status) == (git(root, "rev-parse", "HEAD"), git(root, "status", "--porcelain", "--ignored"))
    assert engine.last_act() is None


def test_hooks_and_signatures_are_told(engine: Engine, root: Path) -> None:
    """The plan warns that hooks are not run and commits are not signed."""
    hook = root / ".git/hooks/pre-commit"
    hook.write_text("#!/bin/sh\nexit 1\n")
    hook.chmod(0o755)
    git(root, "config", "commit.gpgSign", "true")
    run, tree = in_worktree(engine)
    commit_in = tree / "b.txt"
    commit_in.write_text("theirs\n")
    plan = engine.work.plan(MERGE, run)
    assert "hooks are not run (pre-commit)" in plan.words and "not signed" in plan.words
    engine.work.act(plan)
    assert "theirs" == git(root, "show", "HEAD:b.txt")


def test_a_merge_that_was_built_upon(engine: Engine, root: Path) -> None:
    """A merge followed by new commits is not undone, and the error gives the git command."""
    run, tree = in_worktree(engine)
    commit(tree)
    engine.work.act(engine.work.plan(MERGE, run))
    tip = commit(root, "later.txt")
    with pytest.raises(SubdeckError, match="has new commits") as caught:
        undo(engine)
    assert "git revert -m 1" in caught.value.hint and tip == git(root, "rev-parse", "HEAD")


def test_a_merge_into_a_branch_that_was_left(engine: Engine, root: Path) -> None:
    """If another branch is checked out, the undo moves no branch and writes no file; back on the branch it works."""
    before = git(root, "rev-parse", "HEAD")
    run, tree = in_worktree(engine)
    commit(tree, "new.txt")
    engine.work.act(engine.work.plan(MERGE, run))
    git(root, "checkout", "-q", "-b", "other")
    refs, status = git(root, "for-each-ref"), git(root, "status", "--porcelain")
    with pytest.raises(SubdeckError, match="main is not checked out") as caught:
        undo(engine)
    assert "git switch main" in caught.value.hint
    assert (refs, status) == (git(root, "for-each-ref"), git(root, "status", "--porcelain"))
    assert "b\n" == (root / "new.txt").read_text()
    git(root, "checkout", "-q", "main")
    undo(engine)
    assert (before, False) == (git(root, "rev-parse", "main"), (root / "new.txt").exists())


def test_committing_on_the_branch(engine: Engine) -> None:
    """Uncommitted work is committed with the answer's first lines or a given message, and undo uncommits it."""
    run, tree = in_worktree(engine)
    (tree / "b.txt").write_text("theirs\n")
    (tree / "new.txt").write_text("new\n")
    before, dirty = git(tree, "rev-parse", "HEAD"), git(tree, "status", "--porcelain")
    plan = engine.work.plan(COMMIT, run)
    assert "Commits 2 files" in plan.words and plan.message
    engine.work.act(plan)
    assert ([before], "") == (parents(tree), git(tree, "status", "--porcelain"))
    assert plan.message.split("\n")[0] == git(tree, "log", "-1", "--format=%s")
    assert "uncommitted again" in undo(engine)
    assert (before, dirty) == (git(tree, "rev-parse", "HEAD"), git(tree, "status", "--porcelain"))


def test_keeping_the_branch(engine: Engine, root: Path) -> None:
    """A branch saved under the user's name outlives its run; undo removes the name."""
    run, tree = in_worktree(engine)
    (tree / "new.txt").write_text("new\n")
    with pytest.raises(SubdeckError, match="has uncommitted changes"):
        engine.work.act(engine.work.plan(SAVE, run, name="mine"))
    tip = commit(tree)
    engine.work.act(engine.work.plan(SAVE, run, name="mine"))
    assert Taken.KEPT is taken(engine, run)
    undo(engine)
    assert "" == git(root, "branch", "--list", "mine") and taken(engine, run) is None
    engine.work.act(engine.work.plan(SAVE, run))
    engine.delete([run.run_id])
    engine.purge([run.run_id])
    assert tip == git(root, "rev-parse", f"scout-{run.meta.short_id}")


def test_a_kept_branch_that_somebody_uses(engine: Engine, root: Path) -> None:
    """A saved branch with new commits or checked out is not removed by undo."""
    run, tree = in_worktree(engine)
    commit(tree)
    engine.work.act(engine.work.plan(SAVE, run, name="mine"))
    git(root, "checkout", "-q", "mine")
    with pytest.raises(SubdeckError, match="the branch is checked out in"):
        undo(engine)
    tip = commit(root, "later.txt")
    git(root, "checkout", "-q", "main")
    with pytest.raises(SubdeckError, match="the branch mine has new commits"):
        undo(engine)
    assert tip == git(root, "rev-parse", "mine") and Taken.KEPT is taken(engine, run)
    git(root, "branch", "-q", "-f", "mine", "mine~")
    undo(engine)
    assert "" == git(root, "branch", "--list", "mine") and taken(engine, run) is None


def test_a_commit_that_was_built_upon(engine: Engine) -> None:
    """A commit is not undone if its branch has new commits or another branch is checked out there."""
    run, tree = in_worktree(engine)
    (tree / "b.txt").write_text("theirs\n")
    engine.work.act(engine.work.plan(COMMIT, run))
    own, branch = git(tree, "rev-parse", "HEAD"), git(tree, "branch", "--show-current")
    tip = commit(tree, "later.txt")
    with pytest.raises(SubdeckError, match="has new commits") as caught:
        undo(engine)
    assert f"git revert {own[:12]}" in caught.value.hint and tip == git(tree, "rev-parse", "HEAD")
    git(tree, "reset", "-q", "--hard", own)
    git(tree, "checkout", "-q", "-b", "another")
    with pytest.raises(SubdeckError, match=f"its worktree has another checked out, not {branch}") as caught:
        undo(engine)
    assert f"switch {branch}" in caught.value.hint
    assert (own, own) == (git(tree, "rev-parse", branch), git(tree, "rev-parse", "another"))
    git(tree, "checkout", "-q", branch)
    undo(engine)
    assert " M b.txt" == git(tree, "status", "--porcelain")


def test_discarding(engine: Engine, root: Path) -> None:
    """Discarding removes worktree and branch, and undo restores them with all their files."""
    before = pinned(root)
    run, tree = in_worktree(engine)
    tip = commit(tree)
    (tree / "b.txt").write_text("not committed\n")
    (tree / "ignored").write_text("ignored\n")
    status, whole = git(tree, "status", "--porcelain", "--ignored"), pinned(root)
    plan = engine.work.plan(DISCARD, run)
    assert "nowhere else" in plan.words
    engine.work.act(plan)
    assert before == pinned(root) and not tree.exists() and Taken.DISCARDED is taken(engine, run)
    git(root, "gc", "-q", "--prune=now")
    assert "restored" in undo(engine)
    assert (tip, status) == (git(tree, "rev-parse", "HEAD"), git(tree, "status", "--porcelain", "--ignored"))
    assert whole[-2] == pinned(root)[-2] and taken(engine, run) is None


def test_a_discard_that_git_refuses(engine: Engine, root: Path) -> None:
    """If the branch cannot be deleted, the worktree is restored completely and there is nothing to undo."""
    run, tree = in_worktree(engine)
    commit(tree)
    (tree / "b.txt").write_text("not committed\n")
    before, status = pinned(root)[-2:], git(tree, "status", "--porcelain")
    lock = root / ".git/refs/heads/subdeck" / f"scout-{run.meta.short_id}.lock"
    lock.touch()
    with pytest.raises(SubdeckError):
        engine.work.act(engine.work.plan(DISCARD, run))
    lock.unlink()
    assert (before, status) == (pinned(root)[-2:], git(tree, "status", "--porcelain"))
    assert "not committed\n" == (tree / "b.txt").read_text()
    assert engine.last_act() is None and taken(engine, run) is None
    engine.work.act(engine.work.plan(DISCARD, run))
    assert not tree.exists()


@pytest.mark.parametrize("why", ["something else is already in its place", "its repository is no longer at"])
def test_what_was_discarded_waits_for_its_place(engine: Engine, root: Path, why: str) -> None:
    """A discarded worktree is restored later if its path is taken or its repository missing; nothing is lost."""
    run, tree = in_worktree(engine)
    tip = commit(tree)
    (tree / "b.txt").write_text("not committed\n")
    engine.work.act(engine.work.plan(DISCARD, run))
    if "place" in why:
        tree.mkdir()
        (tree / "mine").write_text("mine\n")
    else:
        (root / ".git").rename(root.parent / "git-of-old")
    with pytest.raises(SubdeckError, match=why):
        undo(engine)
    if "place" in why:
        assert ["mine"] == os.listdir(tree)
        tree.rename(root.parent / "moved-away")
    else:
        (root.parent / "git-of-old").rename(root / ".git")
    undo(engine)
    assert (tip, "not committed\n") == (git(tree, "rev-parse", "HEAD"), (tree / "b.txt").read_text())
    assert engine.last_act() is None


def test_the_command_line(engine: Engine, root: Path) -> None:
    """Each command prints its plan first, and opens the message in an editor unless it is given."""
    run, tree = in_worktree(engine)
    short = run.meta.short_id
    (tree / "b.txt").write_text("theirs\n")
    assert 2 == subdeck("merge", short, cwd=root).code
    assert "Merges scout" in subdeck("merge", short, "--dry-run", cwd=root).out
    assert 0 == subdeck("merge", short, "--commit", "--yes", "-m", "On the branch", cwd=root).code
    assert "On the branch" == git(tree, "log", "-1", "--format=%s")
    document = subdeck("merge", short, "--squash", "--yes", "--json", cwd=root).document
    assert (True, "", "main", ["b.txt"]) == (
        *(document["done"], document["refusal"], document["branch"]),
        [file["path"] for file in document["files"]],
    )
    assert 1 == subdeck("merge", short, "--yes", cwd=root).code
    assert "as branch mine." in subdeck("apply", short, "--to-branch", "mine", "--dry-run", cwd=root).out
    before = git(root, "status", "--porcelain"), git(root, "rev-parse", "HEAD")
    saved = {"runId": run.run_id, "branch": "mine", "saved": True}
    assert saved == subdeck("apply", short, "--to-branch", "mine", "--json", cwd=root).document
    assert "saved as branch" in subdeck("keep", short, cwd=root).out
    assert before == (git(root, "status", "--porcelain"), git(root, "rev-parse", "HEAD"))
    refused = subdeck("apply", short, "b.txt", "--to-branch", "new", cwd=root)
    assert (2, "") == (refused.code, refused.out) and "takes no choice of changes" in refused.err
    assert subdeck("discard", short, "--yes", "--json", cwd=root).document["discarded"]
    for said in ("discarding", "saving", "saving", "squashing", "committing"):
        assert f"{said} scout {short}" in subdeck("undo", "--yes", cwd=root).out
    assert (" M b.txt", "begin") == (git(tree, "status", "--porcelain"), git(root, "log", "-1", "--format=%s"))


def test_a_message_is_edited(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The text saved by $EDITOR is the message; without text nothing is done."""
    editor = tmp_path / "editor"
    editor.write_text('#!/bin/sh\nprintf \'Edited: \' | cat - "$1" > "$1.new" && mv "$1.new" "$1"\n')
    editor.chmod(0o755)
    monkeypatch.setenv("VISUAL", str(editor))
    assert "Edited: proposed" == edited("proposed")
    editor.write_text('#!/bin/sh\n: > "$1"\n')
    with pytest.raises(SubdeckError, match="message is empty"):
        edited("proposed")


def test_what_was_discarded_is_kept_for_a_day(engine: Engine) -> None:
    """After a day a discarded worktree leaves the stack with its data; until then it can be undone or forgotten."""
    run, tree = in_worktree(engine)
    commit(tree)
    act = engine.work.act(engine.work.plan(DISCARD, run))
    engine.purge()
    assert act == engine.last_act() and os.path.isdir(acts.undo_directory(engine.project, act.id))
    acts.expire(engine.project, paths.now_iso())
    assert engine.last_act() is None and not os.path.exists(acts.undo_directory(engine.project, act.id))


def test_what_cannot_be_taken_back_is_forgotten(engine: Engine, root: Path) -> None:
    """Forgetting an act that cannot be undone keeps its files and makes earlier acts available."""
    run, tree = in_worktree(engine)
    (tree / "a.txt").write_text("theirs\n")
    first = engine.work.act(engine.work.plan(APPLY, run))
    (tree / "a.txt").write_text("theirs again\n")
    (root / "a.txt").write_text("one\ntwo\nthree\n")
    engine.work.act(engine.work.plan(APPLY, run))
    (root / "a.txt").write_text("mine\n")
    done = subdeck("undo", "--yes", cwd=root)
    assert 2 == done.code and "you changed the same lines since: a.txt" in done.err
    assert "forgot applying" in subdeck("undo", "--forget", "--yes", cwd=root).out
    assert first == engine.last_act() and "mine\n" == (root / "a.txt").read_text()
