"""File paths in a text, with a line number if it has one: `src/auth.py:40`."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from typing import NamedTuple

MOST_WORDS = 2_000
"""Words of a text that are checked."""

_BREAKS = re.compile(r"[\s\"'`<>()\[\]{}|,;=│]+")
_PLACE = re.compile(r"(?P<path>.+?)(?::(?P<line>\d{1,7})(?:[:-]\d+)*|#L(?P<anchor>\d{1,7})(?:-L?\d+)?)?[.:!?*]*")
_OFFSET = re.compile(r"^offset: (\d{1,7})$", re.MULTILINE)
"""The argument of a tool call with the first line to read."""


class FilePlace(NamedTuple):
    path: str
    """Absolute, so that no program parses it as an option."""
    line: int | None


def places_in(text: str, cwd: str) -> list[FilePlace]:
    """Return the regular files that a text names, relative to a directory, each once, in order."""
    found: dict[str, FilePlace] = {}
    for path, line in _named(text):
        if (existing := _existing(path, cwd)) and (existing not in found or found[existing].line is None):
            found[existing] = FilePlace(existing, line)
    places = list(found.values())
    if len(places) == 1 and places[0].line is None and (offset := _OFFSET.search(text)):
        return [FilePlace(places[0].path, int(offset[1]))]
    return places


def _named(text: str) -> Iterator[tuple[str, int | None]]:
    for word in _BREAKS.split(text)[:MOST_WORDS]:
        if word and (place := _PLACE.fullmatch(word)):
            line = place["line"] or place["anchor"]
            yield place["path"], int(line) if line else None


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
