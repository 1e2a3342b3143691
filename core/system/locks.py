"""Kernel locks on files (`flock`), which are released with the process that holds them, however it ends.

A lock belongs to the open descriptor and is released when that is closed. Light, as `files` is.
"""

from __future__ import annotations

import errno
import fcntl
import os

from .files import open_private


def open_lock(path: str) -> int:
    """Open a lock file, made where there is none. Raises OSError."""
    return open_private(path, os.O_RDWR)


def lock(descriptor: int, *, shared: bool = False) -> None:
    """Lock an open file, waiting for those who hold it. Raises OSError where the file system has no locks."""
    fcntl.flock(descriptor, fcntl.LOCK_SH if shared else fcntl.LOCK_EX)


def try_lock(descriptor: int, *, shared: bool = False) -> bool:
    """Lock an open file without waiting; return False where somebody else holds it.

    Raises OSError where the file system has no locks.
    """
    try:
        fcntl.flock(descriptor, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | fcntl.LOCK_NB)
    except OSError as error:
        if error.errno in (errno.EWOULDBLOCK, errno.EAGAIN, errno.EACCES):
            return False
        raise
    return True


def unlock(descriptor: int) -> None:
    fcntl.flock(descriptor, fcntl.LOCK_UN)
