"""What was recorded of a run's working tree, outside of any checkout: what is done with its changes goes by this."""

from __future__ import annotations

import os

import msgspec
from msgspec import Struct

from ..git.reading_rules import Reading
from ..system import files
from ..text.decoding import UNDECODABLE, decode

FILE = "recorded.json"
STORE = "store"
"""What git needs to know the trees, beside the record: `Store` has it."""


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
    files.write_whole(os.path.join(directory, FILE), msgspec.json.encode(recorded))


def read_recorded(directory: str) -> Recorded | None:
    """Read it; None where nothing was recorded, or nothing that can be used."""
    try:
        recorded = decode(files.read(os.path.join(directory, FILE)), Recorded)
    except (OSError, *UNDECODABLE):
        return None
    return recorded if recorded.run_id == os.path.basename(directory) else None


def store_of(directory: str) -> str:
    """Return where the trees of a run are, below the directory of its work."""
    return os.path.join(directory, STORE)


def index_of(directory: str) -> str:
    """Return where the index of its worktree is as it was before, which its child cannot have written."""
    return os.path.join(directory, "index")
