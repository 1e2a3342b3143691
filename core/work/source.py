"""A run's changes as trees that can be merged: from its worktree, otherwise its records, otherwise its patch."""

from __future__ import annotations

import io
import os

from msgspec import Struct

from .. import paths
from ..errors import SubdeckError, UsageError, not_for_agents
from ..git.diff import changed_files, write_patch
from ..git.program import Git, GitError
from ..git.repository import Repository, find
from ..git.snapshot import Skipped, Store
from ..project.ownership import check_own
from ..run.artifacts import read_result
from ..run.changes import ChangedFile, Changes, ChangesSource
from ..run.comparison import Side
from ..run.snapshot import RunSnapshot
from ..system import files
from ..text.plain import one_line
from ..text.shell import shell_words
from .records import WorkRecord, has_worktree, index_of, read_record, read_recorded, store_of, tree_of
from .snapshots import MOST_PATCH, summed

SEEN = "seen"
"""Directory of a worktree's snapshot for applying it, below the directory of the run's work."""


class Source(Struct, frozen=True, kw_only=True):
    """The work of one run; its trees are known to the store it was copied to."""

    run_id: str
    words: str
    """The run's name for people: `reviewer 4ae0bd`."""
    directory: str
    """Directory of its work."""
    root: str
    """Root of the working tree that it began with, or worked in."""
    before: str
    after: str
    """Trees or commits."""
    files: tuple[ChangedFile, ...]
    record: WorkRecord | None = None
    """Record of its worktree; None for a run in a shared directory."""
    tip: str = ""
    """The commit of its branch; empty without one."""
    is_running: bool = False
    notes: tuple[str, ...] = ()
    """Notes for a person, sentences without full stops."""


def words_of(run: RunSnapshot) -> str:
    return f"{one_line(run.meta.title, 40)} {run.meta.short_id}"


def check_operator(project: paths.Project, run_id: str) -> None:
    """Raise SubdeckError if this process may not act on a run's work: it is an agent's, or the run is untrusted."""
    if paths.is_child():
        raise not_for_agents("apply the changes of runs", where=run_id)
    check_own(project, run_id)


def host_of(project: paths.Project, run_id: str) -> tuple[str, WorkRecord | None]:
    """Return the directory of a run's work and the record of its worktree; if it continues in another run's worktree,
    that run's.
    """
    directory = paths.work_dir(project, run_id)
    record = read_record(directory)
    host = getattr(record, "host", "")
    if host and paths.is_run_id(host):
        directory = paths.work_dir(project, host)
        record = read_record(directory)
    return directory, record


def store_beside(directory: str, name: str) -> Store:
    """Open a store for a run's current files, below the directory of its work: they are read as in its first snapshot,
    despite later settings by its agent.
    """
    recorded = read_recorded(directory)
    reading = recorded.reading if recorded else None
    return Store(os.path.join(directory, name), reading=reading, seed=index_of(directory))


def usable(root: str) -> Repository:
    """Return the repository of a working tree. Raises SubdeckError if it is missing or unusable."""
    repository = find(root)
    if repository is None:
        raise SubdeckError(
            "the repository no longer exists",
            where=one_line(root),
            hint="check whether it was moved or removed",
            code="git.not_a_repository",
        )
    if repository.trouble:
        raise SubdeckError(repository.trouble, where=one_line(root))
    return repository


def source_of(project: paths.Project, run: RunSnapshot, store: Store, target: Repository) -> Source:
    """Find a run's changes, and copy them to a store. Raises SubdeckError and OSError."""
    directory, record = host_of(project, run.run_id)
    if record is not None and record.common_dir == target.common_dir:
        return _of_worktree(run, directory, record, store, target)
    return _as_recorded(project, run, store, target)


def root_of(project: paths.Project, run: RunSnapshot) -> str:
    """Return the default working tree for a run's changes. Raises SubdeckError."""
    _, record = host_of(project, run.run_id)
    if record is not None:
        return record.root
    recorded = read_recorded(paths.work_dir(project, run.run_id))
    if recorded is not None:
        return recorded.root
    if _patch_of(project, run) and (repository := find(project.root)) is not None:
        return repository.root
    raise SubdeckError(
        _unknown(run), where=run.run_id, hint=f"subdeck diff {run.meta.short_id} shows the known changes"
    )


def _unknown(run: RunSnapshot) -> str:
    changes = run.changes
    if changes is not None and changes.source is ChangesSource.TOOLS:
        return f"{words_of(run)} worked outside git: its changes are already in its directory"
    if run.started_at is None:
        return f"{words_of(run)} has not started"
    why = f": {one_line(changes.note, 200)}" if changes and changes.note else ""
    return f"the changes of {words_of(run)} were not recorded{why}"


