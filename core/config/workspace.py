"""Where a launcher stands: a project, a directory in or below it, and the settings in force there."""

from __future__ import annotations

from msgspec import Struct

from ..paths import Project, has_settings
from .settings import Settings


class Workspace(Struct, frozen=True):
    """What one operation works with from its beginning to its end; the settings are those read at its beginning."""

    project: Project
    cwd: str
    """The launcher's own, absolute: presets are looked for from there, and relative paths start there."""
    settings: Settings


def load_settings(project: Project) -> Settings:
    """Read the settings of the user and of the project, as they are now.

    Raises SettingsError that names file, line, key and the nearest known key.
    """
    if not has_settings(project):
        return Settings()
    from .files import merged_settings  # the YAML reader and the table of keys, which only a file needs

    return merged_settings(project)
