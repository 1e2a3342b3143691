"""What a run changed, and where it works: types that its records hold.

Annotations are evaluated here, as in `model.py`.
"""

from msgspec import Struct

from .kinds import ExitCode, OpenEnum, Whole


class FileStatus(OpenEnum):
    """What became of a file."""

    ADDED = "added"
    DELETED = "deleted"
    MODIFIED = "modified"
    RENAMED = "renamed"
    MODE = "mode"
    """Only its mode: whether it can be run."""
    TYPE = "type"
    """A link has become a file, or the other way round."""
    SUBMODULE = "submodule"
    """Another commit of a submodule."""


class ChangesSource(OpenEnum):
    """How it is known what a run changed."""

    GIT = "git"
    """By the trees before and after."""
    TOOLS = "tools"
    """By what its tools were called with: outside git, and without what its commands wrote."""


class ChangedFile(Struct, frozen=True, rename="camel", omit_defaults=True):
    path: str
    """From the root of the repository; outside git from the run's directory."""
    status: FileStatus
    added: Whole | None = None
    """Lines; None where they are not counted: a binary file, or one that is too large."""
    removed: Whole | None = None
    old_path: str = ""
    """Of a renamed one."""
    note: str = ""
    """Why its content is not told, in words."""


MOST_FILES = 1_000
"""That are named in a record."""


class Changes(Struct, frozen=True, rename="camel", omit_defaults=True):
    """What was changed while a run was at work; lines are counted where they can be."""

    files: Whole = 0
    added: Whole = 0
    removed: Whole = 0
    source: ChangesSource = ChangesSource.GIT
    shared: str = ""
    """Who else may have changed some of it, in words; empty where only the run can have."""
    note: str = ""
    """Why nothing, or not all, is known, a sentence; empty where all is."""
    tree: str = ""
    """The id of the tree afterwards; empty outside git."""
    named: tuple[ChangedFile, ...] = ()
    """The first `MOST_FILES` of them, by path."""


class WorktreePlan(Struct, frozen=True, rename="camel", omit_defaults=True):
    """The worktree of a run, as decided at launch; to be shown: what is acted on is kept outside the checkout."""

    branch: str
    root: str
    """Of the working tree that it was made from."""
    commit: str = ""
    """What it begins with."""
    uncommitted: Whole = 0
    """Files that are not committed there and came along."""


class CheckResult(Struct, frozen=True, rename="camel", omit_defaults=True):
    """What a check of the operator's said of what a run left."""

    name: str
    exit_code: ExitCode | None = None
    """None where it did not end by itself."""
    seconds: float = 0.0
    output: str = ""
    """Its end."""
    note: str = ""
    """Why there is no exit code, in words."""

    @property
    def passed(self) -> bool:
        return self.exit_code == 0
