"""The ways in which a run can be looked at; pure."""

from __future__ import annotations

from enum import StrEnum

from ...core import paths


class View(StrEnum):
    READABLE = "readable"
    """The events in words."""
    RAW = "raw"
    """The events as they stand in their file."""
    STDERR = "stderr"
    """What the child wrote to its stderr."""

    @property
    def file(self) -> str:
        """The name of the file it shows."""
        return paths.STDERR if self is View.STDERR else paths.EVENTS

    @property
    def indent(self) -> int:
        """Cells in front of its lines: of the cursor, and of the time."""
        return 11 if self is View.READABLE else 2

    @property
    def counted(self) -> str:
        """What one of its lines is."""
        return "line" if self is View.STDERR else "event"
