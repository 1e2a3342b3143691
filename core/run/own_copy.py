"""The second copy of what proves an unfinished run, in the user's state directory, where its child writes nothing.

A child that may write files could spoil what is in the directory of its run. While there is a copy, readers believe
that: its `meta.json`, `runner.json` and `stop.json`, its inbox, and its lock, which is held as the run's own one is.
The wrapper makes it, and it goes with the result. Where it cannot be made, or the directory of the run was copied to
this machine or mounted, everything is read from that directory.

Only the standard library's lightest modules: a wrapper that waits in a queue loads this.
"""

from __future__ import annotations

import os
from functools import lru_cache

from .. import paths
from ..system import files
from ..system.directory import HOME
from .mark import new_hash

OPEN = "open"
"""In the state directory: the copies of all unfinished runs, by project."""
TAMPERED = "tampered"
"""What something else did to the run's directory so far, a line each."""
_MOST_LINES = 50
_RUNS = f"/{HOME}/runs"


def directory_of(run_dir: str) -> str:
    """Return where the copy of a run is while it has one: beside the key, one place whatever XDG says."""
    runs, _, run_id = run_dir.rpartition("/")
    return f"{_directory_of_all(runs, os.path.dirname(paths.key_file()))}/{run_id}"


@lru_cache(256)
def _directory_of_all(runs: str, state: str) -> str:
    name = new_hash(digest_size=8)
    root = runs.removesuffix(_RUNS)  # below it a child may move our directories, and make links to them
    name.update(os.fsencode(os.path.realpath(root) + runs[len(root) :]))
    return f"{state}/{OPEN}/{name.hexdigest()}"


def run_ids(runs: str) -> list[str]:
    """Return the runs of a directory of runs that have a copy."""
    return list(filter(paths.is_run_id, files.names(os.path.dirname(directory_of(f"{runs}/any")))))


def exists(run_dir: str) -> bool:
    """Return whether a run has a copy."""
    return os.path.exists(f"{directory_of(run_dir)}/{paths.META}")


def place_of(run_dir: str) -> str:
    """Return the directory that is believed: the copy of a run, or its own where it has none."""
    copied = directory_of(run_dir)
    return copied if os.path.exists(f"{copied}/{paths.META}") else run_dir


def lock_of(run_dir: str) -> str:
    """Return the lock that proves whether a run is alive."""
    return f"{place_of(run_dir)}/{paths.LOCK}"


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


def say(run_dir: str, sentence: str) -> None:
    """Note what something else did to the directory of a run, as long as that is not too much."""
    said = read(run_dir, TAMPERED)
    if said.count(b"\n") < _MOST_LINES:
        write(run_dir, TAMPERED, said + sentence.replace("\n", " ").encode("utf-8", "replace") + b"\n")


def said(run_dir: str) -> tuple[str, ...]:
    """Return what was noted."""
    return tuple(read(run_dir, TAMPERED).decode("utf-8", "replace").splitlines())


def note_lock(lock: int, status: os.stat_result) -> None:
    """Write into the copy's lock, which is held by this descriptor, which file is the one in the run's directory."""
    os.pwrite(lock, _identity(status), 0)


def is_the_lock(run_dir: str, status: os.stat_result) -> bool:
    """Return whether a file is the lock in the run's directory as its wrapper made it."""
    return read(run_dir, paths.LOCK) in (b"", _identity(status))


def _identity(status: os.stat_result) -> bytes:
    return b"%-48b\n" % f"{status.st_dev} {status.st_ino}".encode()


def make(run_dir: str, meta: bytes) -> int:
    """Make the copy of a run with its record; return the descriptor that holds its lock, shared. Raises OSError."""
    directory = directory_of(run_dir)
    files.make_private_directory(directory)
    lock = files.open_lock(f"{directory}/{paths.LOCK}")
    try:
        files.lock(lock, shared=True)
        if os.path.isdir(f"{run_dir}/{paths.INBOX}"):
            files.make_private_directory(f"{directory}/{paths.INBOX}")
        files.write_whole(f"{directory}/{paths.META}", meta)  # last: with it there is a copy
    except OSError:
        os.close(lock)
        raise
    return lock


def remove(run_dir: str) -> None:
    """Remove the copy of a run that has ended or is gone."""
    directory = directory_of(run_dir)
    if os.path.lexists(directory):
        files.remove(f"{directory}/{paths.META}")  # first: half a copy is none
        files.remove_tree(directory)