def _of_worktree(run: RunSnapshot, directory: str, record: WorkRecord, store: Store, target: Repository) -> Source:
    tree = tree_of(directory)
    tip = branch_tip(target, record.branch) if record.branch else ""
    notes: list[str] = []
    if has_worktree(directory):
        made = usable(tree)
        if made.common_dir != record.common_dir:
            hint = f"subdeck worktrees shows its state; check {one_line(tree)}/.git"
            raise SubdeckError("its worktree belongs to another repository", where=one_line(tree), hint=hint)
        seen = store_beside(directory, SEEN)
        snapshot = seen.take(made)
        after = snapshot.tree
        bring(seen, made, store, target, (after,), base=record.base)
        notes += _left_out(snapshot.skipped)
    elif tip:
        after = tip
        if not record.away:
            notes.append("its worktree no longer exists: only the commits on its branch are included")
    elif record.away and not record.branch:
        after = record.base
    else:
        return _as_recorded_from(run, directory, store, target, record)
    git = store.git(target)
    changed = changed_files(git, record.base, after)
    return Source(
        run_id=run.run_id,
        words=words_of(run),
        directory=directory,
        root=record.root,
        before=record.base,
        after=after,
        files=changed,
        record=record,
        tip=tip,
        is_running=not run.has_ended,
        notes=tuple(notes),
    )


def _as_recorded(project: paths.Project, run: RunSnapshot, store: Store, target: Repository) -> Source:
    directory = paths.work_dir(project, run.run_id)
    patch = _patch_of(project, run)
    if patch and read_recorded(directory) is None:
        return _of_patch(run, directory, store, target, patch)
    return _as_recorded_from(run, directory, store, target, None)


def _as_recorded_from(
    run: RunSnapshot, directory: str, store: Store, target: Repository, record: WorkRecord | None
) -> Source:
    recorded = read_recorded(directory)
    if recorded is None:
        raise SubdeckError(_unknown(run), where=run.run_id, hint="subdeck diff shows the known changes")
    if recorded.common_dir != target.common_dir:
        raise SubdeckError(
            f"{words_of(run)} worked in another repository: {one_line(recorded.root)}",
            where=one_line(target.root),
            hint=f"run this there: subdeck diff {run.meta.short_id} | git apply",
        )
    kept = Store(store_of(directory))
    after = recorded.after
    notes: list[str] = []
    if not after:
        if record is not None:
            raise SubdeckError("its worktree and its branch no longer exist", where=run.run_id)
        # It is running, or was lost: others may also have changed its directory.
        taken = store_beside(directory, SEEN)
        origin = usable(recorded.root)
        after = taken.take(origin).tree
        bring(taken, origin, store, target, (after,))
        if run.has_ended:
            notes.append("the run was lost: all changes in its directory since its start count as its own")
    trees = [tree for tree in (recorded.before, recorded.after) if tree]
    if os.path.isdir(kept.objects):
        bring(kept, usable(recorded.root), store, target, trees)
    notes += _notes_on_others(run)
    return Source(
        run_id=run.run_id,
        words=words_of(run),
        directory=directory,
        root=recorded.root,
        before=recorded.before,
        after=after,
        files=changed_files(store.git(target), recorded.before, after) if after != recorded.before else (),
        record=record,
        is_running=not run.has_ended,
        notes=tuple(notes),
    )


def _patch_of(project: paths.Project, run: RunSnapshot) -> bytes:
    """Return the patch file of an ended run; empty without one."""
    return files.content(os.path.join(project.run_dir(run.run_id), paths.CHANGES_PATCH)) if run.has_ended else b""


def _of_patch(run: RunSnapshot, directory: str, store: Store, target: Repository, patch: bytes) -> Source:
    """Create trees from a patch, if the repository has its starting files: the records beside it are gone, or on
    another machine.
    """
    words = words_of(run)
    with store.scratch(target) as scratch:
        began = f"{scratch.index}.began"
        try:
            if target.head:  # for files of which only the mode has changed
                scratch.run("read-tree", target.head)
            scratch.run("apply", f"--build-fake-ancestor={began}", input=patch)
            files.rename(began, scratch.index)
            before = os.fsdecode(scratch.run("write-tree")).strip()
            scratch.run("apply", "--cached", "--whitespace=nowarn", input=patch)
            after = os.fsdecode(scratch.run("write-tree")).strip()
        except GitError as error:
            what = f"only the patch of {words} is left, and this repository lacks its starting files"
            hint = f"run this in a repository that has them: subdeck diff {run.meta.short_id} | git apply --reject"
            raise SubdeckError(what, where=one_line(target.root), hint=hint) from error
        finally:
            files.remove(began)
    return Source(
        run_id=run.run_id,
        words=words,
        directory=directory,
        root=target.root,
        before=before,
        after=after,
        files=changed_files(store.git(target), before, after),
        notes=("the recorded changes no longer exist: using its patch", *_notes_on_others(run)),
    )


