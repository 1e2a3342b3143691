"""Commit a run's changes to the checked-out branch: merged, with two parents, or squashed, with one.

Only the run's changes are included. The user's uncommitted files from the time of the launch are in the first commit of
the worktree, which stays out of the history.
"""

from __future__ import annotations

import os

import msgspec
from msgspec import Struct, structs

from .. import paths
from ..errors import SubdeckError
from ..git.checkout import check_room
from ..git.diff import changed_files
from ..git.merges import Conflict, advance, can_merge, commit, merged
from ..git.program import Git, GitError
from ..git.repository import Repository
from ..git.snapshot import Store
from ..run.changes import ChangedFile
from ..run.snapshot import RunSnapshot
from ..text.decoder import fit
from ..text.plain import one_line
from . import acts
from ._target import MERGED, check_free, check_ready, half_done, is_untouched, remarks, reverse_files, then_undo
from .operation import (
    MERGE,
    NAMED,
    SQUASH,
    Act,
    ActKind,
    ConflictDocument,
    Operation,
    Plan,
    TakenBack,
    conflicts_of,
    file_lines,
    listed,
    sentence,
)
from .records import Taken, TakenBefore, WorkRecord, mark_taken, read_record
from .snapshots import summed
from .source import Source, check_operator, host_of, message_of, root_of, source_of, tidy, usable, words_of

_FEW = 5
"""Files that an error names."""


class MergeDocument(Struct, frozen=True, rename="camel"):
    """The result of a merge, or what it would do."""

    run_id: str
    branch: str
    """Branch that gets the commit."""
    files: tuple[ChangedFile, ...]
    conflicts: tuple[ConflictDocument, ...]
    refusal: str
    """Why it cannot be done; empty if it can."""
    notes: tuple[str, ...]
    """Remarks for people."""
    message: str
    """Message of the commit."""
    done: bool
    """Whether it is merged now."""


class MergePlan(Plan, frozen=True, kw_only=True):
    """The effect of merging or squashing a run's work."""

    operation: Operation = MERGE
    root: str
    head: str = ""
    """The checked-out commit."""
    tree: str = ""
    """The resulting tree."""
    second: str = ""
    """The second parent: a commit, or a tree to commit first."""
    second_parent: str = ""
    """Parent of that tree."""
    after: str = ""

    def describe(self) -> list[str]:
        verb = "Squashes" if self.operation is SQUASH else "Merges"
        how = "1 new commit" if self.operation is SQUASH else "a merge commit"
        changes = summed(self.files).words
        return [
            f"{verb} {self.run} into {one_line(self.branch, 80)}, as {how}: {changes}",
            *file_lines(self.files),
            *map(sentence, self.notes),
        ]

    def document(self, *, done: bool, message: str) -> MergeDocument:
        return MergeDocument(
            self.run_id, self.branch, self.files, conflicts_of(self), self.refusal, self.notes, message, done
        )


class _Merged(Struct, frozen=True, rename="camel", omit_defaults=True):
    """Data for the undo."""

    root: str
    branch: str
    head: str
    """The commit before."""
    commit: str
    before: TakenBefore | None = None


def plan(project: paths.Project, run: RunSnapshot, *, pick: bool = False) -> MergePlan:
    """Plan to merge a run's work; nothing is changed. Raises SubdeckError and OSError."""
    check_operator(project, run.run_id)
    can_merge()
    target = usable(root_of(project, run))
    directory, record = host_of(project, run.run_id)
    plan = MergePlan(
        operation=SQUASH if pick else MERGE, run_id=run.run_id, run=words_of(run), root=target.root,
        branch=target.branch or "",
        head=target.head or "", directory=directory, message=message_of(project, run),
    )  # fmt: skip
    if record is None:
        why = f"{plan.run} worked in the shared directory, so its changes are in your files"
        return plan.refused(why, "commit them with git")
    if not run.has_ended:
        return plan.refused(f"{plan.run} is still running", "wait until it finishes, or stop it")
    try:
        check_ready(target)
    except SubdeckError as error:
        return plan.refused(error.what, error.hint)
    store = Store(os.path.join(directory, MERGED))
    now = store.take(target).tree
    source = source_of(project, run, store, target)
    if not source.files:
        return plan.refused(f"{plan.run} changed nothing")
    git = store.git(target)
    merge = merged(git, source.before, plan.head, source.after)
    plan = structs.replace(plan, after=source.after, notes=(*source.notes, *remarks(target)))
    if merge.conflicts:
        return _conflicting(plan, merge.conflicts, f"it conflicts with {one_line(plan.branch, 80)}")
    changed = changed_files(git, plan.head, merge.tree)
    if not changed:
        return plan.refused(f"{one_line(plan.branch, 80)} already contains all of it")
    plan = structs.replace(plan, files=changed, tree=merge.tree)
    if refusal := _in_the_way(git, target, plan, now):
        return plan.refused(refusal, "commit or move your changes first; subdeck apply merges with uncommitted changes")
    return plan if pick else _with_second(git, plan, source, record)


