"""Discard a run's work: its worktree and branch are removed, and kept for a day for an undo."""

from __future__ import annotations

import os

import msgspec
from msgspec import Struct, structs

from .. import paths
from ..errors import SubdeckError
from ..git.program import Git, GitError
from ..run.snapshot import RunSnapshot
from ..system import files
from ..text.decoder import fit
from ..text.plain import one_line
from . import acts
from ._worktree_state import look
from .operation import DISCARD, Act, ActKind, Operation, Plan, TakenBack
from .records import Taken, WorkRecord, read_record, tree_of, write_record
from .source import check_operator, host_of, tidy, words_of
from .worktrees import Worktree, describe, of_run, remove, repair, state_of

_PACK = "work.pack"
"""The commits that only the branch had, beside the worktree, in the act's directory."""


class DiscardDocument(Struct, frozen=True, rename="camel"):
    """The result of discarding a worktree, or what it would do."""

    run_id: str
    branch: str
    """Branch that is deleted."""
    words: str
    """The plan, in sentences for people."""
    discarded: bool
    """Whether worktree and branch are discarded now."""


class DiscardPlan(Plan, frozen=True, kw_only=True):
    """The effect of discarding a run's work."""

    operation: Operation = DISCARD
    lines: tuple[str, ...]
    """Its effect, and what is lost by it."""
    tip: str = ""

    def describe(self) -> tuple[str, ...]:
        return self.lines

    def document(self, *, done: bool, message: str) -> DiscardDocument:
        return DiscardDocument(self.run_id, self.branch, self.words, done)


class _Discarded(Struct, frozen=True, rename="camel", omit_defaults=True):
    """Data for the undo."""

    directory: str
    record: WorkRecord
    tip: str = ""


def plan(project: paths.Project, run: RunSnapshot) -> DiscardPlan:
    """Plan to discard. Raises SubdeckError if that is impossible, and OSError."""
    check_operator(project, run.run_id)
    directory, record = host_of(project, run.run_id)
    if record is None:
        raise SubdeckError(
            f"{words_of(run)} has no worktree: its changes are in your files",
            where=run.run_id,
            hint=f"remove them with subdeck apply {run.meta.short_id} --reverse",
        )
    if not run.has_ended:
        raise SubdeckError(f"{words_of(run)} is still running", where=run.run_id, hint="stop it first")
    worktree = of_run(project, run.run_id)
    if record.away and not record.branch:
        raise SubdeckError(f"{words_of(run)} changed nothing", where=run.run_id)
    if worktree is None:
        raise SubdeckError(f"the worktree of {words_of(run)} no longer exists", where=run.run_id)
    state = worktree.state
    branch = one_line(record.branch, 80)
    there = f"the changes of {words_of(run)} on {one_line(record.away, 64)},"
    tree = there if record.away else f"the worktree of {words_of(run)} and"
    words = [f"Removes {tree} its branch {branch}: {state.words}."]
    if not state.is_safe:
        words.append("These changes exist nowhere else.")
    if state.trouble:
        words.append(f"{state.trouble[:1].upper()}{state.trouble[1:]}.")
    if worktree.run_id != run.run_id:
        words.append(f"It was created for run {worktree.run_id[-6:]}, whose changes are also discarded.")
    words.append("Undo can restore all of it for a day.")
    return DiscardPlan(
        run_id=run.run_id, run=words_of(run), branch=record.branch, lines=tuple(words), directory=directory,
        tip=state.tip,
        summary=state.words if state.is_safe else f"{state.words}, which exists nowhere else",
    )  # fmt: skip


def act(project: paths.Project, plan: DiscardPlan, _message: str = "") -> Act:
    """Move the worktree away, and remove its branch; return the act. Raises SubdeckError and OSError."""
    check_operator(project, plan.run_id)
    record = read_record(plan.directory)
    worktree = describe(plan.directory, record) if record else None
    if record is None or worktree is None:
        raise SubdeckError(f"the worktree of {plan.run} no longer exists", where=plan.directory)
    if worktree.state.tip != plan.tip:
        raise SubdeckError("its branch has moved", where=plan.directory, hint="check again")
    data = _Discarded(plan.directory, record, plan.tip)
    act = acts.record(project, ActKind.DISCARD, plan.run, msgspec.to_builtins(data), begun=True)
    act_directory = acts.undo_directory(project, act.id)
    files.make_private_directory(act_directory)
    try:
        files.write_whole(os.path.join(act_directory, _PACK), _packed(worktree), durable=True)
        if os.path.lexists(worktree.path):
            files.rename(worktree.path, tree_of(act_directory))
        remove(worktree)
    except (SubdeckError, OSError):
        _bring_back(project, data, act_directory)
        acts.drop(project, act.id)
        raise
    gone = read_record(plan.directory) or record
    write_record(plan.directory, structs.replace(gone, taken=Taken.DISCARDED, taken_tree=""))
    tidy(plan.directory)
    return acts.finish(project, act)


def _packed(worktree: Worktree) -> bytes:
    """Return a pack of the commits that may exist nowhere else."""
    record, tip = worktree.record, worktree.state.tip
    revisions = [record.base, *([tip] if tip else []), *([f"^{record.head}"] if record.head else [])]
    git = Git(record.common_dir)
    admin = worktree.state.admin
    head = os.fsdecode(files.content(os.path.join(admin, "HEAD"))).strip() if admin else ""
    if len(head) == len(record.base) and not head.startswith("ref:"):
        revisions.insert(0, head)  # commits that are on no branch
    return git.run(
        "pack-objects", "--revs", "--stdout", "--quiet", input="".join(f"{name}\n" for name in revisions).encode()
    )


def undo(project: paths.Project, act: Act) -> TakenBack:
    """Restore the branch, with the worktree if there was one. Raises SubdeckError and OSError."""
    data = fit(act.data, _Discarded)
    _bring_back(project, data, acts.undo_directory(project, act.id))
    what = "the branch" if data.record.away else "the worktree and the branch"
    return TakenBack(f"restored {what} {one_line(data.record.branch, 80)}")


def _bring_back(project: paths.Project, data: _Discarded, act_directory: str) -> None:
    record, tree = data.record, tree_of(data.directory)
    kept = tree_of(act_directory)
    if os.path.lexists(kept) and os.path.lexists(tree):
        raise SubdeckError("something else is already in its place", where=tree, hint="move it away first")
    if not os.path.isdir(record.common_dir):
        hint = f"its files are in {one_line(kept)}"
        raise SubdeckError(f"its repository is no longer at {one_line(record.common_dir)}", where=kept, hint=hint)
    git = Git(record.common_dir)
    try:
        if packed := files.content(os.path.join(act_directory, _PACK)):
            git.run("unpack-objects", "-q", input=packed)
        name = f"refs/heads/{record.branch}"
        if data.tip and git.ask("rev-parse", "--verify", "--quiet", name).code:
            git.run("update-ref", "-m", "subdeck", name, data.tip, "")
    except GitError as error:
        what = f"git cannot restore it: {one_line(error.what, 300)}"
        raise SubdeckError(what, where=kept, hint=error.hint) from error
    write_record(data.directory, structs.replace(record, removed_at=""))
    if os.path.lexists(kept):
        files.rename(kept, tree)
    if os.path.lexists(tree):
        worktree = Worktree(data.directory, record, state_of(project, record.run_id), look(data.directory, record), 0)
        repair(project, worktree)
