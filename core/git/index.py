"""The index of a snapshot: ours, and begun with what is known already, as to read all files takes long."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Iterator

from ..system import files
from .program import Git, GitError
from .repository import Repository

_MOST_SMALL = 4 * 1024 * 1024


def beginnings(git: Git, repository: Repository, index: str, seed: str = "") -> Iterator[None]:
    """Make an index ready, and make another one each time that git could not use the last.

    First the one of the last snapshot; then a copy of `seed`, or else of the user's, which knows what the files were
    when git looked; then what is committed; then none, with which all files are read. Raises GitError and OSError.
    """
    if os.path.exists(index):
        yield
    files.remove(index)
    if _copy(seed, index) or begun(git, repository, index):
        yield
    files.remove(index)
    if repository.head:
        try:
            git.run("read-tree", repository.head)
        except GitError:
            pass  # what is committed is not all there
        else:
            yield
    files.remove(index)
    git.run("read-tree", "--empty")
    yield


def begun(git: Git, repository: Repository, index: str) -> bool:
    """Begin an index as a copy of the user's; return whether there is one that git can use. Raises OSError."""
    if not _copy(os.path.join(repository.git_dir, "index"), index):
        return False
    for name in files.names(repository.git_dir):
        if name.startswith("sharedindex."):
            content = small_file(os.path.join(repository.git_dir, name), 1 << 30)
            files.write_whole(os.path.join(os.path.dirname(index), name), content)
    try:
        _look_everywhere(git, repository)
    except GitError:
        return False  # a broken one
    return True


def _copy(path: str, index: str) -> bool:
    """Copy an index; return whether there was one."""
    try:
        source, status = files.open_regular(path)
    except OSError:
        return False
    with open(source, "rb") as read, open(files.open_private(index, os.O_WRONLY | os.O_TRUNC), "wb") as written:
        shutil.copyfileobj(read, written, 1 << 20)
    # A file that was written after the index, in the same tick of the clock, is told by the time of the index.
    os.utime(index, ns=(status.st_atime_ns, status.st_mtime_ns))
    return True


def _look_everywhere(git: Git, repository: Repository) -> None:
    """Take away the marks by which a user has git look away from files: `assume-unchanged`, and `skip-worktree` of what
    is there all the same. Raises GitError.
    """
    marked: list[tuple[bytes, bytes]] = re.findall(rb"(?:\A|\0)([Sa-z]) ([^\0]*)", git.run("ls-files", "-v", "-z"))
    root = os.fsencode(repository.root)
    assumed = [path for mark, path in marked if mark != b"S"]
    there = [path for mark, path in marked if mark in b"Ss" and os.path.lexists(os.path.join(root, path))]
    for option, paths in (("--no-assume-unchanged", assumed), ("--no-skip-worktree", there)):
        if paths:
            git.run("update-index", option, "-z", "--stdin", input=b"\0".join(paths) + b"\0")


def small_file(path: str, most: int = _MOST_SMALL) -> bytes:
    """Read a regular file that is not longer than that; nothing where there is none."""
    try:
        descriptor, status = files.open_regular(path)
    except OSError:
        return b""
    with open(descriptor, "rb") as file:
        return file.read() if status.st_size <= most else b""