def _in_the_way(git: Git, target: Repository, plan: MergePlan, now: str) -> str:
    """Describe the user's files that would be overwritten; empty for none. git would also refuse, but later."""
    names = ("diff-tree", "-r", "-z", "--name-only", "--no-renames")
    uncommitted = set(git.lines(*names, plan.head, now, "--"))
    touched = set(git.lines(*names, plan.head, plan.tree, "--"))
    if both := sorted(uncommitted & touched):
        return f"you have uncommitted changes in the same files: {_named(both, NAMED)}"
    try:
        check_room(git, target.root, now, plan.tree)
    except GitError as error:
        return one_line(error.what, 400)
    return ""


def _named(names: list[bytes], most: int) -> str:
    """Name the first files, and the number of the others."""
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(one_line(os.fsdecode(name), 200) for name in names[:most]) + more


def _with_second(git: Git, plan: MergePlan, source: Source, record: WorkRecord) -> MergePlan:
    """Find the second parent: the run's branch, unless that begins with the user's uncommitted files."""
    if record.base == record.head or not git.ask("merge-base", "--is-ancestor", record.base, plan.head).code:
        if source.tip and len(set(git.trees(source.tip, source.after))) == 1:
            return structs.replace(plan, second=source.tip)
        return structs.replace(plan, second=source.after, second_parent=source.tip or record.base)
    began = record.head or plan.head
    alone = merged(git, record.base, began, source.after)
    if alone.conflicts:
        plan = _conflicting(plan, alone.conflicts, "it builds on your uncommitted changes")
        return structs.replace(plan, advice="commit your changes first; subdeck apply works without a commit")
    return structs.replace(plan, second=alone.tree, second_parent=began)


def _conflicting(plan: MergePlan, conflicts: tuple[Conflict, ...], why: str) -> MergePlan:
    advice = "nothing was done; use git merge in a shell to resolve it by hand"
    return structs.replace(plan, conflicts=conflicts).refused(f"{why}: {listed(conflicts)}", advice)


def act(project: paths.Project, plan: MergePlan, message: str = "") -> Act:
    """Create the commits, and move the branch; return the act. Raises SubdeckError and OSError."""
    check_operator(project, plan.run_id)
    if plan.refusal or not plan.tree:
        raise SubdeckError(plan.refusal or "nothing to merge", where=plan.root, hint=plan.advice)
    target = usable(plan.root)
    if (target.head, target.branch) != (plan.head, plan.branch):
        raise SubdeckError(
            "a different commit is checked out now", where=plan.root, hint="check again what would be done"
        )
    check_ready(target)
    store = Store(os.path.join(plan.directory, MERGED))
    words = message.strip() or plan.message
    trees = [plan.tree, *([plan.second] if plan.second_parent else [])]
    store.give(target, [*trees, f"^{plan.head}"])
    parents = [plan.head]
    if plan.second:
        second = commit(target.git, plan.second, [plan.second_parent], words) if plan.second_parent else plan.second
        parents.append(second)
    new = commit(target.git, plan.tree, parents, words)
    record = read_record(plan.directory)
    before = TakenBefore.of(plan.directory, record) if record else None
    data = _Merged(plan.root, plan.branch, plan.head, new, before)
    now, is_pick = store.take(target).tree, plan.operation is SQUASH
    act = acts.record(
        project, ActKind.PICK if is_pick else ActKind.MERGE, plan.run, msgspec.to_builtins(data), begun=True
    )
    try:
        advance(target, new)
    except GitError as error:
        if usable(plan.root).head == plan.head and is_untouched(store, target, now):
            acts.drop(project, act.id)
            what = f"nothing was merged: {one_line(error.what, 400)}"
            raise SubdeckError(what, where=plan.root, hint=error.hint or "check again") from error
        raise half_done("merged", error, plan.root) from error
    if record is not None:
        mark_taken(plan.directory, record, Taken.PICKED if is_pick else Taken.MERGED, _tree_id(target.git, plan.after))
    done = acts.finish(project, act)
    store.remove()
    tidy(plan.directory)
    return done


