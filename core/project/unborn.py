"""What launchers leave that are killed before their run exists: its directory under a hidden name, with the prompt."""

from __future__ import annotations

import os
import time

from .. import paths
from ..run import own_copy
from ..run.proven import has_result
from ..system import files
from ..system.directory import opened

UNBORN_S = 24 * 3600.0
"""After which such a directory is removed by whoever comes along."""
SURELY_S = 60.0
"""The same for who asks to remove everything; a launcher takes milliseconds from its directory to the lock in it."""


def remove_unborn(project: paths.Project, older_than_s: float = UNBORN_S) -> int:
    """Remove what is older than that and held by nobody, and second copies of runs that have ended; return how many
    directories there were.
    """
    for run_id in own_copy.run_ids(project.runs):
        if has_result(project.run_dir(run_id)):
            own_copy.remove(project.run_dir(run_id))
    oldest = time.time() - older_than_s
    try:
        with opened(project.runs) as runs:
            hidden = [name for name in runs.names() if name[0] == "." and paths.is_run_id(name[1:])]
            old = [name for name in hidden if runs.status(name).st_mtime < oldest]
    except OSError:
        return 0  # another launcher removes them just now
    return sum(_remove(os.path.join(project.runs, name)) for name in old)


def hold_file(path: str) -> int | None:
    """Lock one file; None where somebody has it, or it cannot be locked."""
    try:
        lock = files.open_lock(path)
    except OSError:
        return None
    try:
        if files.try_lock(lock):
            return lock
    except OSError:
        pass  # no locks there: then nobody can tell that it is free
    os.close(lock)
    return None


def _remove(directory: str) -> bool:
    lock = hold_file(os.path.join(directory, paths.LOCK))
    if lock is None:
        return False
    try:
        files.remove_tree(directory)
    finally:
        os.close(lock)
    return not os.path.lexists(directory)
