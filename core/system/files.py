"""Files that are never seen half written and that only this user can access, and the kernel's locks on them (`flock`).

Every function here opens paths below `.pi/subagents` by the rules of `directory`. A lock belongs to the open
descriptor: it is released when that is closed, or when the process ends in any way. Only the standard library's
lightest modules: a wrapper that waits in a queue imports this.
"""

from __future__ import annotations

import errno
import fcntl
import os
import stat
import time

from .directory import Directory, opened

TYPE_CHECKING = False  # as typing's
if TYPE_CHECKING:
    from collections.abc import Iterable


def write_whole(path: str, content: bytes | Iterable[bytes], *, mode: int = 0o600, durable: bool = False) -> None:
    """Write a file as `Directory.write_whole` does. Raises OSError."""
    with _above(path) as directory:
        directory.write_whole(_name(path), content, mode=mode, durable=durable)


def write_new(path: str, content: bytes | Iterable[bytes], *, mode: int = 0o600, durable: bool = False) -> None:
    """Write a file as `Directory.write_new` does. Raises FileExistsError if it exists, OSError."""
    with _above(path) as directory:
        directory.write_new(_name(path), content, mode=mode, durable=durable)


def read(path: str) -> bytes:
    """Read a whole regular file. Raises OSError."""
    with _above(path) as directory:
        return directory.read(_name(path))


def open_private(path: str, flags: int) -> int:
    """Open a file, created if missing, that only this user can access; usable as the `opener` of `open`."""
    return open_file(path, flags | os.O_CREAT)


def open_file(path: str, flags: int) -> int:
    """Open a regular file. Raises RefusedError for anything else of that name, OSError."""
    with _above(path) as directory:
        return directory.open(_name(path), flags)


def open_directory(path: str) -> int:
    """Open a directory for locking it. Raises OSError."""
    with opened(path) as directory:
        return directory.open_itself()


def open_regular(path: str, *, follow: bool = False) -> tuple[int, os.stat_result]:
    """Open a regular file for reading, without waiting for the writer of a pipe; return the descriptor and its status.

    With `follow` it may be a link to one. Raises RefusedError for anything else of that name, OSError if it cannot be
    read.
    """
    with _above(path) as directory:
        descriptor = directory.open(_name(path), os.O_RDONLY, follow=follow)
    return descriptor, os.fstat(descriptor)


def content(path: str) -> bytes:
    """Read a whole regular file; empty if it is missing or cannot be read."""
    try:
        return read(path)
    except OSError:
        return b""


def names(directory: str) -> list[str]:
    """Return the names in a directory; empty if it is missing or cannot be read."""
    try:
        with opened(directory) as handle:
            return handle.names()
    except OSError:
        return []


def is_directory(path: str) -> bool:
    """Return whether there is a directory of that name that may be opened."""
    try:
        with opened(path) as directory:
            return stat.S_ISDIR(directory.status(".").st_mode)
    except OSError:
        return False


def exists(path: str) -> bool:
    """Return whether there is anything of that name."""
    try:
        with _above(path) as directory:
            return directory.has(_name(path))
    except OSError:
        return False


def is_there(path: str) -> bool:
    """Return whether there is anything of that name, for a caller that must be certain. Raises OSError if it is
    unknown.
    """
    try:
        with _above(path) as directory:
            directory.status(_name(path))
    except (FileNotFoundError, NotADirectoryError):
        return False
    return True


def unwritable(directory: str) -> str:
    """Return a clause on why a directory cannot be written to; empty if it can, or is missing."""
    if os.access(directory, os.W_OK) or not os.access(directory, os.F_OK):
        return ""
    is_readonly = os.statvfs(directory).f_flag & os.ST_RDONLY
    return "its file system is read-only" if is_readonly else "its directory is not writable"


