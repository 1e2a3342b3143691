"""Directories of a repository that are had alone: what git calls a cone."""

from __future__ import annotations

import os
from collections.abc import Sequence

from ..errors import SubdeckError
from ..text.plain import one_line


def cone(directories: Sequence[str]) -> bytes:
    """Return the patterns by which git has the files of some directories, and those beside and above them; nothing
    where all are wanted. Raises SubdeckError for what is no directory of a snapshot.
    """
    if not directories:
        return b""
    wanted = {inside(directory) for directory in directories}
    above: set[str] = set()
    for directory in wanted:
        while directory := os.path.dirname(directory):
            above.add(directory)
    lines = ["/*", "!/*/"]
    for directory in sorted(wanted | above):
        parents = (directory[:end] for end, character in enumerate(directory) if character == "/")
        if directory in wanted and not any(parent in wanted for parent in parents):
            lines.append(f"/{_escaped(directory)}/")
        elif directory not in wanted:
            lines += [f"/{_escaped(directory)}/", f"!/{_escaped(directory)}/*/"]
    return "\n".join([*lines, ""]).encode("utf-8", "surrogateescape")


def _escaped(directory: str) -> str:
    return "".join(f"\\{character}" if character in "\\*?[]" else character for character in directory)


def inside(directory: str) -> str:
    """Return the plain path of a directory in a snapshot. Raises SubdeckError where it is none."""
    parts = directory.rstrip("/").split("/")
    if not all(parts) or any(part in (".", "..") or part.lower() == ".git" for part in parts) or "\n" in directory:
        raise SubdeckError("not a directory of the snapshot", where=one_line(directory, 200))
    return "/".join(parts)
