"""Who is at work in which working tree: runs of all projects and sessions of this user, each as long as it is.

Each has a file that it holds locked, so that the kernel says who is still there. A file stays for as long as others
are at work in the same tree: they learn from it that somebody was there meanwhile.
Its first half is for the wrapper, which does not wait there for anybody.
"""

from __future__ import annotations

import os
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from typing import NamedTuple

from .. import paths
from ..system import files

_COMING = ".coming-"
"""Begins the name of a file that is not locked yet."""


def announce(run_id: str, root: str, words: str) -> int:
    """Say that a run is at work in a working tree, until the descriptor that is returned is closed.

    `words` name it for people. Raises OSError.
    """
    directory = _directory()
    files.make_private_directory(directory)
    coming = os.path.join(directory, _COMING + run_id)
    descriptor = files.open_private(coming, os.O_RDWR | os.O_TRUNC)
    try:
        os.write(descriptor, os.fsencode(f"{root}\0{words}"))
        files.lock(descriptor)
        files.rename(coming, os.path.join(directory, run_id))
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor


class Present(NamedTuple):
    run_id: str
    words: str
    is_there: bool
    """Whether it still is, by the kernel's word."""


def others(run_id: str, root: str) -> list[Present]:
    """Return the other runs that have been at work in a working tree, as far as they are remembered; what nobody needs
    any more is removed. Raises OSError.
    """
    with _alone() as directory:
        known = list(_known(directory))
        _sweep(directory, known)
    return [one for where, one in known if where == root and one.run_id != run_id]


def leave(run_id: str, root: str) -> None:
    """Have a run forgotten where nobody else is at work in its working tree; else its file stays. Raises OSError."""
    with _alone() as directory:
        known = [(where, one) for where, one in _known(directory) if one.run_id != run_id]
        if not any(where == root and one.is_there for where, one in known):
            files.remove(os.path.join(directory, run_id))
        _sweep(directory, known)


def sweep() -> None:
    """Forget who has gone from where nobody is at work any more: the last one may have been killed. Raises OSError."""
    if not os.path.isdir(_directory()):
        return
    with _alone() as directory:
        _sweep(directory, list(_known(directory)))


def _directory() -> str:
    return paths.state_file("work", "present")


@contextmanager
def _alone() -> Generator[str]:
    """Hold the directory: who looks whether a file is locked locks it for that moment."""
    directory = _directory()
    files.make_private_directory(directory)
    turn = files.open_directory(directory)
    try:
        files.lock(turn)
        yield directory
    finally:
        os.close(turn)


def _known(directory: str) -> Iterator[tuple[str, Present]]:
    """Yield each run that has a file, with the root of its working tree."""
    for name in filter(paths.is_run_id, files.names(directory)):
        try:
            descriptor = files.open_file(os.path.join(directory, name), os.O_RDWR)
        except OSError:
            continue  # it has left
        try:
            root, _, words = os.fsdecode(os.read(descriptor, 16 * 1024)).partition("\0")
            yield root, Present(name, words, not files.try_lock(descriptor))
        finally:
            os.close(descriptor)


def _sweep(directory: str, known: list[tuple[str, Present]]) -> None:
    """Remove the files of those who have gone where nobody is at work any more."""
    busy = {root for root, one in known if one.is_there}
    for root, one in known:
        if root not in busy:
            files.remove(os.path.join(directory, one.run_id))
