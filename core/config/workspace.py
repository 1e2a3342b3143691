"""Where a launcher works: a project, a directory in or below it, and the effective settings."""

from __future__ import annotations

from msgspec import Struct

from ..paths import Project, has_settings
from .settings import Settings


class Workspace(Struct, frozen=True):
    """The context of one operation; its settings are the ones read at its beginning."""

    project: Project
    cwd: str
    """The launcher's own directory, absolute: the start of relative paths and of the search for presets."""
    settings: Settings


def load_settings(project: Project) -> Settings:
    """Read the user's and the project's current settings.

    Raises SettingsError that names file, line, key and the nearest known key.
    """
    if not has_settings(project):
        return Settings()
    from .files import merged_settings  # imports the YAML reader and the table of keys, which only a file needs

    return merged_settings(project)
