"""The working trees of one git repository: what rules deny or ask about in one of them, they do in the others.

Claude Code gives a nested agent a tree of its own if the model wants that, and a run may be in one itself.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Iterator, Sequence

from ..system.files import content

_LONGEST_POINTER = 5000
"""Bytes of the file `.git` of a working tree beside the first one."""


def same_in_others(directory: str, places: Iterable[Sequence[str]]) -> Iterator[str]:
    """Yield what corresponds to a directory in those other trees of its repository in which there are places."""
    here = tuple(filter(None, os.path.realpath(directory).split("/")))
    own = _tree_around(here)
    if own is None:
        return
    root, repository = own
    for place in places:
        other = _tree_around(place)
        if other is not None and other[0] != root and other[1] == repository:
            yield "/" + "/".join((*other[0], *here[len(root) :]))


def _tree_around(place: Sequence[str]) -> tuple[tuple[str, ...], str] | None:
    """Return the root of the innermost working tree around a place, and the directory of its repository."""
    for end in range(len(place), 0, -1):
        root = "/" + "/".join(place[:end])
        dot_git = f"{root}/.git"
        try:
            found = os.lstat(dot_git)
        except (OSError, ValueError):
            continue
        if stat.S_ISREG(found.st_mode) and found.st_size <= _LONGEST_POINTER:
            git_directory = os.path.join(root, _pointer(dot_git).removeprefix("gitdir:").strip())
            common = _pointer(os.path.join(git_directory, "commondir")) or "."
            return tuple(place[:end]), os.path.realpath(os.path.join(git_directory, common))
        return tuple(place[:end]), os.path.realpath(dot_git)
    return None


def _pointer(path: str) -> str:
    return os.fsdecode(content(path)).removesuffix("\n")
