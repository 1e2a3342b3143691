"""The second copy of the records that prove an unfinished run, in the user's state directory, where no agent writes.

An agent that may write files could damage its run's directory. While there is a copy, readers trust it: its
`meta.json`, `runner.json` and `stop.json`, its inbox, and its lock, which is held like the run's own. The wrapper makes
it; writing the result removes it. If it cannot be made, or the run's directory was copied to this machine or mounted,
everything is read from that directory.

Only the standard library's lightest modules: a wrapper that waits in a queue loads this.
"""

from __future__ import annotations

import os

from .. import paths
from ..system import files
from ..system.directory import HOME
from .signature import new_hash

OPEN = "open"
"""In the state directory: copies of all unfinished runs, by project."""
TAMPERED = "tampered"
"""Outside changes to the run's directory so far, a line each."""
_MOST_LINES = 50
_RUNS = f"/{HOME}/runs"
_DIRECTORIES: dict[tuple[str, str], str] = {}
"""Where the copies of a project's runs are; without `functools`, which a waiting wrapper does not load."""


def directory_of(run_dir: str) -> str:
    """Return the path of a run's copy: beside the key, independent of XDG."""
    runs, _, run_id = run_dir.rpartition("/")
    return f"{_directory_of_all(runs, os.path.dirname(paths.key_file()))}/{run_id}"


def _directory_of_all(runs: str, state: str) -> str:
    directory = _DIRECTORIES.get((runs, state))
    if directory is None:
        name = new_hash(digest_size=8)
        root = runs.removesuffix(_RUNS)  # below it an agent may move subdeck's directories, and link to them
        name.update(os.fsencode(os.path.realpath(root) + runs[len(root) :]))
        directory = _DIRECTORIES[runs, state] = f"{state}/{OPEN}/{name.hexdigest()}"
    return directory


def run_ids(runs: str) -> list[str]:
    """Return the ids of the runs in a runs directory that have a copy."""
    return list(filter(paths.is_run_id, files.names(os.path.dirname(directory_of(f"{runs}/any")))))


def exists(run_dir: str) -> bool:
    """Return whether a run has a copy."""
    return os.path.exists(f"{directory_of(run_dir)}/{paths.META}")


def trusted_directory(run_dir: str) -> str:
    """Return the directory to trust: the copy of a run, or its own if it has none."""
    copied = directory_of(run_dir)
    return copied if os.path.exists(f"{copied}/{paths.META}") else run_dir


def lock_of(run_dir: str) -> str:
    """Return the lock that proves whether a run is alive."""
    return f"{trusted_directory(run_dir)}/{paths.LOCK}"


def read(run_dir: str, name: str) -> bytes:
    """Return a record of the copy; empty if there is none."""
    return files.content(f"{directory_of(run_dir)}/{name}")


def write(run_dir: str, name: str, content: bytes) -> bool:
    """Write a record into the copy of a run, if it has one; return whether that succeeded."""
    if not exists(run_dir):
        return False
    try:
        files.write_whole(f"{directory_of(run_dir)}/{name}", content)
    except OSError:
        return False
    return True


def note_tampering(run_dir: str, sentence: str) -> None:
    """Note an outside change to a run's directory, up to `_MOST_LINES`."""
    noted = read(run_dir, TAMPERED)
    if noted.count(b"\n") < _MOST_LINES:
        write(run_dir, TAMPERED, noted + sentence.replace("\n", " ").encode("utf-8", "replace") + b"\n")


def tampering(run_dir: str) -> tuple[str, ...]:
    """Return the noted changes."""
    return tuple(read(run_dir, TAMPERED).decode("utf-8", "replace").splitlines())


def note_lock(lock: int, status: os.stat_result) -> None:
    """Write the identity of the lock in the run's directory into the copy's lock, held by this descriptor."""
    os.pwrite(lock, _identity(status), 0)


def is_the_lock(run_dir: str, status: os.stat_result) -> bool:
    """Return whether a file is the lock that the wrapper made in the run's directory."""
    return read(run_dir, paths.LOCK) in (b"", _identity(status))


def _identity(status: os.stat_result) -> bytes:
    return b"%-48b\n" % f"{status.st_dev} {status.st_ino}".encode()


def make(run_dir: str, meta: bytes) -> int:
    """Create the copy of a run with its record; return the descriptor that holds its lock, shared. Raises OSError."""
    directory = directory_of(run_dir)
    files.make_private_directory(directory)
    lock = files.open_lock(f"{directory}/{paths.LOCK}")
    try:
        files.lock(lock, shared=True)
        if os.path.isdir(f"{run_dir}/{paths.INBOX}"):
            files.make_private_directory(f"{directory}/{paths.INBOX}")
        files.write_whole(f"{directory}/{paths.META}", meta)  # last: it makes the copy valid
    except OSError:
        os.close(lock)
        raise
    return lock


def remove(run_dir: str) -> None:
    """Remove the copy of a run that has ended or was removed."""
    directory = directory_of(run_dir)
    if os.path.lexists(directory):
        files.remove(f"{directory}/{paths.META}")  # first: without it the copy is invalid
        files.remove_tree(directory)
