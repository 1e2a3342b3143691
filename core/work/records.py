"""Records of a run's work, outside any checkout: its worktree, the trees before and after, its starting state.

The agent can change the records in the run's directory, so those are only for display. Operations on a repository use
only these. Each run has its own directory for them, the directory of its work.
"""

from __future__ import annotations

import os
from collections.abc import Iterator

import msgspec
from msgspec import Struct, structs

from .. import paths
from ..git.reading_rules import Reading
from ..run.enumerations import OpenEnum
from ..system import files
from ..system.record import read_record as read_json

_WORK_FILE = "work.json"
_RECORDED_FILE = "recorded.json"
_MAKING_FILE = "making.json"
AWAY_FILE = "away.json"
LOCK = "lock"
"""Locked shared by each user of the worktree; also beside it."""
TREE = paths.WORKTREE
"""The worktree itself, beside the record."""
_STORE = "store"
"""git data for the recorded trees, beside the record: see `Store`."""
_SETUP_S = 600.0


class Taken(OpenEnum):
    """What happened to all changes of a run."""

    APPLIED = "applied"
    """Written into the working tree."""
    MERGED = "merged"
    PICKED = "picked"
    KEPT = "kept"
    """The branch stays, under a name from the user."""
    DISCARDED = "discarded"


class WorkRecord(Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    run_id: str
    project: str
    """Its root."""
    root: str
    """Root of the working tree that the worktree was made from."""
    common_dir: str
    """The repository's absolute path, shared by all its worktrees."""
    branch: str
    """Short, such as `subdeck/reviewer-4ae0bd`."""
    base: str
    """First commit of the branch; it may have files that were uncommitted."""
    made_at: str
    head: str = ""
    """The commit checked out in `root`; empty without one."""
    prefix: str = ""
    """The run's directory in the repository, such as `services/api`; empty for its root."""
    host: str = ""
    """The run whose worktree it continues in; empty if it has its own."""
    taken: Taken | None = None
    """None until all changes were applied or discarded."""
    taken_tree: str = ""
    """Id of that tree: later changes are not included."""
    away: str = ""
    """The host that it worked on. It has no local worktree, and no branch if nothing was changed."""
    removed_at: str = ""
    """When worktree and branch were removed; empty while they exist."""


def write_record(directory: str, record: WorkRecord) -> None:
    """Write the record into the directory of a run's work, created if missing. Raises OSError."""
    files.make_private_directory(directory)
    content = msgspec.json.format(msgspec.json.encode(record), indent=1)
    files.write_whole(os.path.join(directory, _WORK_FILE), content, durable=True)


def read_record(directory: str) -> WorkRecord | None:
    """Read the record of a run's worktree; None if it is missing or unusable."""
    record = read_json(os.path.join(directory, _WORK_FILE), WorkRecord)
    return record if record and record.run_id == os.path.basename(directory) else None


class TakenBefore(Struct, frozen=True, rename="camel", omit_defaults=True):
    """Earlier values in the record of a worktree."""

    directory: str
    taken: Taken | None = None
    taken_tree: str = ""

    @classmethod
    def of(cls, directory: str, record: WorkRecord) -> TakenBefore:
        return cls(directory, record.taken, record.taken_tree)

    def restore(self) -> None:
        """Restore them. Raises OSError."""
        if (record := read_record(self.directory)) is not None:
            write_record(self.directory, structs.replace(record, taken=self.taken, taken_tree=self.taken_tree))


def mark_taken(directory: str, record: WorkRecord, taken: Taken, tree: str) -> None:
    """Record what happened to a run's changes, with their `tree`. Raises OSError."""
    write_record(directory, structs.replace(record, taken=taken, taken_tree=tree))


def tree_of(directory: str) -> str:
    """Return the worktree's path, even if missing."""
    return os.path.join(directory, TREE)


def has_worktree(directory: str) -> bool:
    """Whether the worktree exists: an agent may have left a link to another checkout in its place."""
    tree = tree_of(directory)
    return os.path.isdir(tree) and not os.path.islink(tree)


def work_dirs(project: paths.Project) -> Iterator[str]:
    """Yield a project's directories of work, the oldest run first."""
    yield from _runs_in(paths.works_dir(project))


def all_work_dirs() -> Iterator[str]:
    """Yield the same for all this user's projects."""
    above = paths.state_file("work")
    for key in sorted(files.names(above)):
        yield from _runs_in(os.path.join(above, key))


def _runs_in(directory: str) -> Iterator[str]:
    for name in sorted(filter(paths.is_run_id, files.names(directory))):
        yield os.path.join(directory, name)


# --- the trees before and after --------------------------------------------------------------------------------------


class Large(Struct, frozen=True, rename="camel", omit_defaults=True):
    """A file that is in no stored tree, as it was."""

    size: int | None = None
    modified_ns: int | None = None
    why: str = ""
    status_ns: int | None = None
    """Last change of the file, by the time that no program can set."""


class Recorded(Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    run_id: str
    root: str
    """Absolute path of the working tree."""
    common_dir: str
    """Absolute path of the repository, shared by all its worktrees."""
    before: str
    """Id of the tree before, or of a commit with it; the store beside this has what the repository lacks."""
    prefix: str = ""
    """The run's directory in the working tree, such as `services/api`; empty for its root."""
    head: str = ""
    """The commit checked out before; empty without one."""
    branch: str = ""
    """Checked out before; empty without one."""
    after: str = ""
    """Id of the tree afterwards; empty until the run has ended, and if it was not recorded."""
    left_out: dict[str, Large] = {}
    """Files that were too large, or unreadable, before."""
    others: tuple[str, ...] = ()
    """Ids of the runs that were at work in the same working tree then."""
    earlier: tuple[str, ...] = ()
    """Ids of the runs that had been, and had left."""
    git_dir: str = ""
    """Its git directory, absolute; empty if an earlier subdeck recorded this."""
    reading: Reading | None = None
    """How its files were read before, and ever since."""


def write_recorded(directory: str, recorded: Recorded) -> None:
    """Write it into the directory of a run's work, created if missing. Raises OSError."""
    files.make_private_directory(directory)
    files.write_whole(os.path.join(directory, _RECORDED_FILE), msgspec.json.encode(recorded))


def read_recorded(directory: str) -> Recorded | None:
    """Read it; None if it is missing or unusable."""
    recorded = read_json(os.path.join(directory, _RECORDED_FILE), Recorded)
    return recorded if recorded and recorded.run_id == os.path.basename(directory) else None


def store_of(directory: str) -> str:
    """Return the path of a run's trees, below the directory of its work."""
    return os.path.join(directory, _STORE)


def index_of(directory: str) -> str:
    """Return the path of the worktree's index before the run, which its agent cannot have written."""
    return os.path.join(directory, "index")


# --- its starting state ----------------------------------------------------------------------------------------------


class Making(Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """The worktree settings at the launch; beside the record of the run's work."""

    copy: tuple[str, ...] = ()
    """Ignored files and directories to copy."""
    link: tuple[str, ...] = ()
    """The same to link: an agent's writes there go to the project."""
    setup: tuple[str, ...] = ()
    """A command to run in it before the agent starts."""
    setup_timeout: float = _SETUP_S


def write_making(directory: str, making: Making) -> None:
    """Write it into the directory of a run's work. Raises OSError."""
    files.write_whole(os.path.join(directory, _MAKING_FILE), msgspec.json.encode(making))


def read_making(directory: str) -> Making:
    """Read it; without one nothing is copied or run."""
    return read_json(os.path.join(directory, _MAKING_FILE), Making) or Making()


class Away(Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """The starting state of a run on another machine."""

    run_id: str
    project: str
    root: str
    """Working tree of the launch."""
    common_dir: str
    repository: str
    """Its name on hosts: 16 hex digits."""
    tree: str
    carrier: str
    """Commit of the tree that is sent."""
    base: str
    """The commit that the run's branch begins with, on `head`; or `head` itself, if all was committed."""
    head: str
    branch: str
    """Intended name of its branch."""
    made_at: str
    prefix: str = ""
    """The run's directory in the repository."""
    sparse: tuple[str, ...] = ()
    """The directories to send; all if empty."""


def write_away(directory: str, away: Away) -> None:
    """Write it into the directory of a run's work, created if missing. Raises OSError."""
    files.make_private_directory(directory)
    files.write_whole(os.path.join(directory, AWAY_FILE), msgspec.json.encode(away), durable=True)


def read_away(directory: str) -> Away | None:
    """Read a run's starting state from the directory of its work; None if it sends no files."""
    away = read_json(os.path.join(directory, AWAY_FILE), Away)
    return away if away and away.run_id == os.path.basename(directory) else None
