"""What a run on another machine has left, brought back: a branch of the repository that it was launched in.

The branch begins with the files as they were at the launch, and has one commit. It is checked out nowhere, and merged
by whoever wants that; files, index and HEAD stay as they are.
"""

from __future__ import annotations

import os
from typing import IO

from msgspec import Struct

from .. import paths
from ..errors import SubdeckError
from ..git.merges import commit
from ..git.packs import Intake, has_commit, result_content
from ..git.program import Git, GitError
from ..git.repository import Repository
from ..git.worktrees import branch as branch_of, create_branches
from ..run.model import RunMeta
from ..text.plain import one_line
from .away import Away, let_go, read_away
from .record import WorkRecord, read_record, write_record
from .source import usable

MOST = 1024 * 1024 * 1024
"""Bytes of a pack that is taken from a host."""
_NAMES = 9
"""How many names are tried for a branch."""


class Back(Struct, frozen=True):
    base: str
    """The commit of the files as they were."""
    branch: str = ""
    """Empty where nothing was changed."""


def unchanged(project: paths.Project, meta: RunMeta, host: str) -> Back:
    """Note that a run has come back and changed nothing. Raises SubdeckError and OSError."""
    away = _away(project, meta)
    return _noted(project, meta, away, host, "")


def bring_back(project: paths.Project, meta: RunMeta, host: str, pack: IO[bytes], tree: str, commit_id: str) -> Back:
    """Make a branch of what a host has sent; asked again, of what is there already. Raises SubdeckError and OSError.

    Nothing that came is believed: each object is looked at, and the commit has to be that of the tree on what the run
    began with.
    """
    away = _away(project, meta)
    repository = usable(away.root)
    if repository.common_dir != away.common_dir:
        raise SubdeckError("a different repository is there now", where=one_line(away.root))
    directory = paths.work_dir(project, meta.run_id)
    intake = Intake(repository.git_dir, repository.objects, os.path.join(directory, "apart"), directory=repository.root)
    try:
        intake.read(pack, MOST)
        if not has_commit(intake.git, commit_id, result_content(tree, away.carrier)):
            raise SubdeckError("the received files do not match the host's report", where=host)
        settled = Git(repository.root, settings=(("core.fsync", "all"),), patience=intake.git.patience)
        intake.keep(pack, settled)
    finally:
        intake.close()
    words = f"{one_line(meta.title, 40)} {meta.short_id}"
    name = _branch(repository, away, tree, f"Work of {words}\n\nDone on {one_line(host, 64)}.")
    return _noted(project, meta, away, host, name)


def _away(project: paths.Project, meta: RunMeta) -> Away:
    """Return what a run began with; of one that is back already what is noted of that. Raises SubdeckError."""
    away = read_away(paths.work_dir(project, meta.run_id))
    if away is None:
        raise SubdeckError("its starting files are no longer known", where=meta.run_id)
    return away


def _branch(repository: Repository, away: Away, tree: str, message: str) -> str:
    """Make the branch with its one commit; return its name. Raises GitError."""
    for name in (away.branch, *(f"{away.branch}-{number}" for number in range(2, _NAMES))):
        found = branch_of(repository, name)
        if found is None:
            new = commit(repository.git, tree, [away.base], message)
            create_branches(repository, {name: new})
            return name
        if _is_of(repository, found.commit, tree, away.base):
            return name
    raise GitError(f"the branch {away.branch} already exists", where=repository.root)


def _is_of(repository: Repository, commit_id: str, tree: str, base: str) -> bool:
    """Return whether a commit is one that was made of this work, by a relay that was killed before it said so."""
    said = os.fsdecode(repository.git.run("log", "-1", "--format=%T %P", commit_id, "--")).split()
    return said == [tree, base]


def _noted(project: paths.Project, meta: RunMeta, away: Away, host: str, name: str) -> Back:
    directory = paths.work_dir(project, meta.run_id)
    known = read_record(directory)
    if known is None or known.branch != name:
        record = WorkRecord(
            run_id=meta.run_id,
            project=project.root,
            root=away.root,
            common_dir=away.common_dir,
            branch=name,
            base=away.base,
            made_at=meta.created_at,
            head=away.head,
            prefix=away.prefix,
            away=host,
        )
        write_record(directory, record)
    return Back(away.base, name)


def settle(project: paths.Project, run_id: str) -> None:
    """Let go what a run began with, now that its result is there: nobody will ask again. Raises nothing."""
    let_go(project, run_id)