def _notes_on_others(run: RunSnapshot) -> list[str]:
    shared = run.changes.shared if run.changes else ""
    return [f"other runs changed files in that directory: {one_line(shared, 200)}"] if shared else []


def _left_out(skipped: tuple[Skipped, ...]) -> list[str]:
    """Name the files of a worktree that cannot be applied, as no tree has them."""
    return [f"{one_line(file.path, 200)} is not included: {one_line(file.why, 120)}" for file in skipped[:5]]


def bring(
    origin: Store,
    repository: Repository,
    store: Store,
    target: Repository,
    trees: tuple[str, ...] | list[str],
    *,
    base: str = "",
) -> None:
    """Copy trees, with their objects that only `origin` has, to another store.

    Raises GitError and OSError.
    """
    revisions = "".join(f"{tree}\n" for tree in (*trees, *([f"^{base}"] if base else [])))
    packed = origin.git(repository).run(
        "pack-objects", "--revs", "--stdout", "--local", "--quiet", input=revisions.encode()
    )
    unpack(store.git(target), packed)


def unpack(git: Git, packed: bytes) -> None:
    git.run("unpack-objects", "-q", input=packed)


def branch_tip(repository: Repository, branch: str) -> str:
    """Return the commit of a branch; empty without one. Raises GitError."""
    answer = repository.git.ask(
        "rev-parse", "--verify", "--quiet", "--end-of-options", f"refs/heads/{branch}^{{commit}}"
    )
    return os.fsdecode(answer.output).strip() if not answer.code else ""


def tidy(directory: str) -> None:
    """Remove data that was needed only for viewing."""
    Store(os.path.join(directory, SEEN)).remove()


def branch_of(project: paths.Project, run: RunSnapshot) -> tuple[str, WorkRecord, Repository]:
    """Return the directory of a run's work, the record of its worktree, and that worktree, with the branch checked out.

    For a run on another machine it is the working tree of the launch. Raises SubdeckError without one.
    """
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
    check_checked_out(made, record.branch)
    return directory, record, made


def check_checked_out(made: Repository, branch: str) -> None:
    """Raise SubdeckError if another branch is checked out in a worktree."""
    if made.branch != branch:
        now = one_line(made.branch, 80) if made.branch else "no branch"
        what = f"its worktree has {now} checked out, not {one_line(branch, 80)}"
        raise SubdeckError(
            what, where=made.root, hint=one_line(shell_words(["git", "-C", made.root, "switch", branch]))
        )


def message_of(project: paths.Project, run: RunSnapshot) -> str:
    """Propose a commit message: the first line of the answer, or of the task, and the rest of its paragraph below."""
    result = read_result(project.run_dir(run.run_id))
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


# --- the difference between two runs ---------------------------------------------------------------------------------


class Difference(Struct, frozen=True, kw_only=True):
    """The difference from one run's final files to another's."""

    run: str
    other: str
    """Names of the two runs: `reviewer 4ae0bd`."""
    changes: Changes
    patch: bytes
    """As git writes it."""
    notes: tuple[str, ...] = ()
    """Notes for a person, clauses."""


def side_of(project: paths.Project, run: RunSnapshot, changes: Changes | None) -> Side:
    """Return a run with its changes and its answer."""
    result = read_result(project.run_dir(run.run_id)) if run.has_ended else None
    return Side(run=run, changes=changes, answer=((result and result.final_text) or ""))


def difference(project: paths.Project, run: RunSnapshot, other: RunSnapshot) -> Difference:
    """Compare the final or current files of two runs. Takes as long as git.

    Raises OSError, and SubdeckError if the files of one are unknown, or if they worked in different repositories.
    """
    for one in (run, other):
        if one.is_left_alone:
            raise SubdeckError(f"{words_of(one)} is not compared: the run is not trusted", where=one.run_id)
    if run.run_id == other.run_id:
        raise UsageError("cannot compare a run with itself", where=run.run_id)
    target = usable(root_of(project, run))
    directory = os.path.join(paths.works_dir(project), f".compared-{os.getpid()}-{os.urandom(3).hex()}")
    store = Store(directory)
    try:
        sources = [source_of(project, one, store, target) for one in (run, other)]
        git = store.git(target)
        first, second = sources
        notes = [f"{source.words} is still running" for source in sources if source.is_running]
        notes += [f"{source.words}: {note}" for source in sources for note in source.notes]
        if len(set(git.trees(first.before, second.before))) > 1:
            notes.append("they started from different files, which are part of the difference")
        named = changed_files(git, first.after, second.after)
        patch = io.BytesIO()
        kept = write_patch(git, first.after, second.after, patch, MOST_PATCH)
        if not kept.is_whole:
            notes.append("the patch is too long to show in full")
        for source in sources:
            tidy(source.directory)
        return Difference(
            run=first.words,
            other=second.words,
            changes=summed(named, second.after),
            patch=patch.getvalue(),
            notes=tuple(notes),
        )
    finally:
        files.remove_tree(directory)
