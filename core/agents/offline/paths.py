"""How the offline agent resolves paths: as written, and only below its directory."""

from __future__ import annotations

from ...permissions.path_readings import Reading, read_as

SETTINGS = ()


def read_path(_tool: str, path: str, directory: str) -> Reading:
    return read_as([path], directory)
