"""Read a run's changes for their screen, in a thread."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from ...core.git.patch import read_patch
from ...core.run.changes import EDITED, Changes, ChangesSource
from ...core.text.plain import one_line
from ._document import Document

if TYPE_CHECKING:
    from ...core.run.snapshot import RunSnapshot
    from ..engine_api import EngineApi


class ChangesRead(Struct, frozen=True):
    content: bytes
    """The patch, as git writes it."""
    document: Document
    changes: Changes | None
    """More facts: files without a patch, others that may have written."""

    @property
    def words(self) -> str:
        """`3 files +41 −12`"""
        patch = self.document.patch
        files = len(patch.files)
        if not files:
            return self.changes.words if self.changes else ""
        return f"{files} file{'' if files == 1 else 's'} +{patch.added} −{patch.removed}"

    @property
    def remarks(self) -> tuple[str, ...]:
        """Sentences for the user: others that wrote there, unknown or omitted parts."""
        changes = self.changes
        if changes is None:
            return ()
        noted = [f"{one_line(file.path, 200)}: {one_line(file.note, 200)}" for file in changes.named if file.note]
        edited = f"The worktree was {EDITED}. Its current state is shown." if changes.edited else ""
        return tuple(one_line(each, 400) for each in (edited, changes.shared, *changes.remarks, *noted) if each)

    @property
    def nothing(self) -> tuple[str, ...]:
        """The text shown instead of a patch."""
        if self.changes is None:
            return ("This run's changes are unknown.", "It never started, or an older subdeck recorded it.")
        if not self.changes.files:
            return ("The worktree has no changes now." if self.changes.edited else "No changes.",)
        if self.changes.source is ChangesSource.TOOLS:
            head = "Not in a readable git repository. The run's tools wrote these files:"
            return (head, *(_file_line(file.path, file.added, file.removed) for file in self.changes.named))
        return ("No patch was saved. Changed files:", *(one_line(file.path, 300) for file in self.changes.named))


def read_changes(engine: EngineApi, run: RunSnapshot) -> ChangesRead:
    """Read a run's changes, so far or final. Raises SubdeckError and OSError."""
    content = engine.work.patch(run)  # first, so that the figures match it
    changes = engine.work.changes(run)
    return ChangesRead(content, Document(read_patch(content)), changes)


def read_difference(engine: EngineApi, run: RunSnapshot, other: RunSnapshot) -> ChangesRead:
    """Read the differences between two runs' files from git. Raises SubdeckError and OSError."""
    difference = engine.work.difference(run, other)
    notes = "; ".join(filter(None, (difference.changes.note, *difference.notes)))
    return ChangesRead(
        difference.patch, Document(read_patch(difference.patch)), replace(difference.changes, note=notes)
    )


def _file_line(path: str, added: int | None, removed: int | None) -> str:
    counts = f"  +{added or 0} −{removed or 0}" if added is not None or removed is not None else ""
    return f"  {one_line(path, 300)}{counts}"
