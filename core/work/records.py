"""Records of a run's work, outside of any checkout: its worktree, the trees before and after, what it began with.

The records in the directory of a run lie within reach of its child, and are for showing; what is done to a repository
goes by these alone. They lie in a directory for each run, the directory of its work.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import TypeVar

import msgspec
from msgspec import Struct, structs

from .. import paths
from ..git.reading_rules import Reading
from ..run.kinds import OpenEnum
from ..system import files
from ..text.decoding import UNDECODABLE, decode

_WORK_FILE = "work.json"
_RECORDED_FILE = "recorded.json"
_MAKING_FILE = "making.json"
AWAY_FILE = "away.json"
LOCK = "lock"
"""Held shared by whoever works in the worktree; beside it, too."""
TREE = paths.WORKTREE
"""The worktree itself, beside the record."""
_STORE = "store"
"""What git needs to know the recorded trees, beside the record: `Store` has it."""
_SETUP_S = 600.0

R = TypeVar("R", bound=Struct)


def _read(directory: str, name: str, type_: type[R]) -> R | None:
    """Read a record of a run's work; None where there is none, or one that cannot be used."""
    try:
        return decode(files.read(os.path.join(directory, name)), type_)
    except (OSError, *UNDECODABLE):
        return None


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
    files.write_whole(os.path.join(directory, _WORK_FILE), content, durable=True)


def read_record(directory: str) -> WorkRecord | None:
    """Read the record of a run's worktree; None where there is none, or one that cannot be used."""
    record = _read(directory, _WORK_FILE, WorkRecord)
    return record if record and record.run_id == os.path.basename(directory) else None


class TakenBefore(Struct, frozen=True, rename="camel", omit_defaults=True):
    """What stood in the record of a worktree before."""

    directory: str
    taken: Taken | None = None
    taken_tree: str = ""

    @classmethod
    def of(cls, directory: str, record: WorkRecord) -> TakenBefore:
        return cls(directory, record.taken, record.taken_tree)

    def restore(self) -> None:
        """Write it back. Raises OSError."""
        if (record := read_record(self.directory)) is not None:
            write_record(self.directory, structs.replace(record, taken=self.taken, taken_tree=self.taken_tree))


def mark_taken(directory: str, record: WorkRecord, taken: Taken, tree: str) -> None:
    """Write what became of all that a run changed, `tree` being what it was. Raises OSError."""
    write_record(directory, structs.replace(record, taken=taken, taken_tree=tree))


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


# --- the trees before and after --------------------------------------------------------------------------------------


class Large(Struct, frozen=True, rename="camel", omit_defaults=True):
    """A file that is in no tree of ours, as it was."""

    size: int | None = None
    modified_ns: int | None = None
    why: str = ""
    status_ns: int | None = None
    """When the file was last changed, by the time that nobody can set."""


class Recorded(Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    run_id: str
    root: str
    """Of the working tree, absolute."""
    common_dir: str
    """Of the repository, absolute: what all its worktrees share."""
    before: str
    """The id of the tree before, or of a commit that has it; beside this is the store of what the repository lacks."""
    prefix: str = ""
    """Where in the working tree the run works, as `services/api`; empty for its root."""
    head: str = ""
    """The commit that was checked out before; empty where there was none."""
    branch: str = ""
    """Checked out before; empty where none was."""
    after: str = ""
    """The id of the tree afterwards; empty as long as the run has not ended, and where it was not recorded."""
    left_out: dict[str, Large] = {}
    """Files that were too large, or could not be read, before."""
    others: tuple[str, ...] = ()
    """The ids of the runs that were at work in the same working tree then."""
    earlier: tuple[str, ...] = ()
    """The ids of those that had been, and are not any more."""
    git_dir: str = ""
    """Of the working tree, absolute; empty if an earlier subdeck recorded this."""
    reading: Reading | None = None
    """How its files were read before, and are read ever since."""


def write_recorded(directory: str, recorded: Recorded) -> None:
    """Write it into the directory of a run's work, made where it is missing. Raises OSError."""
    files.make_private_directory(directory)
    files.write_whole(os.path.join(directory, _RECORDED_FILE), msgspec.json.encode(recorded))


def read_recorded(directory: str) -> Recorded | None:
    """Read it; None where nothing was recorded, or nothing that can be used."""
    recorded = _read(directory, _RECORDED_FILE, Recorded)
    return recorded if recorded and recorded.run_id == os.path.basename(directory) else None


def store_of(directory: str) -> str:
    """Return where the trees of a run are, below the directory of its work."""
    return os.path.join(directory, _STORE)


def index_of(directory: str) -> str:
    """Return where the index of its worktree is as it was before, which its child cannot have written."""
    return os.path.join(directory, "index")


# --- what it begins with ---------------------------------------------------------------------------------------------


class Making(Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """What the settings say of worktrees, as it was at the launch; beside the record of the run's work."""

    copy: tuple[str, ...] = ()
    """Ignored files and directories that are copied."""
    link: tuple[str, ...] = ()
    """Those that are linked: what a child writes there is written in the project."""
    setup: tuple[str, ...] = ()
    """A command that is run in it before the child is started."""
    setup_timeout: float = _SETUP_S


def write_making(directory: str, making: Making) -> None:
    """Write it into the directory of a run's work. Raises OSError."""
    files.write_whole(os.path.join(directory, _MAKING_FILE), msgspec.json.encode(making))


def read_making(directory: str) -> Making:
    """Read it; without one nothing is copied or run."""
    return _read(directory, _MAKING_FILE, Making) or Making()


class Away(Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """What a run on another machine begins with."""

    run_id: str
    project: str
    root: str
    """Of the working tree that it was launched in."""
    common_dir: str
    repository: str
    """What hosts call the repository: 16 hex digits."""
    tree: str
    carrier: str
    """The commit of the tree that travels."""
    base: str
    """The commit of the tree that the run's branch begins with, on `head`; or that one, where all was committed."""
    head: str
    branch: str
    """What its branch is to be called."""
    made_at: str
    prefix: str = ""
    """Where in the repository the run works."""
    sparse: tuple[str, ...] = ()
    """The directories that travel are all where none is named."""


def write_away(directory: str, away: Away) -> None:
    """Write it into the directory of a run's work, made where it is missing. Raises OSError."""
    files.make_private_directory(directory)
    files.write_whole(os.path.join(directory, AWAY_FILE), msgspec.json.encode(away), durable=True)


def read_away(directory: str) -> Away | None:
    """Read what a run began with, from the directory of its work; None for one that takes no files along."""
    away = _read(directory, AWAY_FILE, Away)
    return away if away and away.run_id == os.path.basename(directory) else None
