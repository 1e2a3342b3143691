"""Mending the worktree of a run: one that git has forgotten, or whose project was moved."""

from __future__ import annotations

import os

from msgspec import structs

from .. import paths
from ..errors import SubdeckError
from ..git.program import Git, GitError
from ..run import artifacts
from ..system import files
from ..text.plain import one_line
from ._standing import admin_of, leads_to
from .record import tree_of, write_record
from .worktrees import MENDED, RunState, Worktree, describe, forget, state_of


def mend(project: paths.Project, worktree: Worktree) -> Worktree:
    """Make a worktree known to git again, where it is; one of a run of this project that was elsewhere comes here.

    Nothing in it is changed but the file that leads to its repository. Raises SubdeckError where it cannot be done.
    """
    try:
        worktree = _moved(project, worktree)
        _known(worktree)
    except (GitError, OSError) as error:
        why = error.what if isinstance(error, GitError) else error.strerror or str(error)
        raise SubdeckError(f"cannot repair it: {one_line(why, 200)}", where=worktree.path) from error
    return describe(worktree.directory, worktree.record) or worktree


def _moved(project: paths.Project, worktree: Worktree) -> Worktree:
    """Take over the worktree of a run that came along as its project was moved here."""
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
    own = Git(project.root).run("rev-parse", "--path-format=absolute", "--git-common-dir", "--show-toplevel")
    common_dir, root = os.fsdecode(own.rstrip(b"\n")).split("\n", 1)
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
    return Worktree(at, moved, worktree.run, worktree.standing, worktree.size)


def _known(worktree: Worktree) -> None:
    """Have git know a worktree that it has forgotten, with the branch, or else the commit, that was checked out."""
    record, tree = worktree.record, worktree.path
    admin = admin_of(record.common_dir, tree)
    is_known = admin and leads_to(tree, admin) and os.path.exists(os.path.join(admin, "index"))
    if is_known or not os.path.isdir(tree):
        return
    git = Git(record.common_dir)
    if not admin:
        beside = os.path.join(worktree.directory, MENDED)
        forget(record, beside)
        is_there = git.ask("rev-parse", "--verify", "--quiet", f"refs/heads/{record.branch}").code == 0
        commit = (record.branch,) if is_there else ("--detach", record.base)
        git.run("worktree", "add", "--no-checkout", "--force", beside, *commit)
        Git(beside).run("read-tree", "HEAD")  # one without an index is taken for one that was never made to its end
        files.rename(os.path.join(beside, ".git"), os.path.join(tree, ".git"))
        files.remove_tree(beside)
    else:
        files.write_whole(os.path.join(tree, ".git"), os.fsencode(f"gitdir: {admin}\n"), mode=0o644)
    git.run("worktree", "repair", tree)
    if not os.path.exists(os.path.join(admin_of(record.common_dir, tree), "index")):
        Git(tree).run("read-tree", "HEAD")
