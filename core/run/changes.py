"""What a run changed, and where it works: types that its records hold.

Annotations are evaluated here, as in `model.py`.
"""

import os
from typing import Any

from msgspec import Struct

from ..text.plain import one_line
from .kinds import ExitCode, OpenEnum, Period, Whole


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


NOT_RECORDED = "not recorded"
"""Begin the note where nothing is known."""
EDITED = "edited since the run ended"
"""For changes that are not the run's alone."""
MOST_FILES = 1_000
"""That are named in a record."""
MOST_LISTED = 5
"""Settings or ignored paths that are named in a sentence."""


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
    edited: bool = False
    """Whether this is the run's worktree as it is now, because it was edited since the run ended; never recorded."""
    tree: str = ""
    """The id of the tree afterwards; empty outside git."""
    settings: tuple[str, ...] = ()
    """Settings, hooks and lists of the repository that have changed: `core.filemode`, `info/exclude`."""
    ignored: tuple[str, ...] = ()
    """What is in none of this, as only ignore rules hide it that were not there before; a directory ends with `/`."""
    named: tuple[ChangedFile, ...] = ()
    """The first `MOST_FILES` of them, by path."""

    @property
    def figure(self) -> str:
        """`+12 −3`, `2 files` where no lines are counted, `–` for none; `shared` where others may have changed some of
        them, `settings` if only the settings of the repository were changed, `?` where nothing is known.
        """
        if not self.files:
            return "settings" if self.settings else "–" if self.is_nothing else "?"
        if self.shared:
            return "shared"
        return self._lines or self._count

    @property
    def words(self) -> str:
        """`3 files +41 −12`, `nothing`, `shared directory: 3 files +41 −12 (also at work there: scout 4ae0bd)`; then
        that the worktree was edited since, and what is not known.
        """
        said = self.sum if self.files else "nothing" if self.is_nothing else ""
        if self.shared and self.files:
            said = f"shared directory: {said} ({self.shared})"
        return "; ".join(filter(None, (said, EDITED if self.edited else "", *self.remarks)))

    @property
    def remarks(self) -> tuple[str, ...]:
        """What a person should know beside the files, sentences without their full stops."""
        settings = f"repository settings changed during the run: {_listed(self.settings)}" if self.settings else ""
        ignored = f"hidden by new ignore rules: {_listed(self.ignored)}" if self.ignored else ""
        return tuple(filter(None, (settings, ignored, self.note)))

    @property
    def is_nothing(self) -> bool:
        """Whether it is known that there are no changes."""
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


def changes_fields(changes: Changes | None) -> dict[str, Any] | None:
    """Return what programs are told of changes, each field also where there is nothing to say."""
    if changes is None:
        return None
    return {
        "files": changes.files,
        "added": changes.added,
        "removed": changes.removed,
        "source": changes.source.value,
        "shared": changes.shared,
        "note": changes.note,
        "settings": list(changes.settings),
        "ignored": list(changes.ignored),
        "edited": changes.edited,
        "tree": changes.tree,
        "named": [
            {
                "path": file.path,
                "status": file.status.value,
                "added": file.added,
                "removed": file.removed,
                "oldPath": file.old_path or None,
                "note": file.note,
            }
            for file in changes.named
        ],
    }


class WorktreePlan(Struct, frozen=True, rename="camel", omit_defaults=True):
    """The worktree of a run, as decided at launch; to be shown: what is acted on is kept outside the checkout."""

    branch: str
    root: str
    """Of the working tree that it was made from."""
    commit: str = ""
    """What it begins with."""
    uncommitted: Whole = 0
    """Files that are not committed there and came along."""
    prefix: str = ""
    """Where in it the run works, as `services/api`; empty for its root."""
    from_head: bool = False
    """Whether what was not committed was left behind on purpose."""
    host: str = ""
    """The run whose worktree it goes on in; empty for one of its own."""

    @property
    def origin(self) -> str:
        """The directory that the run was launched in, of which the worktree has a copy."""
        return os.path.join(self.root, self.prefix) if self.prefix else self.root

    @property
    def words(self) -> str:
        """`subdeck/reviewer-4ae0bd, from the files as they were, 3 uncommitted`"""
        if self.host:
            return f"{self.branch}, that of run {self.host[-6:]}"
        count = f", {self.uncommitted:,} uncommitted" if self.uncommitted else ""
        begins = f"the commit {self.commit[:8]}" if self.from_head else f"your files at launch{count}"
        return f"{self.branch}, from {begins}"


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

    @property
    def failed(self) -> bool:
        """Whether it was run, or was to be, and did not pass; of a run that did not complete there is no verdict."""
        return not self.passed and not self.note.startswith(NOT_RUN)


NOT_RUN = "not run"
"""Begin the note where the check was never started."""


class CheckCommand(Struct, frozen=True):
    """What a check runs, as the user's settings say."""

    argv: tuple[str, ...]
    timeout: Period
    """Seconds."""
