"""Apply a run's changes: a three-way merge into the files of a working tree, as a person would edit them.

A plan says what would happen, and is carried out exactly or refused. The user's index, branch and stash are not
touched. If both sides changed the same lines, nothing is written.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Mapping

import msgspec
from msgspec import Struct, structs

from .. import paths
from ..errors import SubdeckError
from ..git.checkout import InTheWay, check_room
from ..git.diff import changed_files, chosen
from ..git.merges import can_merge, merged
from ..git.program import GitError
from ..git.snapshot import Store
from ..run.changes import ChangedFile, Changes, FileStatus
from ..run.snapshot import RunSnapshot
from ..text.decoder import fit
from ..text.plain import one_line
from . import acts
from ._target import MERGED, half_done, is_untouched, reverse_files
from .operation import (
    APPLY,
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
from .records import Taken, TakenBefore, mark_taken, read_record
from .snapshots import summed
from .source import Source, bring, check_operator, host_of, root_of, source_of, tidy, usable, words_of


class ApplyDocument(Struct, frozen=True, rename="camel"):
    """The result of applying changes, or what it would do."""

    run_id: str
    root: str
    """Working tree that gets the changes."""
    files: tuple[ChangedFile, ...]
    conflicts: tuple[ConflictDocument, ...]
    refusal: str
    """Why it cannot be done; empty if it can."""
    notes: tuple[str, ...]
    """Remarks for people."""
    applied: bool
    """Whether the changes are applied now."""


class ApplyPlan(Plan, frozen=True, kw_only=True):
    """The effect of applying on a working tree."""

    operation: Operation = APPLY
    root: str
    """Root of the working tree."""
    is_reversed: bool = False
    """Whether the run's changes are removed from the files."""
    is_whole: bool = False
    """Whether it includes all changes of the run."""
    now: str = ""
    wanted: str = ""
    after: str = ""
    """The tree that the run has left."""

    @property
    def changes(self) -> Changes:
        return summed(self.files)

    def describe(self) -> list[str]:
        where = one_line(paths.at_home(self.root), 200)
        verb = "Removes the changes of {} from {}: {}" if self.is_reversed else "Writes the changes of {} into {}: {}"
        lines = [verb.format(self.run, where, self.changes.words), *file_lines(self.files)]
        if self.is_running:
            lines.append("It is still running: these are its changes so far.")
        lines += map(sentence, self.notes)
        lines.append("The changes stay unstaged; index and branch are untouched.")
        return lines

    def document(self, *, done: bool, message: str) -> ApplyDocument:
        return ApplyDocument(self.run_id, self.root, self.files, conflicts_of(self), self.refusal, self.notes, done)


class _Applied(Struct, frozen=True, rename="camel", omit_defaults=True):
    """Data for the undo."""

    root: str
    now: str
    """The tree of the files before."""
    wanted: str
    """The tree that was written."""
    before: TakenBefore | None = None
    """None if only some of the run's changes were applied."""


def plan(
    project: paths.Project,
    run: RunSnapshot,
    *,
    files: Iterable[str] | None = None,
    hunks: Mapping[str, Collection[int]] | None = None,
    reverse: bool = False,
    to: str = "",
    tree: str = "",
) -> ApplyPlan:
    """Plan to apply a run's changes: all, some files, or some hunks of files, counted from 1 in the patch whose tree is
    `tree`. With `reverse` they are removed from the files.

    `to` is a working tree other than the one the run began with. Nothing is changed. Raises SubdeckError and OSError if
    the effect cannot be determined.
    """
    check_operator(project, run.run_id)
    can_merge()
    target = usable(to or root_of(project, run))
    directory, _ = host_of(project, run.run_id)
    store = Store(os.path.join(directory, MERGED))
    now = store.take(target)
    source = source_of(project, run, store, target)
    git = store.git(target)
    plan = ApplyPlan(
        run_id=run.run_id, run=words_of(run), root=target.root, is_reversed=reverse, is_running=source.is_running,
        notes=source.notes, now=now.tree, directory=directory,
    )  # fmt: skip
    if not source.files:
        return plan.refused(f"{plan.run} changed nothing")
    if source.is_running and reverse:
        return plan.refused(f"{plan.run} is still running", "wait until it finishes, or stop it")
    if tree and tree != source.after and hunks:
        return plan.refused("its files have changed since you reviewed them", "check again")
    selected, omissions, refusal = _chosen_files(source, files, hunks)
    if refusal:
        return plan.refused(refusal, "subdeck diff --name-only names its files")
    after = source.after
    is_whole = len(selected) == len(source.files) and not hunks
    if not is_whole:
        with store.scratch(target) as scratch:
            parts = {file.path: hunks[file.path] for file in selected if hunks and file.path in hunks}
            whole = [name for file in selected if file.path not in parts for name in (file.path, file.old_path) if name]
            after = chosen(scratch, source.before, source.after, whole, parts)
    base, theirs = (after, source.before) if reverse else (source.before, after)
    merge = merged(git, base, now.tree, theirs)
    plan = structs.replace(
        plan, notes=(*plan.notes, *omissions), after=source.after,
        is_whole=is_whole and not reverse and not source.notes and os.path.realpath(target.root) == source.root,
    )  # fmt: skip
    if merge.conflicts:
        return _conflicting(structs.replace(plan, conflicts=merge.conflicts))
    changed = changed_files(git, now.tree, merge.tree) if merge.tree != now.tree else ()
    plan = structs.replace(plan, files=changed, wanted=merge.tree)
    if not changed:
        return plan.refused("none of its changes are there" if reverse else "all changes are already there")
    try:
        check_room(git, target.root, now.tree, merge.tree)
    except GitError as error:
        return plan.refused(one_line(error.what, 400), "move it away first")
    return plan


