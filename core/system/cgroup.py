"""A control group (v2) for each run: a process started in it cannot leave it, even by forking or daemonizing.

It is created below the group of this process, if that is allowed; it needs no controller. Its name has the run's id, so
that it is found without a record that could name another.
"""

from __future__ import annotations

import errno
import os
import signal
import time
from collections.abc import Iterator

from . import files

PREFIX = "subdeck-"
MEMBERS = "cgroup.procs"
_CLONE3 = 435
"""Number of the system call, the same on every architecture."""
_CLONE_INTO_CGROUP = 0x200000000
"""The first field of its `struct clone_args`; the fifth is the exit signal of the child, the last one the group."""
OLD_S = 60.0
"""Seconds after which an empty group will not be entered any more."""


def own() -> str | None:
    """Return the directory of this process's group; None without groups of version 2.

    Raises OSError if it cannot be read.
    """
    path = next((line[3:] for line in _lines("/proc/self/cgroup") if line.startswith("0::/")), None)
    if path is None or "/.." in path:
        return None  # a group outside this process's namespace
    for root, mount in _mounts():
        if path == root or path.startswith(root.rstrip("/") + "/"):
            return os.path.normpath(f"{mount}/{path[len(root.rstrip('/')) :]}")
    return None


def can_make_groups(directory: str) -> bool:
    """Return whether this process could create a group below its own and move into it."""
    return os.access(directory, os.W_OK | os.X_OK) and os.access(f"{directory}/{MEMBERS}", os.W_OK)


def find(run_id: str) -> str | None:
    """Return the directory of a run's group, if this user made one anywhere in the tree; otherwise None.

    Raises OSError if the tree could not be searched.
    """
    name = PREFIX + run_id
    home = own()
    if home and _is_ours(f"{home}/{name}"):
        return f"{home}/{name}"
    for _, mount in _mounts():
        for directory, names in _tree(mount):
            if name in names and _is_ours(f"{directory}/{name}"):
                return f"{directory}/{name}"
    return None


def make(run_id: str) -> str | None:
    """Create the group of a run below that of this process; None if that fails."""
    try:
        home = own()
    except OSError:
        return None
    if home is None:
        return None
    group = f"{home}/{PREFIX}{run_id}"
    try:
        os.mkdir(group, 0o700)
    except FileExistsError:
        pass  # made by a wrapper of the run that was killed
    except OSError:
        return None
    return group


def fork_into(group: str) -> int:
    """Fork this process, which must have one thread; the child, which gets 0, is in a group. It must exec a program:
    the interpreter does not know of this fork.

    Raises OSError if the kernel cannot do that: it is too old, or a sandbox hides the call.
    """
    import ctypes

    directory = os.open(group, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        arguments = (ctypes.c_uint64 * 11)()
        arguments[0], arguments[4], arguments[10] = _CLONE_INTO_CGROUP, signal.SIGCHLD, directory
        kernel = ctypes.PyDLL(None, use_errno=True)  # keeps the interpreter's lock, which the child needs
        pid = kernel.syscall(ctypes.c_long(_CLONE3), ctypes.byref(arguments), ctypes.c_size_t(ctypes.sizeof(arguments)))
        if pid < 0:
            raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()), group)
        return pid
    finally:
        os.close(directory)


def members(group: str) -> list[int]:
    """Return the processes in a group and in the groups below it, without dead ones; empty if it is gone.

    Raises OSError if it cannot be read.
    """
    lines = (line for directory, _ in _tree(group) for line in _lines(f"{directory}/{MEMBERS}"))
    return list(map(int, lines))


def move_here(group: str) -> None:
    """Move this process into a group. Raises OSError."""
    _write(f"{group}/{MEMBERS}", b"0")


def kill(group: str) -> None:
    """Kill all processes in a group and below it at once, so that no fork escapes; needs Linux 5.14.

    Raises OSError if that is impossible.
    """
    _write(f"{group}/cgroup.kill", b"1")


def remove(group: str) -> None:
    """Remove a group and the groups below it, unless a process lives in them."""
    try:
        if members(group):
            return
    except OSError:
        return
    for directory, _, _ in os.walk(group, topdown=False):
        try:
            os.rmdir(directory)
        except OSError:
            continue


def remove_old(directory: str) -> None:
    """Remove the empty groups of runs in a group, left by wrappers that were killed at their very end."""
    oldest = time.time() - OLD_S
    for name in files.names(directory):
        try:
            if name.startswith(PREFIX) and os.stat(f"{directory}/{name}").st_mtime < oldest:
                remove(f"{directory}/{name}")
        except OSError:
            continue  # another wrapper removed it


def _mounts() -> Iterator[tuple[str, str]]:
    """Yield each mounted part of the tree of groups, with its mount point."""
    for line in _lines("/proc/self/mountinfo"):
        fields, _, source = line.partition(" - ")
        if source.startswith("cgroup2 "):
            root, mount = fields.split()[3:5]
            yield root, mount.replace("\\040", " ")


def _lines(path: str) -> list[str]:
    """Read a file of the kernel; empty if it is gone. Raises OSError."""
    try:
        return files.read(path).decode("utf-8", "surrogateescape").splitlines()
    except OSError as error:
        _raise_unless_gone(error)
        return []


def _tree(top: str) -> Iterator[tuple[str, list[str]]]:
    """Yield each directory of a tree of groups with the names below it. Raises OSError."""
    for directory, names, _ in os.walk(top, onerror=_raise_unless_gone):
        yield directory, names


def _raise_unless_gone(error: OSError) -> None:
    if error.errno not in (errno.ENOENT, errno.ENODEV, errno.EACCES):
        raise error


def _is_ours(group: str) -> bool:
    try:
        return os.stat(group, follow_symlinks=False).st_uid == os.geteuid()
    except OSError:
        return False


def _write(path: str, content: bytes) -> None:
    descriptor = os.open(path, os.O_WRONLY | os.O_CLOEXEC)
    try:
        os.write(descriptor, content)
    finally:
        os.close(descriptor)
