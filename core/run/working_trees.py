"""The working trees of one git repository: rules with relative paths apply in all of them.

Claude Code can give a nested agent its own working tree, and a run may itself work in one.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence

from ..system.git_pointers import directories_of


def same_in_others(directory: str, places: Iterable[Sequence[str]]) -> Iterator[str]:
    """Yield the path of a directory in each other working tree of its repository that contains one of the places."""
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
            is_there = os.path.lexists(dot_git)
        except ValueError:
            continue
        if is_there:
            return tuple(place[:end]), os.path.realpath(directories_of(root, dot_git)[1])
    return None
