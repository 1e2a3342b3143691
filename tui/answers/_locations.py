"""File paths in a text, with a line number if it has one: `src/auth.py:40`."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from typing import NamedTuple

MOST_WORDS = 2_000
"""Words of a text that are checked."""

_BREAKS = re.compile(r"[\s\"'`<>()\[\]{}|,;=│]+")
_LOCATION = re.compile(r"(?P<path>.+?)(?::(?P<line>\d{1,7})(?:[:-]\d+)*|#L(?P<anchor>\d{1,7})(?:-L?\d+)?)?[.:!?*]*")
_OFFSET = re.compile(r"^offset: (\d{1,7})$", re.MULTILINE)
"""The argument of a tool call with the first line to read."""


class FileLocation(NamedTuple):
    path: str
    """Absolute, so that no program parses it as an option."""
    line: int | None


def locations_in(text: str, cwd: str) -> list[FileLocation]:
    """Return the regular files that a text names, relative to a directory, each once, in order."""
    locations_by_path: dict[str, FileLocation] = {}
    for path, line in _named(text):
        if (existing := _existing(path, cwd)) and (
            existing not in locations_by_path or locations_by_path[existing].line is None
        ):
            locations_by_path[existing] = FileLocation(existing, line)
    locations = list(locations_by_path.values())
    if len(locations) == 1 and locations[0].line is None and (offset := _OFFSET.search(text)):
        return [FileLocation(locations[0].path, int(offset[1]))]
    return locations


def _named(text: str) -> Iterator[tuple[str, int | None]]:
    for word in _BREAKS.split(text)[:MOST_WORDS]:
        if word and (match := _LOCATION.fullmatch(word)):
            line = match["line"] or match["anchor"]
            yield match["path"], int(line) if line else None


def _existing(path: str, cwd: str) -> str:
    """Return the absolute path of a regular file, also without git's diff prefix. Empty if there is none."""
    candidates = [path, path[2:]] if path[:2] in ("a/", "b/") else [path]
    for candidate in candidates:
        try:
            full = os.path.normpath(os.path.join(cwd, os.path.expanduser(candidate)))
            if os.path.isabs(full) and os.path.isfile(full):
                return full
        except ValueError:
            continue  # a path cannot contain a null character
    return ""
