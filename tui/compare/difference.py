"""What differs between what two runs have left, as the screen of changes shows it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec.structs import replace

from ...core.git.patch import read_patch
from ..changes.document import Document
from ..changes.reader import ChangesRead

if TYPE_CHECKING:
    from ...core.run.snapshot import RunSnapshot
    from ..engine_api import EngineApi


def read_difference(engine: EngineApi, run: RunSnapshot, other: RunSnapshot) -> ChangesRead:
    """Read what differs, with what a person should know of it; git is asked. Raises SubdeckError and OSError."""
    found = engine.work.difference(run, other)
    notes = "; ".join(filter(None, (found.changes.note, *found.notes)))
    return ChangesRead(found.patch, Document(read_patch(found.patch)), replace(found.changes, note=notes))
