"""The starting state of a launch's worktrees: checked before anything exists, and saved once for all copies."""

from __future__ import annotations

import os
from collections.abc import Iterable

from msgspec import Struct
from msgspec.structs import replace

from .. import paths
from ..config.settings import Settings
from ..errors import LaunchError, SubdeckError, UsageError
from ..git import worktrees as in_git
from ..git.merges import commit
from ..git.program import GitError
from ..git.repository import Repository, find
from ..git.snapshot import Snapshot, Store
from ..run.changes import WorktreePlan
from ..run.describe import size_text
from ..run.model import RunMeta, WorktreeFrom
from ..system import files
from ..text.plain import one_line
from ..text.shell import shell_word
from .records import TREE, Making, WorkRecord, read_record, tree_of, write_making, write_record

WHERE = "worktree"
"""The subject of errors about it."""
BRANCHES = "subdeck"
MOST_TOLD = 3
"""Files to name of those not copied."""
_WITHOUT = "launch it without a worktree, or in another directory"


def planned(directory: str, begins: WorktreeFrom) -> WorktreePlan:
    """Return what is known before the launch about a directory's worktree. Raises UsageError if there can be none."""
    repository = _repository(directory)
    if begins is WorktreeFrom.HEAD and repository.head is None:
        hint = 'commit something, or use your current files ("worktree: files")'
        raise UsageError("cannot create a worktree: the repository has no commit yet", where=WHERE, hint=hint)
    return WorktreePlan(
        "",
        repository.root,
        commit=(repository.head or "") if begins is WorktreeFrom.HEAD else "",
        prefix=repository.prefix,
        from_head=begins is WorktreeFrom.HEAD,
    )


def _repository(directory: str) -> Repository:
    try:
        repository = find(directory)
    except SubdeckError as error:
        raise UsageError(error.what, where=WHERE, hint=error.hint, code=error.code) from error
    if repository is None:
        what = f"cannot create a worktree in {one_line(directory, 200)}: not a git repository"
        raise UsageError(
            what, where=WHERE, hint="launch it without a worktree, or run git init", code="git.not_a_repository"
        )
    if repository.trouble:
        what = f"cannot create a worktree of {one_line(directory, 200)}: {repository.trouble}"
        raise UsageError(what, where=WHERE, hint=_WITHOUT)
    state = paths.state_file("work")
    if f"{os.path.realpath(state)}/".startswith(f"{repository.root}/.git/"):
        raise UsageError(
            "cannot create a worktree: it would be inside the repository", where=state, hint="set XDG_STATE_HOME"
        )
    return repository


def uncommitted(directory: str) -> int:
    """Count a working tree's uncommitted files, including untracked ones but not ignored ones. Raises SubdeckError."""
    repository = _repository(directory)
    listed = repository.git.lines("status", "--porcelain", "-z", "--no-renames", "--untracked-files=all")
    return len(listed)


def host_of(project: paths.Project, directory: str) -> WorktreePlan | None:
    """Return the worktree of an earlier run that a directory is in; None if it is in none. Raises UsageError if it is
    no longer usable.
    """
    works = os.path.realpath(paths.works_dir(project))
    here = os.path.realpath(directory)
    if not here.startswith(f"{works}/"):
        return None
    run_id, _, inside = here[len(works) + 1 :].partition("/")
    tree, _, prefix = inside.partition("/")
    record = read_record(paths.work_dir(project, run_id)) if paths.is_run_id(run_id) and tree == TREE else None
    if record is None or record.host:
        return None
    if record.removed_at or not os.path.isdir(directory):
        raise UsageError(
            f"the worktree of run {run_id[-6:]} no longer exists",
            where="cwd",
            hint=f"start a new run there with subdeck run … --cwd {one_line(shell_word(record.root))}",
        )
    return WorktreePlan(record.branch, record.root, record.base, prefix=prefix, host=run_id)


def directory_of(project: paths.Project, run_id: str, plan: WorktreePlan) -> str:
    """Return the directory of a run with a worktree."""
    tree = tree_of(paths.work_dir(project, plan.host or run_id))
    return os.path.join(tree, plan.prefix) if plan.prefix else tree


class _Base(Struct, frozen=True):
    repository: Repository
    commit: str
    uncommitted: int = 0
    notes: tuple[str, ...] = ()
    """What was not copied, in sentences."""


