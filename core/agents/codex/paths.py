"""How Codex reads the paths of its patches, as 0.169.0 does, and what of a project it starts programs from."""

from __future__ import annotations

from ...permissions.path_readings import Reading, home_of, read_as

SETTINGS = (".codex", ".agents")


def read_path(_tool: str, path: str, directory: str) -> Reading:
    """Read a path as it is, without what is blank at its ends: a patch is lines."""
    plain = path.strip()
    forms = dict.fromkeys((path, plain, home_of(plain)))
    return read_as(forms, directory, is_certain=plain == path and not plain.startswith("~"))
