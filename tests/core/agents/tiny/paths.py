"""How the tools of the tiny agent would read a path: as it is written."""

from __future__ import annotations

from subdeck.core.permissions.path_readings import Reading, read_as

SETTINGS = ()


def read_path(_tool: str, path: str, directory: str) -> Reading:
    return read_as([path], directory)
