"""The branch of a run's worktree: what is not committed there becomes a commit on it, and it can be kept by a name."""

from __future__ import annotations

import os

import msgspec
from msgspec import Struct

from .. import paths
from ..errors import SubdeckError
from ..git.merges import commit
from ..git.names import worded
from ..git.program import GitError
from ..git.repository import Repository
from ..git.worktrees import branches, check_branch, listed
from ..run.snapshot import RunSnapshot
from ..text.decoding import fit
from ..text.plain import one_line
from ..text.shell import shell_words
from . import acts
from ._readiness import check_identity, remarks
from .acts import Act, ActKind
from .merging import message_of
from .records import Taken, TakenBefore, WorkRecord, mark_taken, read_record, tree_of
from .source import SEEN, branch_tip, check_operator, host_of, store_beside, tidy, usable, words_of

OURS = "subdeck/"
"""Begins the names of the branches that go with their worktrees."""


class CommitPlan(Struct, frozen=True, kw_only=True):
    """What committing on the branch of a run would do."""

    run_id: str
    run: str
    branch: str
    tip: str
    files: int
    message: str
    notes: tuple[str, ...] = ()
    directory: str = ""

    @property
    def words(self) -> str:
        """Say what it will do; some lines."""
        count = "1 file" if self.files == 1 else f"{self.files} files"
        lines = [f"Commits {count} of {self.run} on its branch {one_line(self.branch, 80)}.", *self.notes]
        return "\n".join(lines)


class Committed(Struct, frozen=True, rename="camel"):
    """What taking it back needs."""

    directory: str
    branch: str
    tip: str
    """The commit before."""
    commit: str


class Kept(Struct, frozen=True, rename="camel"):
    """What taking it back needs."""

    root: str
    name: str
    commit: str
    before: TakenBefore


def plan_commit(project: paths.Project, run: RunSnapshot) -> CommitPlan:
    """Say what committing on the branch of a run would do. Raises SubdeckError where it cannot be done, and OSError."""
    directory, record, made = _worktree(project, run)
    if record.away:
        what = f"all changes of {words_of(run)} are committed on its branch {one_line(record.branch, 80)}"
        raise SubdeckError(what, where=record.root)
    check_identity(made)
    tip = branch_tip(made, record.branch)
    changed = made.git.lines("status", "--porcelain", "-z", "--no-renames", "--untracked-files=all")
    if not changed:
        raise SubdeckError(f"the worktree of {words_of(run)} has no uncommitted changes", where=made.root)
    return CommitPlan(
        run_id=run.run_id,
        run=words_of(run),
        branch=record.branch,
        tip=tip,
        files=len(changed),
        message=message_of(project, run),
        notes=tuple(f"{note[:1].upper()}{note[1:]}." for note in remarks(made)),
        directory=directory,
    )


def _worktree(project: paths.Project, run: RunSnapshot) -> tuple[str, WorkRecord, Repository]:
    check_operator(project, run.run_id)
    directory, record = host_of(project, run.run_id)
    if record is None:
        raise SubdeckError(f"{words_of(run)} has no worktree", where=run.run_id, hint="commit with git")
    if not run.has_ended:
        raise SubdeckError(
            f"{words_of(run)} is still running", where=run.run_id, hint="wait until it finishes, or stop it"
        )
    if record.away:
        if not record.branch:
            raise SubdeckError(f"{words_of(run)} changed nothing", where=run.run_id)
        return directory, record, usable(record.root)
    tree = tree_of(directory)
    if not os.path.isdir(tree):
        raise SubdeckError("its worktree no longer exists", where=tree, hint="subdeck worktrees shows its state")
    made = usable(tree)
    if made.common_dir != record.common_dir:
        raise SubdeckError("its worktree belongs to another repository", where=tree)
    _check_checked_out(made, record.branch)
    return directory, record, made


def _check_checked_out(made: Repository, branch: str) -> None:
    """Raise SubdeckError where another branch is checked out in a worktree."""
    if made.branch != branch:
        now = one_line(made.branch, 80) if made.branch else "no branch"
        what = f"its worktree has {now} checked out, not {one_line(branch, 80)}"
        raise SubdeckError(
            what, where=made.root, hint=one_line(shell_words(["git", "-C", made.root, "switch", branch]))
        )


