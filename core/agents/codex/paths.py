"""How Codex resolves the paths in patches (as in 0.169.0), and the project files from which it starts programs."""

from __future__ import annotations

from ...permissions.path_readings import Reading, home_of, read_as

SETTINGS = (".codex", ".agents")


def read_path(_tool: str, path: str, directory: str) -> Reading:
    """Resolve a path as it is, with whitespace trimmed, because a patch consists of lines."""
    plain = path.strip()
    forms = dict.fromkeys((path, plain, home_of(plain)))
    return read_as(forms, directory, is_certain=plain == path and not plain.startswith("~"))