def _tree_id(git: Git, name: str) -> str:
    """Return a commit's tree, or a tree itself, even if the repository does not have it."""
    answer = git.ask("rev-parse", "--verify", "--quiet", "--end-of-options", f"{name}^{{tree}}")
    return os.fsdecode(answer.output).strip() if not answer.code else name


def undo(project: paths.Project, act: Act) -> TakenBack:
    """Reset a branch to the commit before a merge, with files and index; uncommitted changes stay.

    Raises OSError, and SubdeckError if the branch has moved, or if files conflict.
    """
    done = fit(act.data, _Merged)
    target = usable(done.root)
    branch = one_line(done.branch, 80)
    # git moves the branch last, and so does an undo: if killed before that, files and index may still have to follow.
    is_back = target.head == done.head and (act.begun or act.undo is not None)
    if not is_back:
        _check_branch(target, act, done)
    check_free(target)
    store = Store(acts.undo_directory(project, act.id))
    _check_uncommitted(store, target, act, done)
    outcome = reverse_files(project, store, target, act, f"{done.head}^{{tree}}", f"{done.commit}^{{tree}}")
    try:
        target.git.run("read-tree", "-i", "-m", "--no-recurse-submodules", done.commit, done.head)
        target.git.ask("update-index", "-q", "--refresh")
        if not is_back:
            target.git.run("update-ref", "-m", "subdeck: undo", f"refs/heads/{done.branch}", done.head, done.commit)
            outcome = f"undid {act.title}: {branch} is at {done.head[:12]} again"
    except GitError as error:
        what = f"{act.title} was not fully undone: {one_line(error.what, 300)}"
        raise SubdeckError(what, where=done.root, hint=then_undo(error)) from error
    if done.before is not None:
        done.before.restore()
    return TakenBack(outcome)


def _check_branch(target: Repository, act: Act, done: _Merged) -> None:
    branch = one_line(done.branch, 80)
    if target.branch != done.branch:
        hint = f"git switch {branch} first"
        raise SubdeckError(f"cannot undo {act.title}: {branch} is not checked out", where=done.root, hint=hint)
    if target.head != done.commit:
        again = f"git revert {'-m 1 ' if act.kind is ActKind.MERGE else ''}{done.commit[:12]}"
        raise SubdeckError(
            f"cannot undo {act.title}: {branch} has new commits",
            where=done.root,
            hint=f"run {again} in a shell to undo it with a new commit",
        )


def _check_uncommitted(store: Store, target: Repository, act: Act, done: _Merged) -> None:
    """Raise SubdeckError if files of the merge have uncommitted changes: in the index always, in the working tree
    unless subdeck itself was writing there.
    """
    names = ("--name-only", "--no-renames", "-z")
    merged_files = set(target.git.lines("diff-tree", "-r", *names, done.commit, done.head, "--"))
    staged = set(target.git.lines("diff-index", "--cached", *names, done.commit, "--"))
    staged &= set(target.git.lines("diff-index", "--cached", *names, done.head, "--"))
    changed = staged & merged_files
    if not act.begun and act.undo is None:
        now = store.take(target).tree
        changed |= merged_files & set(store.git(target).lines("diff-tree", "-r", *names, done.commit, now, "--"))
    if changed:
        what = f"cannot undo {act.title}: you have uncommitted changes in {_named(sorted(changed), _FEW)}"
        raise SubdeckError(what, where=done.root, hint="commit or stash them first")
