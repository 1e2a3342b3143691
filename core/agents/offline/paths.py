"""How the offline agent reads a path: as it is written, below its directory alone."""

from __future__ import annotations

from ...permissions.path_readings import Reading, read_as

SETTINGS = ()


def read_path(_tool: str, path: str, directory: str) -> Reading:
    return read_as([path], directory)
