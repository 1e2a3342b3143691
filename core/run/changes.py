"""A run's changes, its worktree and its check: types that its records hold.

Annotations are evaluated here, as in `model.py`.
"""

import os

from msgspec import Struct

from ..text.plain import one_line
from .enumerations import ExitCode, OpenEnum, Period, Whole


class FileStatus(OpenEnum):
    """How a file changed."""

    ADDED = "added"
    DELETED = "deleted"
    MODIFIED = "modified"
    RENAMED = "renamed"
    MODE = "mode"
    """Only its mode: whether it is executable."""
    TYPE = "type"
    """A link became a file, or the reverse."""
    SUBMODULE = "submodule"
    """Another commit of a submodule."""


class ChangesSource(OpenEnum):
    """How the changes of a run are known."""

    GIT = "git"
    """By comparing the trees before and after."""
    TOOLS = "tools"
    """From the arguments of its tool calls: outside git, and without files that its commands wrote."""


class ChangedFile(Struct, frozen=True, rename="camel", omit_defaults=True):
    path: str
    """From the root of the repository; outside git from the run's directory."""
    status: FileStatus
    added: Whole | None = None
    """Lines; None if not counted: a binary file, or one that is too large."""
    removed: Whole | None = None
    old_path: str = ""
    """Previous path of a renamed file."""
    note: str = ""
    """Why its content is not shown, in words."""


NOT_RECORDED = "not recorded"
"""Start of the note if the changes are unknown."""
EDITED = "edited since the run ended"
"""For changes that are not only the run's."""
MOST_FILES = 1_000
"""Files named in a record."""
MOST_LISTED = 5
"""Settings or ignored paths named in a sentence."""


class Changes(Struct, frozen=True, rename="camel", omit_defaults=True):
    """Changes made while a run was working; lines are counted if possible."""

    files: Whole = 0
    added: Whole = 0
    removed: Whole = 0
    source: ChangesSource = ChangesSource.GIT
    shared: str = ""
    """Who else may have made some of the changes, in words; empty if only the run can have."""
    note: str = ""
    """Why some or all changes are unknown, as a sentence; empty if all are known."""
    edited: bool = False
    """Whether these are the worktree's current changes, because it was edited after the run ended; never recorded."""
    tree: str = ""
    """Id of the tree after the run; empty outside git."""
    settings: tuple[str, ...] = ()
    """Changed settings, hooks and lists of the repository: `core.filemode`, `info/exclude`."""
    ignored: tuple[str, ...] = ()
    """Paths missing above because only new ignore rules hide them; a directory ends with `/`."""
    named: tuple[ChangedFile, ...] = ()
    """The first `MOST_FILES` files, by path."""

    @property
    def figure(self) -> str:
        """`+12 −3`, `2 files` if no lines are counted, `–` for none; `shared` if others may have changed some files,
        `settings` if only repository settings changed, `?` if unknown.
        """
        if not self.files:
            return "settings" if self.settings else "–" if self.is_nothing else "?"
        if self.shared:
            return "shared"
        return self._lines or self._count

    @property
    def words(self) -> str:
        """`3 files +41 −12`, `nothing`, `shared directory: 3 files +41 −12 (also at work there: scout 4ae0bd)`; then a
        note about later edits of the worktree, and the remarks.
        """
        summary = self.sum if self.files else "nothing" if self.is_nothing else ""
        if self.shared and self.files:
            summary = f"shared directory: {summary} ({self.shared})"
        return "; ".join(filter(None, (summary, EDITED if self.edited else "", *self.remarks)))

    @property
    def remarks(self) -> tuple[str, ...]:
        """Notes for the user besides the files, sentences without their full stops."""
        settings = f"repository settings changed during the run: {_listed(self.settings)}" if self.settings else ""
        ignored = f"hidden by new ignore rules: {_listed(self.ignored)}" if self.ignored else ""
        return tuple(filter(None, (settings, ignored, self.note)))

    @property
    def is_nothing(self) -> bool:
        """Whether there are certainly no changes."""
        return not self.files and (self.edited or not self.note)

    @property
    def brief(self) -> str:
        """`3 files +41 −12`, `files of a shared directory`"""
        return "files of a shared directory" if self.shared else self.sum

    @property
    def sum(self) -> str:
        """`3 files +41 −12`"""
        return " ".join(filter(None, (self._count, self._lines)))

    @property
    def _count(self) -> str:
        return "1 file" if self.files == 1 else f"{self.files:,} files"

    @property
    def _lines(self) -> str:
        return f"+{_short(self.added)} −{_short(self.removed)}" if self.added or self.removed else ""


def _listed(names: tuple[str, ...]) -> str:
    more = f" and {len(names) - MOST_LISTED} more" if len(names) > MOST_LISTED else ""
    return f"{', '.join(one_line(name, 100) for name in names[:MOST_LISTED])}{more}"


def _short(count: int) -> str:
    return str(count) if count < 10_000 else f"{count // 1000}k" if count < 1_000_000 else f"{count // 1_000_000}M"


class WorktreePlan(Struct, frozen=True, rename="camel", omit_defaults=True):
    """The worktree of a run, decided at launch. Only for display: the authoritative record is outside the checkout."""

    branch: str
    root: str
    """Root of the working tree that it was made from."""
    commit: str = ""
    """The commit that it starts from."""
    uncommitted: Whole = 0
    """Number of uncommitted files copied into it."""
    prefix: str = ""
    """The run's directory inside it, such as `services/api`; empty for its root."""
    from_head: bool = False
    """Whether uncommitted files were left behind on purpose."""
    host: str = ""
    """The run whose worktree it continues in; empty if it has its own."""

    @property
    def origin(self) -> str:
        """The directory that the run was launched in; the worktree has a copy of it."""
        return os.path.join(self.root, self.prefix) if self.prefix else self.root

    @property
    def words(self) -> str:
        """`subdeck/reviewer-4ae0bd, from your files at launch, 3 uncommitted`"""
        if self.host:
            return f"{self.branch}, that of run {self.host[-6:]}"
        count = f", {self.uncommitted:,} uncommitted" if self.uncommitted else ""
        begins = f"the commit {self.commit[:8]}" if self.from_head else f"your files at launch{count}"
        return f"{self.branch}, from {begins}"


class CheckResult(Struct, frozen=True, rename="camel", omit_defaults=True):
    """Result of the user's check of a run's changes."""

    name: str
    exit_code: ExitCode | None = None
    """None if it did not exit on its own."""
    seconds: float = 0.0
    output: str = ""
    """The end of its output."""
    note: str = ""
    """Why there is no exit code, in words."""

    @property
    def passed(self) -> bool:
        return self.exit_code == 0

    @property
    def failed(self) -> bool:
        """Whether it ran, or should have run, and did not pass; a run that did not complete has no verdict."""
        return not self.passed and not self.note.startswith(NOT_RUN)


NOT_RUN = "not run"
"""Start of the note if the check was never started."""


class CheckCommand(Struct, frozen=True):
    """The command of a check, from the user's settings."""

    argv: tuple[str, ...]
    timeout: Period
    """Seconds."""
