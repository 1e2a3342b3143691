"""Save a run's commits as a user's branch, which stays when the run is deleted."""

from __future__ import annotations

import os

import msgspec
from msgspec import Struct

from .. import paths
from ..errors import SubdeckError
from ..git.names import worded
from ..git.program import GitError
from ..git.worktrees import branches, check_branch, listed
from ..run.snapshot import RunSnapshot
from ..text.decoder import fit
from ..text.plain import one_line
from . import acts
from .operation import SAVE, Act, ActKind, Operation, Plan, TakenBack
from .records import Taken, TakenBefore, mark_taken, read_record
from .source import branch_of, branch_tip, check_operator, usable, words_of

_OURS = "subdeck/"
"""Name prefix of branches that are removed with their worktrees."""


class SaveDocument(Struct, frozen=True, rename="camel"):
    """The branch to which the commits of a run were saved."""

    run_id: str
    branch: str
    """Name of the branch."""
    saved: bool
    """Whether it was created: not with --dry-run."""


class SavePlan(Plan, frozen=True, kw_only=True):
    """The effect of saving a run's commits."""

    operation: Operation = SAVE
    root: str
    tip: str
    """The commit for the branch."""
    made: str
    """The working tree whose repository has the run's branch."""

    def describe(self) -> list[str]:
        return [f"Saves the commits of {self.run} as branch {one_line(self.branch, 80)}."]

    def document(self, *, done: bool, message: str) -> SaveDocument:
        return SaveDocument(self.run_id, self.branch, done)


class _Kept(Struct, frozen=True, rename="camel"):
    """Data for the undo."""

    root: str
    name: str
    commit: str
    before: TakenBefore


def plan(project: paths.Project, run: RunSnapshot, *, name: str = "") -> SavePlan:
    """Plan to save a run's commits as a branch of this name, by default its own branch's without the directory. Raises
    SubdeckError if that is impossible, as with uncommitted changes.
    """
    directory, record, made = branch_of(project, run)
    name = name or record.branch.removeprefix(_OURS)
    if name.startswith(_OURS):
        what = f"branches that begin with {_OURS} are deleted with their worktrees"
        raise SubdeckError(what, where=one_line(name, 80), hint="choose another name")
    check_branch(name)
    if not record.away and made.git.lines("status", "--porcelain", "-z"):
        short = run.meta.short_id
        raise SubdeckError(
            f"the worktree of {words_of(run)} has uncommitted changes",
            where=made.root,
            hint=f"subdeck diff {short} shows them; subdeck merge {short} --commit commits them",
        )
    tip = branch_tip(made, record.branch)
    if not tip:
        raise SubdeckError(f"its branch {one_line(record.branch, 80)} no longer exists", where=record.root)
    if branch_tip(made, name):
        raise SubdeckError(f"the branch {one_line(name, 80)} already exists", where=record.root)
    return SavePlan(
        run_id=run.run_id,
        run=words_of(run),
        branch=name,
        root=record.root,
        tip=tip,
        made=made.root,
        directory=directory,
    )


def act(project: paths.Project, plan: SavePlan, _message: str = "") -> Act:
    """Create the branch; return the act. Raises SubdeckError and OSError."""
    check_operator(project, plan.run_id)
    made = usable(plan.made)
    record = read_record(plan.directory)
    if record is None or branch_tip(made, record.branch) != plan.tip:
        raise SubdeckError("its branch has moved", where=plan.root, hint="check again what would be done")
    data = _Kept(plan.root, plan.branch, plan.tip, TakenBefore.of(plan.directory, record))
    act = acts.record(project, ActKind.KEEP, plan.run, msgspec.to_builtins(data), begun=True)
    try:
        made.git.run("update-ref", "-m", "subdeck", f"refs/heads/{plan.branch}", plan.tip, "")
    except GitError as error:
        acts.drop(project, act.id)
        raise SubdeckError(f"git refused: {one_line(error.what, 400)}", where=plan.root, hint=error.hint) from error
    mark_taken(plan.directory, record, Taken.KEPT, *made.git.trees(plan.tip))
    return acts.finish(project, act)


def undo(_project: paths.Project, act: Act) -> TakenBack:
    """Remove a saved branch if it is unchanged. Raises SubdeckError."""
    kept = fit(act.data, _Kept)
    target = usable(kept.root)
    existing = next(
        (branch for branch in branches(target, kept.name.rpartition("/")[0]) if branch.name == kept.name), None
    )
    tip = existing.commit if existing else branch_tip(target, kept.name)
    if tip and tip != kept.commit:
        what = f"cannot undo {act.title}: the branch {one_line(kept.name, 80)} has new commits"
        raise SubdeckError(what, where=target.root, hint="git branch -D in a shell deletes it")
    for worktree in listed(target):
        if tip and worktree.branch == kept.name:
            what = f"cannot undo {act.title}: the branch is checked out in {worded(os.fsencode(worktree.path))}"
            raise SubdeckError(what, where=target.root, hint="switch to another branch there first")
    if tip:
        target.git.run("update-ref", "-d", f"refs/heads/{kept.name}", tip)
    if read_record(kept.before.directory) is not None:
        kept.before.restore()
    return TakenBack(f"undid {act.title}: the branch {one_line(kept.name, 80)} is removed")