def commit_work(project: paths.Project, plan: CommitPlan, message: str = "") -> Act:
    """Do what a plan says; return the act, which can be taken back. Raises SubdeckError and OSError."""
    tree = tree_of(plan.directory)
    made = usable(tree)
    if branch_tip(made, plan.branch) != plan.tip or made.branch != plan.branch:
        raise SubdeckError("its branch has moved", where=tree, hint="check again what would be done")
    seen = store_beside(plan.directory, SEEN)
    snapshot = seen.take(made, into_repository=True)
    new = commit(made.git, snapshot.tree, [plan.tip], message.strip() or plan.message)
    data = Committed(plan.directory, plan.branch, plan.tip, new)
    act = acts.record(project, ActKind.COMMIT, plan.run, msgspec.to_builtins(data), begun=True)
    try:
        move(made, plan.branch, plan.tip, new)
    except GitError as error:
        if branch_tip(made, plan.branch) == plan.tip:
            acts.drop(project, act.id)
        raise SubdeckError(f"git refused: {one_line(error.what, 400)}", where=tree, hint=error.hint) from error
    tidy(plan.directory)
    return acts.finish(project, act)


def move(made: Repository, branch: str, old: str, new: str) -> None:
    """Bring the branch that is checked out from one commit to another, and the index with it; no file is touched.

    Raises GitError.
    """
    made.git.run("update-ref", "-m", "subdeck", f"refs/heads/{branch}", new, old)
    made.git.run("reset", "--quiet")


def take_back_commit(act: Act) -> str:
    """Make a commit uncommitted work again. Raises SubdeckError."""
    done = fit(act.data, Committed)
    made = usable(tree_of(done.directory))
    tip = branch_tip(made, done.branch)
    if tip == done.tip:
        made.git.run("reset", "--quiet")
        return f"{act.title} left no changes"
    if tip != done.commit:
        raise SubdeckError(
            f"cannot undo {act.title}: its branch {one_line(done.branch, 80)} has new commits",
            where=made.root,
            hint=f"run git revert {done.commit[:12]} in a shell to undo it with a new commit",
        )
    _check_checked_out(made, done.branch)
    move(made, done.branch, done.commit, done.tip)
    return f"undid {act.title}: its changes are uncommitted again"


def keep(project: paths.Project, run: RunSnapshot, name: str = "") -> Act:
    """Keep what a run has committed by a branch of the operator's, which stays when the run is deleted.

    Raises SubdeckError, also where something is not committed yet.
    """
    directory, record, made = _worktree(project, run)
    name = name or record.branch.removeprefix(OURS)
    if name.startswith(OURS):
        what = f"branches that begin with {OURS} are deleted with their worktrees"
        raise SubdeckError(what, where=one_line(name, 80), hint="choose another name")
    check_branch(name)
    if not record.away and made.git.lines("status", "--porcelain", "-z"):
        raise SubdeckError(
            f"the worktree of {words_of(run)} has uncommitted changes",
            where=made.root,
            hint=f"subdeck diff {run.meta.short_id} shows them; commit them there with git, or press C in the app",
        )
    tip = branch_tip(made, record.branch)
    if not tip:
        raise SubdeckError(f"its branch {one_line(record.branch, 80)} no longer exists", where=record.root)
    if branch_tip(made, name):
        raise SubdeckError(f"the branch {one_line(name, 80)} already exists", where=record.root)
    data = Kept(record.root, name, tip, TakenBefore.of(directory, record))
    act = acts.record(project, ActKind.KEEP, words_of(run), msgspec.to_builtins(data), begun=True)
    try:
        made.git.run("update-ref", "-m", "subdeck", f"refs/heads/{name}", tip, "")
    except GitError as error:
        acts.drop(project, act.id)
        raise SubdeckError(f"git refused: {one_line(error.what, 400)}", where=record.root, hint=error.hint) from error
    tree = os.fsdecode(made.git.run("rev-parse", f"{tip}^{{tree}}")).strip()
    mark_taken(directory, record, Taken.KEPT, tree)
    return acts.finish(project, act)


def take_back_kept(act: Act) -> str:
    """Remove a branch that was kept, where it is still what it was. Raises SubdeckError."""
    kept = fit(act.data, Kept)
    target = usable(kept.root)
    found = next((one for one in branches(target, kept.name.rpartition("/")[0]) if one.name == kept.name), None)
    tip = found.commit if found else branch_tip(target, kept.name)
    if tip and tip != kept.commit:
        what = f"cannot undo {act.title}: the branch {one_line(kept.name, 80)} has new commits"
        raise SubdeckError(what, where=target.root, hint="git branch -D in a shell deletes it")
    for one in listed(target):
        if tip and one.branch == kept.name:
            what = f"cannot undo {act.title}: the branch is checked out in {worded(os.fsencode(one.path))}"
            raise SubdeckError(what, where=target.root, hint="switch to another branch there first")
    if tip:
        target.git.run("update-ref", "-d", f"refs/heads/{kept.name}", tip)
    if read_record(kept.before.directory) is not None:
        kept.before.restore()
    return f"undid {act.title}: the branch {one_line(kept.name, 80)} is removed"
