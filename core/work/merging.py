"""Making what a run changed a commit of the branch that is checked out: merged, with two parents, or picked, with one.

Only the changes of the run come along: files of the operator's that were not committed when its worktree was made are
in the commit that the worktree begins with, and that one stays out of the history.
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
from ..run import artifacts
from ..run.changes import ChangedFile
from ..run.snapshot import RunSnapshot
from ..text.plain import one_line
from . import acts
from ._readiness import check_ready, remarks
from .acts import Act, ActKind
from .records import Taken, TakenBefore, WorkRecord, mark_taken, read_record
from .snapshots import summed
from .source import Source, check_operator, host_of, root_of, source_of, tidy, usable, words_of
from .taking import MERGED, NAMED, begun, file_line, half_done, is_untouched, sentence


class MergePlan(Struct, frozen=True, kw_only=True):
    """What merging or picking the work of a run would do."""

    run_id: str
    run: str
    root: str
    branch: str = ""
    """The one that would get the commit."""
    kind: ActKind = ActKind.MERGE
    files: tuple[ChangedFile, ...] = ()
    conflicts: tuple[Conflict, ...] = ()
    refusal: str = ""
    advice: str = ""
    notes: tuple[str, ...] = ()
    message: str = ""
    """Proposed; it can be another one."""
    head: str = ""
    """The commit that is checked out."""
    tree: str = ""
    """What it would be."""
    second: str = ""
    """The second parent: a commit, or a tree of which one is made first."""
    second_parent: str = ""
    """Of that tree."""
    after: str = ""
    directory: str = ""

    @property
    def words(self) -> str:
        """Say what it will do, and what keeps it from that; some lines."""
        if self.refusal:
            return "\n".join(filter(None, (sentence(self.refusal), begun(self.advice))))
        verb = "Picks" if self.kind is ActKind.PICK else "Merges"
        how = "1 new commit" if self.kind is ActKind.PICK else "a merge commit"
        changes = summed(self.files).words
        lines = [
            f"{verb} {self.run} into {one_line(self.branch, 80)}, as {how}: {changes}",
            *map(file_line, self.files[:NAMED]),
        ]
        if len(self.files) > NAMED:
            lines.append(f"  and {len(self.files) - NAMED} more")
        return "\n".join([*lines, *map(sentence, self.notes)])


class Merged(Struct, frozen=True, rename="camel", omit_defaults=True):
    """What taking it back needs."""

    root: str
    branch: str
    head: str
    """The commit before."""
    commit: str
    before: TakenBefore | None = None


def plan_merge(project: paths.Project, run: RunSnapshot, *, pick: bool = False) -> MergePlan:
    """Say what merging the work of a run would do; nothing is changed. Raises SubdeckError and OSError."""
    check_operator(project, run.run_id)
    can_merge()
    target = usable(root_of(project, run))
    directory, record = host_of(project, run.run_id)
    kind = ActKind.PICK if pick else ActKind.MERGE
    plan = MergePlan(
        run_id=run.run_id, run=words_of(run), root=target.root, branch=target.branch or "", kind=kind,
        head=target.head or "", directory=directory, message=message_of(project, run),
    )  # fmt: skip
    if record is None:
        return structs.replace(
            plan,
            refusal=f"{plan.run} worked in the shared directory, so its changes are in your files",
            advice="commit them with git",
        )
    if not run.has_ended:
        return structs.replace(
            plan, refusal=f"{plan.run} is still running", advice="wait until it finishes, or stop it"
        )
    try:
        check_ready(target)
    except SubdeckError as error:
        return structs.replace(plan, refusal=error.what, advice=error.hint)
    store = Store(os.path.join(directory, MERGED))
    now = store.take(target).tree
    source = source_of(project, run, store, target)
    if not source.files:
        return structs.replace(plan, refusal=f"{plan.run} changed nothing")
    git = store.git(target)
    merge = merged(git, source.before, plan.head, source.after)
    plan = structs.replace(plan, after=source.after, notes=(*source.notes, *remarks(target)))
    if merge.conflicts:
        return _conflicting(plan, merge.conflicts, f"it conflicts with {one_line(plan.branch, 80)}")
    changed = changed_files(git, plan.head, merge.tree)
    if not changed:
        return structs.replace(plan, refusal=f"{one_line(plan.branch, 80)} already contains all of it")
    plan = structs.replace(plan, files=changed, tree=merge.tree)
    if refusal := _in_the_way(git, target, plan, now):
        advice = "commit or move your changes first; subdeck apply merges with uncommitted changes"
        return structs.replace(plan, refusal=refusal, advice=advice)
    return plan if pick else _with_second(git, plan, source, record)


def _in_the_way(git: Git, target: Repository, plan: MergePlan, now: str) -> str:
    """Say which files of the operator's would be overwritten; empty for none. git would refuse, too, but later."""
    names = ("diff-tree", "-r", "-z", "--name-only", "--no-renames")
    own = set(git.lines(*names, plan.head, now, "--"))
    touched = set(git.lines(*names, plan.head, plan.tree, "--"))
    if both := sorted(own & touched):
        listed = ", ".join(one_line(os.fsdecode(path), 200) for path in both[:NAMED])
        more = f" and {len(both) - NAMED} more" if len(both) > NAMED else ""
        return f"you have uncommitted changes in the same files: {listed}{more}"
    try:
        check_room(git, target.root, now, plan.tree)
    except GitError as error:
        return one_line(error.what, 400)
    return ""


