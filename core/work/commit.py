"""Commit the uncommitted files of a run's worktree on its branch."""

from __future__ import annotations

import msgspec
from msgspec import Struct

from .. import paths
from ..errors import SubdeckError
from ..git.merges import commit
from ..git.program import GitError
from ..git.repository import Repository
from ..run.snapshot import RunSnapshot
from ..text.decoder import fit
from ..text.plain import one_line
from . import acts
from ._target import check_identity, remarks
from .operation import COMMIT, Act, ActKind, Operation, Plan, TakenBack, sentence
from .records import tree_of
from .source import SEEN, branch_of, branch_tip, check_checked_out, message_of, store_beside, tidy, usable, words_of


class CommitDocument(Struct, frozen=True, rename="camel"):
    """The result of a commit on a run's own branch, or what it would do."""

    run_id: str
    branch: str
    """Branch that gets the commit."""
    message: str
    """Message of the commit."""
    done: bool
    """Whether it is committed now."""


class CommitPlan(Plan, frozen=True, kw_only=True):
    """The effect of committing on a run's branch."""

    operation: Operation = COMMIT
    tip: str
    count: int
    """Number of files."""

    def describe(self) -> list[str]:
        count = "1 file" if self.count == 1 else f"{self.count} files"
        first = f"Commits {count} of {self.run} on its branch {one_line(self.branch, 80)}."
        return [first, *map(sentence, self.notes)]

    def document(self, *, done: bool, message: str) -> CommitDocument:
        return CommitDocument(self.run_id, self.branch, message, done)


class _Committed(Struct, frozen=True, rename="camel"):
    """Data for the undo."""

    directory: str
    branch: str
    tip: str
    """The commit before."""
    commit: str


def plan(project: paths.Project, run: RunSnapshot) -> CommitPlan:
    """Plan a commit on a run's branch. Raises SubdeckError if that is impossible, and OSError."""
    directory, record, made = branch_of(project, run)
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
        count=len(changed),
        message=message_of(project, run),
        notes=remarks(made),
        directory=directory,
    )


def act(project: paths.Project, plan: CommitPlan, message: str = "") -> Act:
    """Create the commit, and move the branch to it; return the act. Raises SubdeckError and OSError."""
    tree = tree_of(plan.directory)
    made = usable(tree)
    if branch_tip(made, plan.branch) != plan.tip or made.branch != plan.branch:
        raise SubdeckError("its branch has moved", where=tree, hint="check again what would be done")
    seen = store_beside(plan.directory, SEEN)
    snapshot = seen.take(made, into_repository=True)
    new = commit(made.git, snapshot.tree, [plan.tip], message.strip() or plan.message)
    data = _Committed(plan.directory, plan.branch, plan.tip, new)
    act = acts.record(project, ActKind.COMMIT, plan.run, msgspec.to_builtins(data), begun=True)
    try:
        _move(made, plan.branch, plan.tip, new)
    except GitError as error:
        if branch_tip(made, plan.branch) == plan.tip:
            acts.drop(project, act.id)
        raise SubdeckError(f"git refused: {one_line(error.what, 400)}", where=tree, hint=error.hint) from error
    tidy(plan.directory)
    return acts.finish(project, act)


def _move(made: Repository, branch: str, old: str, new: str) -> None:
    """Move the checked-out branch from one commit to another, with the index; files stay unchanged.

    Raises GitError.
    """
    made.git.run("update-ref", "-m", "subdeck", f"refs/heads/{branch}", new, old)
    made.git.run("reset", "--quiet")


def undo(_project: paths.Project, act: Act) -> TakenBack:
    """Turn a commit back into uncommitted changes. Raises SubdeckError."""
    done = fit(act.data, _Committed)
    made = usable(tree_of(done.directory))
    tip = branch_tip(made, done.branch)
    if tip == done.tip:
        made.git.run("reset", "--quiet")
        return TakenBack(f"{act.title} left no changes")
    if tip != done.commit:
        raise SubdeckError(
            f"cannot undo {act.title}: its branch {one_line(done.branch, 80)} has new commits",
            where=made.root,
            hint=f"run git revert {done.commit[:12]} in a shell to undo it with a new commit",
        )
    check_checked_out(made, done.branch)
    _move(made, done.branch, done.commit, done.tip)
    return TakenBack(f"undid {act.title}: its changes are uncommitted again")