def begin(project: paths.Project, metas: Iterable[RunMeta], settings: Settings) -> dict[str, RunMeta]:
    """Save the starting state of their worktrees, and create their branches; return the runs with that, by id.

    A record is written first, so that each branch shows its owner. On SubdeckError only files remain that
    `worktree.take_back` removes.
    """
    bases: dict[tuple[str, bool], _Base] = {}
    begun: dict[str, RunMeta] = {}
    branches: dict[str, tuple[Repository, dict[str, str]]] = {}
    try:
        for meta in metas:
            plan = meta.worktree
            if plan is None:
                continue
            if plan.host:
                _begin_in(project, meta, plan)
                begun[meta.run_id] = meta
                continue
            key = (plan.root, plan.from_head)
            if key not in bases:
                bases[key] = _taken(project, plan)
            base = bases[key]
            plan = replace(
                plan,
                branch=_branch(meta),
                commit=base.commit,
                uncommitted=base.uncommitted,
            )
            _write(project, meta, plan, base.repository, settings)
            branches.setdefault(plan.root, (base.repository, {}))[1][plan.branch] = plan.commit
            begun[meta.run_id] = replace(meta, worktree=plan, warnings=(*meta.warnings, *base.notes))
        for repository, commits in branches.values():
            in_git.create_branches(repository, commits)
    except GitError as error:
        raise LaunchError(f"cannot create a worktree: {error.what}", where=error.where, hint=error.hint) from error
    except OSError as error:
        what = f"cannot prepare the worktree: {error.strerror or error}"
        raise LaunchError(what, where=str(error.filename or ""), hint="check disk space and permissions") from error
    return begun


def _branch(meta: RunMeta) -> str:
    return f"{BRANCHES}/{in_git.fit(meta.preset or 'adhoc')}-{meta.short_id}"


def _taken(project: paths.Project, plan: WorktreePlan) -> _Base:
    """Save the current files among the repository's own objects, or use the checked-out commit."""
    repository = _repository(plan.root)
    submodules = _submodules(repository)
    if plan.from_head:
        return _Base(repository, plan.commit, notes=submodules)
    works = paths.works_dir(project)
    store = Store(os.path.join(works, f".base-{paths.project_key(repository.root)}"), aside=(paths.state_file("work"),))
    snapshot = store.take(repository, into_repository=True)
    notes = (*_notes_on_skipped(snapshot), *submodules)
    head = snapshot.head or repository.head or ""
    if head:
        changed = repository.git.lines("diff-tree", "-r", "-z", "--name-only", "--no-renames", head, snapshot.tree)
        if not changed:
            return _Base(repository, head, notes=notes)
        count, parents = len(changed), [head]
    else:
        count, parents = len(repository.git.lines("ls-tree", "-r", "-z", "--name-only", snapshot.tree)), []
    message = "Snapshot of the files\n\nTaken by subdeck at the launch of runs in worktrees."
    return _Base(repository, commit(repository.git, snapshot.tree, parents, message), count, notes)


def _notes_on_skipped(snapshot: Snapshot) -> tuple[str, ...]:
    """Describe the files that were not copied."""
    skipped = snapshot.skipped
    notes = [
        f"{file.path} is not in the worktree: {file.why}{f' ({size_text(file.size)})' if file.size else ''}"
        for file in skipped[:MOST_TOLD]
    ]
    if len(skipped) > MOST_TOLD:
        notes.append(f"{len(skipped) - MOST_TOLD} more files are not in the worktree")
    return (*notes, *filter(None, (snapshot.note,)))


def _submodules(repository: Repository) -> tuple[str, ...]:
    if not os.path.lexists(os.path.join(repository.root, ".gitmodules")):
        return ()
    return ("its submodules are empty in the worktree (git submodule update fills them)",)


def _write(
    project: paths.Project, meta: RunMeta, plan: WorktreePlan, repository: Repository, settings: Settings
) -> None:
    directory = paths.work_dir(project, meta.run_id)
    files.make_private_directory(directory)
    making = Making(
        copy=settings.worktree_copy,
        link=settings.worktree_link,
        setup=settings.worktree_setup,
        setup_timeout=settings.worktree_setup_timeout,
    )
    write_making(directory, making)
    record = WorkRecord(
        run_id=meta.run_id,
        project=project.root,
        root=repository.root,
        common_dir=repository.common_dir,
        branch=plan.branch,
        base=plan.commit,
        made_at=meta.created_at,
        head=repository.head or "",
        prefix=plan.prefix,
    )
    write_record(directory, record)


def _begin_in(project: paths.Project, meta: RunMeta, plan: WorktreePlan) -> None:
    """Record that a run continues in another run's worktree."""
    host = read_record(paths.work_dir(project, plan.host))
    if host is None or host.removed_at:
        raise LaunchError(f"the worktree of run {plan.host[-6:]} no longer exists", where=meta.cwd)
    record = replace(
        host, run_id=meta.run_id, host=plan.host, prefix=plan.prefix, made_at=meta.created_at, taken=None, taken_tree=""
    )
    write_record(paths.work_dir(project, meta.run_id), record)
