"""What is known of a run's worktree outside of any checkout: where it was made, from what, and on which branch.

The records in the directory of a run lie within reach of its child, and are for showing; what is done to a repository
goes by these alone.
"""

from __future__ import annotations

import os
from collections.abc import Iterator

import msgspec
from msgspec import Struct

from .. import paths
from ..run.kinds import OpenEnum
from ..system import files
from ..text.decoding import UNDECODABLE, decode

FILE = "work.json"
LOCK = "lock"
"""Held shared by whoever works in the worktree; beside it, too."""
TREE = paths.WORKTREE
"""The worktree itself, beside the record."""


class Taken(OpenEnum):
    """What became of all that a run changed."""

    APPLIED = "applied"
    """Written into the working tree."""
    MERGED = "merged"
    PICKED = "picked"
    KEPT = "kept"
    """The branch stays, under a name of the operator's."""
    DISCARDED = "discarded"


class WorkRecord(Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    run_id: str
    project: str
    """Its root."""
    root: str
    """Of the working tree that the worktree was made from."""
    common_dir: str
    """Of the repository, absolute: what all its worktrees share."""
    branch: str
    """Short, as `subdeck/reviewer-4ae0bd`."""
    base: str
    """The commit that the branch began with; it may hold files that were not committed yet."""
    made_at: str
    head: str = ""
    """The commit that was checked out in `root`; empty where there was none."""
    prefix: str = ""
    """Where in the repository the run works, as `services/api`; empty for its root."""
    host: str = ""
    """The run in whose worktree it goes on; empty for one that has a worktree of its own."""
    taken: Taken | None = None
    """None as long as nothing, or not all of it, was taken over or discarded."""
    taken_tree: str = ""
    """The id of the tree that this is about: what was changed later is not taken."""
    away: str = ""
    """The host that it worked on; its worktree was never here, and its branch is empty where nothing was changed."""
    removed_at: str = ""
    """When worktree and branch were removed; empty as long as they are there."""


def write_record(directory: str, record: WorkRecord) -> None:
    """Write the record into the directory of a run's work, made where it is missing. Raises OSError."""
    files.make_private_directory(directory)
    content = msgspec.json.format(msgspec.json.encode(record), indent=1)
    files.write_whole(os.path.join(directory, FILE), content, durable=True)


def read_record(directory: str) -> WorkRecord | None:
    """Read the record of a run's work; None where there is none, or one that cannot be used."""
    try:
        record = decode(files.read(os.path.join(directory, FILE)), WorkRecord)
    except (OSError, *UNDECODABLE):
        return None
    return record if record.run_id == os.path.basename(directory) else None


def tree_of(directory: str) -> str:
    """Return where the worktree is, or would be."""
    return os.path.join(directory, TREE)


def has_worktree(directory: str) -> bool:
    """Return whether the worktree is there: an agent may have left a link to another checkout in its place."""
    tree = tree_of(directory)
    return os.path.isdir(tree) and not os.path.islink(tree)


def work_dirs(project: paths.Project) -> Iterator[str]:
    """Yield the directories of work that stand for a project, the oldest run first."""
    yield from _runs_in(paths.works_dir(project))


def all_work_dirs() -> Iterator[str]:
    """Yield those of all projects of this user."""
    above = paths.state_file("work")
    for key in sorted(files.names(above)):
        yield from _runs_in(os.path.join(above, key))


def _runs_in(directory: str) -> Iterator[str]:
    for name in sorted(filter(paths.is_run_id, files.names(directory))):
        yield os.path.join(directory, name)
