"""Write a tree into a working tree without losing any conflicting file."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Iterator

from .names import worded
from .program import Git, GitError, failure

_NAMED = 5


class InTheWay(GitError):
    """Files have changed, or block the write; nothing was written."""

    def __init__(self, what: str, paths: Iterable[bytes], *, where: str) -> None:
        self.paths = tuple(map(worded, paths))
        more = f" and {len(self.paths) - _NAMED} more" if len(self.paths) > _NAMED else ""
        super().__init__(f"{what}: {', '.join(self.paths[:_NAMED])}{more}", where=where)


def check_unchanged(git: Git, root: str, expected: str, now: str) -> None:
    """Raise InTheWay if a working tree is not in its expected state."""
    if expected != now:
        changed = git.lines("diff-tree", "-r", "-z", "--name-only", "--no-renames", expected, now, "--")
        raise InTheWay("changed by another program", changed, where=root)


def check_room(git: Git, root: str, now: str, wanted: str) -> None:
    """Raise InTheWay if a file outside the snapshot, such as an ignored one, is in the place of a file to write; raise
    GitError if a directory is not writable.
    """
    fields = iter(git.lines("diff-tree", "-r", "-z", "--name-status", "--no-renames", now, wanted, "--"))
    letters = {path: letter for letter, path in zip(fields, fields, strict=True)}
    going = {path for path, letter in letters.items() if letter == b"D"}
    new = [path for path, letter in letters.items() if letter == b"A"]
    encoded_root = os.fsencode(root)
    if blocked := sorted({blocking for path in new for blocking in _in_the_way(encoded_root, path, going)}):
        raise InTheWay("in the way, and untracked by git", blocked, where=root)
    for directory in {_nearest(os.path.dirname(os.path.join(encoded_root, path))) for path in letters}:
        if not os.access(directory, os.W_OK | os.X_OK):
            raise GitError("the directory is not writable", where=worded(directory))


def _in_the_way(root: bytes, path: bytes, going: set[bytes]) -> Iterator[bytes]:
    """Yield files that stay in the place of a new file or one of its directories."""
    parts = path.split(b"/")
    for depth in range(1, len(parts)):
        above = b"/".join(parts[:depth])
        try:
            mode = os.lstat(os.path.join(root, above)).st_mode
        except OSError:
            return
        if not stat.S_ISDIR(mode):
            if above not in going:
                yield above
            return
    full = os.path.join(root, path)
    if not os.path.lexists(full) or path in going:
        return
    if os.path.islink(full) or not os.path.isdir(full):
        yield path
        return
    for directory, _, names in os.walk(full):
        for name in names:
            inside = os.path.relpath(os.path.join(directory, name), root)
            if inside not in going:
                yield inside


def _nearest(path: bytes) -> bytes:
    while not os.path.isdir(path) and path != os.path.dirname(path):
        path = os.path.dirname(path)
    return path


def write_files(git: Git, root: str, now: str, wanted: str) -> None:
    """Update the files from one tree to another; the index of `git` has their current state. Raises GitError.

    git checks all files once more before it writes the first. After a failure half-way, a new snapshot shows how far it
    got.
    """
    answer = git.ask("read-tree", "-m", "-u", "--no-recurse-submodules", now, wanted)
    if answer.code:
        raise failure(("read-tree",), answer, root)
