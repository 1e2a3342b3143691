"""All worktrees of runs, even if their runs are gone; their removal and repair."""

from __future__ import annotations

import os
from collections.abc import Iterator

from msgspec import Struct, structs

from .. import paths, trust
from ..errors import SubdeckError
from ..git import worktrees as in_git
from ..git.program import Git, GitError
from ..git.repository import find
from ..project.trash import size_of
from ..run import artifacts
from ..run.enumerations import OpenEnum
from ..system import files
from ..text.plain import one_line
from . import records as records
from ._worktree_state import WorktreeState, admin_of, leads_to, look, repository_of
from .records import LOCK as LOCK, WorkRecord, read_record, tree_of, write_record

_GONE = "gone"
"""Name of a worktree while it is being removed."""
_MENDED = "mended"
"""A temporary worktree, which gives its place in the repository to one that git has forgotten."""


class RunState(OpenEnum):
    """What happened to the run of a worktree."""

    THERE = "there"
    DELETED = "deleted"
    """It is in the trash."""
    LOST = "lost"
    """The run is gone: its directory was removed, or its project."""


class Worktree(Struct, frozen=True):
    directory: str
    """Directory of the run's work."""
    record: WorkRecord
    run: RunState
    state: WorktreeState
    size: int
    """Bytes on the disk, including files beside it."""

    @property
    def run_id(self) -> str:
        return self.record.run_id

    @property
    def path(self) -> str:
        return tree_of(self.directory)


def project_of(project: paths.Project) -> paths.Project:
    """Return the project in which a run's worktree was made, which has its runs; any other project unchanged."""
    directory = os.path.dirname(project.root)
    record = read_record(directory) if project.root == tree_of(directory) else None
    if record is None:
        return project
    origin = trust.find_project(record.project)
    theirs = os.path.realpath(paths.work_dir(origin, record.run_id))  # outside it, anyone may have written a record
    return origin if theirs == directory and origin.root == record.project else project


def listed(project: paths.Project | None) -> Iterator[Worktree]:
    """Yield the worktrees made in a project, or, with None, in all projects of this user."""
    directories = records.all_work_dirs() if project is None else records.work_dirs(project)
    for directory in directories:
        record = read_record(directory)
        if record is not None and not record.host and (worktree := describe(directory, record)) is not None:
            yield worktree


def describe(directory: str, record: WorkRecord) -> Worktree | None:
    """Describe a worktree; None if it was already removed."""
    if (record.removed_at or (record.away and not record.branch)) and not _remains(directory):
        return None
    run = state_of(paths.Project(record.project), record.run_id)
    return Worktree(directory, record, run, look(directory, record), size_of(directory))


def of_run(project: paths.Project, run_id: str) -> Worktree | None:
    """Return the worktree of a run, its own or that of the run it continues; None without one."""
    directory = paths.work_dir(project, run_id)
    record = read_record(directory)
    if record is not None and record.host and paths.is_run_id(record.host):
        directory = paths.work_dir(project, record.host)
        record = read_record(directory)
    return None if record is None else describe(directory, record)


def sharing(project: paths.Project, worktree: Worktree) -> dict[str, RunState]:
    """Return the unpurged runs that have worked in a worktree: its original run, and others."""
    sharing = {worktree.run_id: worktree.run}
    for directory in records.work_dirs(project):
        record = read_record(directory)
        if record is not None and record.host == worktree.run_id:
            sharing[record.run_id] = state_of(project, record.run_id)
    return {run_id: state for run_id, state in sharing.items() if state is not RunState.LOST}


def state_of(project: paths.Project, run_id: str) -> RunState:
    if files.exists(project.run_dir(run_id)):
        return RunState.THERE
    return RunState.DELETED if files.exists(os.path.join(project.trash, run_id)) else RunState.LOST


def remove(worktree: Worktree) -> None:
    """Remove a worktree and its branch with their content; remains after a kill are removed the next time.

    Raises SubdeckError if a run works in it, or if git fails; then the rest still exists.
    """
    directory, record, state = worktree.directory, worktree.record, worktree.state
    lock = _locked(directory, record)
    try:
        if os.path.lexists(worktree.path):
            files.rename(worktree.path, os.path.join(directory, _GONE))
        if os.path.isdir(record.common_dir):
            forget(record, os.path.join(directory, _MENDED))
            forget(record, worktree.path)
            in_git.delete_branch(repository_of(record), record.branch, state.tip)
        in_git.remove_files(os.path.join(directory, _GONE))
        records.write_record(directory, structs.replace(record, removed_at=paths.now_iso()))
    except (GitError, OSError) as error:
        why = error.what if isinstance(error, GitError) else error.strerror or str(error)
        raise SubdeckError(
            f"cannot remove the worktree of {record.run_id[-6:]}: {one_line(why, 200)}",
            where=worktree.path,
            hint="subdeck worktrees shows what remains",
        ) from error
    finally:
        if lock is not None:
            os.close(lock)


