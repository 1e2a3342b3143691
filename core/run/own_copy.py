"""The second copy of what proves an unfinished run, in the user's state directory, where its child writes nothing.

A child that may write files could spoil what is in the directory of its run. While there is a copy, readers believe
that: its `meta.json` and `runner.json`, its lock, requests to stop and the inbox in it. Its wrapper makes it, and it
goes with the result. Where it cannot be made, or the directory is another machine's, a run does without.

Only the standard library's lightest modules: a wrapper that waits in a queue loads this.
"""

from __future__ import annotations

import os
from functools import lru_cache

from .. import paths
from ..system import files

OPEN = "open"
"""Of the state directory: the copies of all unfinished runs, by project."""
LOCK = paths.LOCK
"""Locked as the run's own lock is; it says which file that is: device and inode."""


def directory_of(run_dir: str) -> str:
    """Return where the copy of a run is while it has one: beside the key, whatever XDG says, as launchers differ."""
    runs, _, run_id = run_dir.rpartition("/")
    return f"{_directory_of_all(runs, os.path.dirname(paths.key_file()))}/{run_id}"


@lru_cache(256)
def _directory_of_all(runs: str, state: str) -> str:
    try:
        from _blake2 import blake2b  # what hashlib has; with hashlib comes OpenSSL, 9 ms
    except ImportError:
        from hashlib import blake2b
    return f"{state}/{OPEN}/{blake2b(os.fsencode(os.path.realpath(runs)), digest_size=8).hexdigest()}"


def run_ids(runs: str) -> list[str]:
    """Return the runs of a directory of runs that have a copy."""
    return [name for name in files.names(os.path.dirname(directory_of(f"{runs}/x"))) if paths.is_run_id(name)]


def exists(run_dir: str) -> bool:
    """Return whether a run has a copy."""
    return os.path.exists(f"{directory_of(run_dir)}/{paths.META}")


def read(run_dir: str, name: str) -> bytes:
    """Return a record of the copy; nothing where there is none."""
    return files.content(f"{directory_of(run_dir)}/{name}")


def write(run_dir: str, name: str, content: bytes) -> bool:
    """Write a record into the copy of a run, if it has one; return whether that was done."""
    if not exists(run_dir):
        return False
    try:
        files.write_whole(f"{directory_of(run_dir)}/{name}", content)
    except OSError:
        return False
    return True


def make(run_dir: str, meta: bytes, lock: tuple[int, int]) -> int:
    """Make the copy of a run; return the descriptor that holds its lock, shared. Raises OSError.

    `meta` is the record as it stands in its file, and `lock` says which file is locked in the run directory.
    """
    directory = directory_of(run_dir)
    files.make_private_directory(directory)
    descriptor = files.open_lock(f"{directory}/{LOCK}")
    try:
        files.lock(descriptor, shared=True)
        note_lock(descriptor, lock)
        files.write_whole(f"{directory}/{paths.META}", meta)  # by which there is a copy
    except OSError:
        os.close(descriptor)
        raise
    return descriptor


def note_lock(descriptor: int, lock: tuple[int, int]) -> None:
    """Write which file is the lock in the run directory. Raises OSError."""
    os.pwrite(descriptor, b"%-48b\n" % f"{lock[0]} {lock[1]}".encode(), 0)


def is_the_lock(run_dir: str) -> bool:
    """Return whether what is called `lock` in a run directory is the file that its wrapper locked."""
    words = read(run_dir, LOCK).split()
    try:
        status = os.lstat(f"{run_dir}/{paths.LOCK}")
    except OSError:
        return False
    return words == [b"%d" % status.st_dev, b"%d" % status.st_ino]


def remove(run_dir: str) -> None:
    """Remove the copy of a run that has ended or is gone."""
    directory = directory_of(run_dir)
    if os.path.lexists(directory):
        files.remove(f"{directory}/{paths.META}")
        files.remove_tree(directory)