_LOCAL = frozenset({
    0xEF53, 0x58465342, 0x9123683E, 0x2FC12FC1, 0xF2F52010, 0xCA451A4E, 0x52654973, 0x3153464A, 0x794C7630, 0x01021994,
})  # fmt: skip
"""`statfs` types of the file systems that only one machine writes to: ext2 to ext4, XFS, Btrfs, ZFS, F2FS, bcachefs,
ReiserFS, JFS, overlay, tmpfs.
"""


def is_local(path: str) -> bool:
    """Return whether a path is on a file system that no other machine has; False if unknown."""
    import ctypes  # loaded late: 5 ms, for a rare question

    status = (ctypes.c_long * 64)()
    try:
        failed = ctypes.CDLL(None).statfs(os.fsencode(path), status)
    except (OSError, AttributeError):
        return False
    return not failed and status[0] & 0xFFFFFFFF in _LOCAL


def make_private_directory(path: str) -> None:
    """Create a directory that only this user can access, and its missing parents. Raises OSError."""
    opened(path, make=True).close()


def settle_names(directory: str) -> None:
    """Sync the names in a directory to the disk. Raises OSError."""
    descriptor = open_directory(directory)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def rename(path: str, target: str) -> None:
    """Move a file or directory; a link itself, not its target. Raises OSError."""
    with _above(path) as directory, _above(target) as target_directory:
        directory.rename(_name(path), target_directory, _name(target))


def link(path: str, target: str) -> None:
    """Give a file, or a link itself, a second name. Raises FileExistsError if that is taken, OSError."""
    with _above(path) as directory, _above(target) as target_directory:
        directory.link(_name(path), target_directory, _name(target))


def remove(path: str) -> None:
    """Remove a file, if it exists and may be removed."""
    try:
        with _above(path) as directory:
            directory.remove(_name(path))
    except OSError:
        return


def remove_tree(path: str) -> None:
    """Remove a directory and its content; what may not be removed stays."""
    try:
        with _above(path) as directory:
            directory.remove_tree(_name(path))
    except OSError:
        return


def write_state(path: str, content: bytes) -> None:
    """Write a file of this user's state, and create its directories. Raises OSError."""
    make_private_directory(os.path.dirname(path))
    write_whole(path, content)


def open_lock(path: str) -> int:
    return open_private(path, os.O_RDWR)


def lock(descriptor: int, *, shared: bool = False) -> None:
    """Lock an open file, waiting for its holders. Raises OSError if the file system has no locks."""
    fcntl.flock(descriptor, fcntl.LOCK_SH if shared else fcntl.LOCK_EX)


def try_lock(descriptor: int, *, shared: bool = False) -> bool:
    """Lock an open file without waiting; return False if it is held.

    Raises OSError if the file system has no locks.
    """
    try:
        fcntl.flock(descriptor, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | fcntl.LOCK_NB)
    except OSError as error:
        if error.errno in (errno.EWOULDBLOCK, errno.EAGAIN, errno.EACCES):
            return False
        raise
    return True


def lock_soon(descriptor: int, seconds: float) -> bool:
    """Lock an open file; return False if it is still held after some seconds.

    A process that was killed while it started another may hold its locks slightly longer: until exec, the new process
    has all open descriptors. Raises OSError if the file system has no locks.
    """
    deadline = time.monotonic() + seconds
    while not try_lock(descriptor):
        if time.monotonic() > deadline:
            return False
        time.sleep(0.01)
    return True


def claim(descriptor: int) -> bool:
    """Take a second lock on an open file, invisible to probers; return False if another process has it."""
    try:
        fcntl.lockf(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        return error.errno not in (errno.EWOULDBLOCK, errno.EAGAIN, errno.EACCES)
    return True


def unlock(descriptor: int) -> None:
    fcntl.flock(descriptor, fcntl.LOCK_UN)


def _above(path: str) -> Directory:
    return opened(os.path.dirname(path))


def _name(path: str) -> str:
    return os.path.basename(path)