def left_in_repository(project: paths.Project) -> list[str]:
    """Return worktrees of runs that a project's repository still lists, but that no longer exist."""
    repository = find(project.root)
    if repository is None or repository.trouble:
        return []
    try:
        named = [worktree.path for worktree in in_git.listed(repository)]
    except GitError:
        return []
    ours = os.path.realpath(paths.state_file("work")) + "/"
    return [path for path in named if os.path.realpath(path).startswith(ours) and not os.path.lexists(path)]


def _remains(directory: str) -> bool:
    return any(os.path.lexists(os.path.join(directory, name)) for name in (records.TREE, _GONE))


def _locked(directory: str, record: WorkRecord) -> int | None:
    """Lock a worktree for its removal. Raises SubdeckError if a run works in it."""
    try:
        lock = files.open_lock(os.path.join(directory, LOCK))
    except OSError:
        return None  # the disk is full or read-only: the next step reports it
    if files.try_lock(lock):
        return lock
    os.close(lock)
    raise SubdeckError(
        f"a run is using the worktree of {record.run_id[-6:]}", where=tree_of(directory), hint="stop it first"
    )


def forget(record: WorkRecord, path: str) -> None:
    """Remove a worktree, and its entry in the repository. Raises GitError, OSError."""
    in_git.remove_files(path)
    if admin_of(record.common_dir, path):
        in_git.remove(repository_of(record), path)


# --- repair ----------------------------------------------------------------------------------------------------------


def repair(project: paths.Project, worktree: Worktree) -> Worktree:
    """Register a worktree with git again, where it is; one that a run of this project had elsewhere is moved here.

    In the worktree only the file that leads to its repository is changed. Raises SubdeckError if that is impossible.
    """
    try:
        worktree = _moved(project, worktree)
        _register(worktree)
    except (GitError, OSError) as error:
        why = error.what if isinstance(error, GitError) else error.strerror or str(error)
        raise SubdeckError(f"cannot repair it: {one_line(why, 200)}", where=worktree.path) from error
    return describe(worktree.directory, worktree.record) or worktree


def _moved(project: paths.Project, worktree: Worktree) -> Worktree:
    """Move the worktree of a run whose project was moved here."""
    record = worktree.record
    if os.path.isdir(record.common_dir):
        return worktree
    if state_of(project, record.run_id) is RunState.LOST:
        raise SubdeckError(
            f"the repository of {record.run_id[-6:]} is no longer at {one_line(record.common_dir)}",
            where=worktree.path,
            hint="run this in the project that it was moved to",
        )
    meta = artifacts.read_meta(project.run_dir(record.run_id))
    output = Git(project.root).run("rev-parse", "--path-format=absolute", "--git-common-dir", "--show-toplevel")
    common_dir, root = os.fsdecode(output.rstrip(b"\n")).split("\n", 1)
    at = paths.work_dir(project, record.run_id)
    moved = structs.replace(record, project=project.root, root=root, common_dir=os.path.realpath(common_dir))
    if not Git(common_dir).ask("cat-file", "-e", f"{record.base}^{{commit}}").code == 0 or meta is None:
        raise SubdeckError(
            "this is a different repository", where=project.root, hint="find the repository that it was created in"
        )
    if os.path.lexists(at):
        raise SubdeckError("something else is already in its place", where=at, hint="check it in a shell")
    files.make_private_directory(os.path.dirname(at))
    write_record(worktree.directory, moved)
    files.rename(worktree.directory, at)
    Git(moved.common_dir).run("worktree", "repair", tree_of(at))
    return Worktree(at, moved, worktree.run, worktree.state, worktree.size)


def _register(worktree: Worktree) -> None:
    """Register a forgotten worktree with git, with the branch, or otherwise the commit, that was checked out."""
    record, tree = worktree.record, worktree.path
    admin = admin_of(record.common_dir, tree)
    is_known = admin and leads_to(tree, admin) and os.path.exists(os.path.join(admin, "index"))
    if is_known or not os.path.isdir(tree):
        return
    git = Git(record.common_dir)
    if not admin:
        beside = os.path.join(worktree.directory, _MENDED)
        forget(record, beside)
        is_there = git.ask("rev-parse", "--verify", "--quiet", f"refs/heads/{record.branch}").code == 0
        commit = (record.branch,) if is_there else ("--detach", record.base)
        git.run("worktree", "add", "--no-checkout", "--force", beside, *commit)
        Git(beside).run("read-tree", "HEAD")  # without an index it would count as half made
        files.rename(os.path.join(beside, ".git"), os.path.join(tree, ".git"))
        files.remove_tree(beside)
    else:
        files.write_whole(os.path.join(tree, ".git"), os.fsencode(f"gitdir: {admin}\n"), mode=0o644)
    git.run("worktree", "repair", tree)
    if not os.path.exists(os.path.join(admin_of(record.common_dir, tree), "index")):
        Git(tree).run("read-tree", "HEAD")