def _with_second(git: Git, plan: MergePlan, source: Source, record: WorkRecord) -> MergePlan:
    """Find the second parent: the branch of the run, unless it begins with what the operator had not committed."""
    if record.base == record.head or not git.ask("merge-base", "--is-ancestor", record.base, plan.head).code:
        if source.tip and _tree(git, source.tip) == _tree(git, source.after):
            return structs.replace(plan, second=source.tip)
        return structs.replace(plan, second=source.after, second_parent=source.tip or record.base)
    began = record.head or plan.head
    alone = merged(git, record.base, began, source.after)
    if alone.conflicts:
        plan = _conflicting(plan, alone.conflicts, "it builds on your uncommitted changes")
        return structs.replace(plan, advice="commit your changes first; subdeck apply works without a commit")
    return structs.replace(plan, second=alone.tree, second_parent=began)


def _tree(git: Git, name: str) -> str:
    return os.fsdecode(git.run("rev-parse", "--verify", "--end-of-options", f"{name}^{{tree}}")).strip()


def _conflicting(plan: MergePlan, conflicts: tuple[Conflict, ...], why: str) -> MergePlan:
    listed = ", ".join(f"{one_line(one.path, 200)} ({one_line(one.why, 120)})" for one in conflicts[:NAMED])
    more = f", and {len(conflicts) - NAMED} more" if len(conflicts) > NAMED else ""
    return structs.replace(
        plan,
        conflicts=conflicts,
        refusal=f"{why}: {listed}{more}",
        advice="nothing was done; use git merge in a shell to resolve it by hand",
    )


def merge(project: paths.Project, plan: MergePlan, message: str = "") -> Act:
    """Do what a plan says; return the act, which can be taken back. Raises SubdeckError and OSError."""
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
        own = commit(target.git, plan.second, [plan.second_parent], words) if plan.second_parent else plan.second
        parents.append(own)
    new = commit(target.git, plan.tree, parents, words)
    record = read_record(plan.directory)
    before = TakenBefore.of(plan.directory, record) if record else None
    data = Merged(plan.root, plan.branch, plan.head, new, before)
    now = store.take(target).tree
    act = acts.record(project, plan.kind, plan.run, msgspec.to_builtins(data), begun=True)
    try:
        advance(target, new)
    except GitError as error:
        if usable(plan.root).head == plan.head and is_untouched(store, target, now):
            acts.drop(project, act.id)
            what = f"nothing was merged: {one_line(error.what, 400)}"
            raise SubdeckError(what, where=plan.root, hint=error.hint or "check again") from error
        raise half_done("merged", error, plan.root) from error
    if record is not None:
        taken = Taken.PICKED if plan.kind is ActKind.PICK else Taken.MERGED
        mark_taken(plan.directory, record, taken, tree_id(target.git, plan.after))
    done = acts.finish(project, act)
    store.remove()
    tidy(plan.directory)
    return done


def tree_id(git: Git, name: str) -> str:
    """Return the tree of a commit, or the tree itself, also where the repository does not have it."""
    answer = git.ask("rev-parse", "--verify", "--quiet", "--end-of-options", f"{name}^{{tree}}")
    return os.fsdecode(answer.output).strip() if not answer.code else name


def message_of(project: paths.Project, run: RunSnapshot) -> str:
    """Propose a message: the first line of the answer, else of the task, and below it the rest of the paragraph."""
    result = artifacts.read_result(project.run_dir(run.run_id))
    answer = (result.final_text if result else "") or run.meta.task
    lines = [line.strip().lstrip("#*- ").strip() for line in answer.strip().split("\n")]
    first, *rest = lines or [""]
    subject = one_line(first, 72).strip() or f"Work of {words_of(run)}"
    paragraph: list[str] = []
    for line in rest[1:] if rest and not rest[0] else rest:
        if not line or len(paragraph) == 12:
            break
        paragraph.append(one_line(line, 400))
    return "\n".join([subject, "", *paragraph] if paragraph else [subject])
