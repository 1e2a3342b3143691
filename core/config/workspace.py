"""Where a launcher works: a project, a directory in or below it, and the effective settings."""

from __future__ import annotations

import os

from msgspec import Struct

from ..paths import Project, has_settings, user_settings_file
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


def settings_stamp(project: Project) -> tuple[tuple[int, ...], ...]:
    """Return a value that differs once a settings file was changed, created or removed. Costs two stats."""
    return tuple(map(_stamp, (user_settings_file(), project.settings_file)))


def _stamp(path: str) -> tuple[int, ...]:
    try:
        status = os.stat(path)
    except OSError:
        return ()
    return status.st_mtime_ns, status.st_size, status.st_dev, status.st_ino
