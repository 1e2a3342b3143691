"""Runs at work in each working tree, of all this user's projects and sessions.

Each run locks its own file, so the kernel shows whether it is alive. A file stays while others are at work in the same
tree, to show them that the run was there. `announce` is for the wrapper, which never waits here.
"""

from __future__ import annotations

import os
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from typing import NamedTuple

from .. import paths
from ..system import files

_COMING = ".coming-"
"""Name prefix of a file that is not locked yet."""


def announce(run_id: str, root: str, words: str) -> int:
    """Announce a run in a working tree, until the returned descriptor is closed.

    `words` is its name for people. Raises OSError.
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
    """Whether it still is, according to the kernel."""


def others(run_id: str, root: str) -> list[Present]:
    """Return the other runs that have been at work in a working tree, if still recorded; remove unneeded records.
    Raises OSError.
    """
    with _alone() as directory:
        runs = list(_runs_with_roots(directory))
        _sweep(directory, runs)
    return [run for its_root, run in runs if its_root == root and run.run_id != run_id]


def leave(run_id: str, root: str) -> None:
    """Remove a run's file unless others are at work in its working tree. Raises OSError."""
    with _alone() as directory:
        runs = [(its_root, run) for its_root, run in _runs_with_roots(directory) if run.run_id != run_id]
        if not any(its_root == root and run.is_there for its_root, run in runs):
            files.remove(os.path.join(directory, run_id))
        _sweep(directory, runs)


def sweep() -> None:
    """Remove files of trees without a running run: the last one may have been killed. Raises OSError."""
    if not os.path.isdir(_directory()):
        return
    with _alone() as directory:
        _sweep(directory, list(_runs_with_roots(directory)))


def _directory() -> str:
    return paths.state_file("work", "present")


@contextmanager
def _alone() -> Generator[str]:
    """Lock the directory: a check whether a file is locked locks it for a moment."""
    directory = _directory()
    files.make_private_directory(directory)
    descriptor = files.open_directory(directory)
    try:
        files.lock(descriptor)
        yield directory
    finally:
        os.close(descriptor)


def _runs_with_roots(directory: str) -> Iterator[tuple[str, Present]]:
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


def _sweep(directory: str, runs: list[tuple[str, Present]]) -> None:
    """Remove the files of ended runs in trees without a running one."""
    busy = {root for root, run in runs if run.is_there}
    for root, run in runs:
        if root not in busy:
            files.remove(os.path.join(directory, run.run_id))