def _chosen_files(
    source: Source, only: Iterable[str] | None, hunks: Mapping[str, Collection[int]] | None
) -> tuple[list[ChangedFile], list[str], str]:
    """Return the files to apply, notes on others, and a refusal if a name matches none of them."""
    by_name = {file.path: file for file in source.files}
    by_name |= {file.old_path: file for file in source.files if file.old_path}
    names = [*(only or ()), *(hunks or {})] if only is not None or hunks else None
    selected: dict[str, ChangedFile] = {}
    for name in by_name if names is None else names:
        below = [file for file in source.files if file.path.startswith(name.rstrip("/") + "/")]
        if name not in by_name and not below:
            return [], [], f"{source.words} has not changed {one_line(name, 200)}"
        selected |= {file.path: file for file in ([by_name[name]] if name in by_name else below)}
    submodules = [file for file in selected.values() if file.status is FileStatus.SUBMODULE]
    omissions = [f"the submodule {one_line(file.path, 200)} is not changed" for file in submodules]
    return [file for file in selected.values() if file not in submodules], omissions, ""


def _conflicting(plan: ApplyPlan) -> ApplyPlan:
    count = len(plan.conflicts)
    what = "your own changes conflict in 1 file" if count == 1 else f"your own changes conflict in {count} files"
    advice = "nothing was written; choose other files, " + (
        "or edit it by hand" if plan.is_reversed else "or move your own changes, or merge the branch with git"
    )
    return plan.refused(f"{what}: {listed(plan.conflicts)}", advice)


def act(project: paths.Project, plan: ApplyPlan, _message: str = "") -> Act:
    """Write the files; return the act. On SubdeckError and OSError nothing was done, or the act is on the stack."""
    check_operator(project, plan.run_id)
    if plan.refusal or not plan.wanted:
        raise SubdeckError(plan.refusal or "nothing to apply", where=plan.root, hint=plan.advice)
    target = usable(plan.root)
    store = Store(os.path.join(plan.directory, MERGED))
    record = read_record(plan.directory)
    data = _Applied(
        plan.root, plan.now, plan.wanted, TakenBefore.of(plan.directory, record) if plan.is_whole and record else None
    )
    act = acts.record(project, ActKind.APPLY, plan.run, msgspec.to_builtins(data), begun=True)
    try:
        kept = Store(acts.undo_directory(project, act.id))
        bring(store, target, kept, target, (plan.now, plan.wanted))
        store.write(target, plan.now, plan.wanted)
    except GitError as error:
        if isinstance(error, InTheWay) or is_untouched(store, target, plan.now):
            acts.drop(project, act.id)
            raise SubdeckError(
                f"nothing was applied: {one_line(error.what, 400)}", where=plan.root, hint=error.hint or "check again"
            ) from error
        raise half_done("applied", error, plan.root) from error
    if record is not None and plan.is_whole:
        mark_taken(plan.directory, record, Taken.APPLIED, plan.after)
    done = acts.finish(project, act)
    store.remove()
    tidy(plan.directory)
    return done


def undo(project: paths.Project, act: Act) -> TakenBack:
    """Remove applied changes from the files. Raises SubdeckError and OSError."""
    applied = fit(act.data, _Applied)
    target = usable(applied.root)
    store = Store(acts.undo_directory(project, act.id))
    outcome = reverse_files(project, store, target, act, applied.now, applied.wanted)
    if applied.before is not None:
        applied.before.restore()
    return TakenBack(outcome)
