"""Where a launcher stands: a project, a directory in or below it, and the settings in force there."""

from __future__ import annotations

from msgspec import Struct

from ..paths import Project
from .settings import Settings


class Workspace(Struct, frozen=True):
    """What one operation works with from its beginning to its end; the settings are those read at its beginning."""

    project: Project
    cwd: str
    """The launcher's own, absolute: presets are looked for from there, and relative paths start there."""
    settings: Settings
