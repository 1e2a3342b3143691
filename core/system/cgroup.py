"""A control group (v2) for each run: what a process in it starts cannot leave it, whatever it forks or forgets.

A group is made below the one that this process is in, where that is allowed; it needs no controller. It is called by
the run's id, so that whoever finishes a run finds it without a record that could name another. The group of a wrapper
that stood by before it had a run has an empty one in it that is called by the id.
"""

from __future__ import annotations

import errno
import os
import time
from collections.abc import Iterator

from . import files

PREFIX = "subdeck-"
STANDBY = PREFIX + "standby-"
"""Before the pid of a wrapper that stands by."""
_LABEL = "run-"
"""Before the id of the run that such a wrapper was given."""
MEMBERS = "cgroup.procs"
OLD_S = 60.0
"""After this a group that is empty will not be entered any more."""


def own() -> str | None:
    """Return the directory of the group that this process is in; None where there are none of version 2.

    Raises OSError where that cannot be read.
    """
    path = next((line[3:] for line in _lines("/proc/self/cgroup") if line.startswith("0::/")), None)
    if path is None or "/.." in path:
        return None  # one outside of our namespace
    for root, mount in _mounts():
        if path == root or path.startswith(root.rstrip("/") + "/"):
            return os.path.normpath(f"{mount}/{path[len(root.rstrip('/')) :]}")
    return None


def can_make_groups(directory: str) -> bool:
    """Return whether this process could make a group below its own and move into it."""
    return os.access(directory, os.W_OK | os.X_OK) and os.access(f"{directory}/{MEMBERS}", os.W_OK)


def find(run_id: str) -> str | None:
    """Return the directory of a run's group, wherever in the tree this user made it; None where there is none.

    Raises OSError where it could not be looked for.
    """
    wanted, label = PREFIX + run_id, _LABEL + run_id
    home = own()
    if home and _is_ours(f"{home}/{wanted}"):
        return f"{home}/{wanted}"
    for _, mount in _mounts():
        for directory, names in _tree(mount):
            if wanted in names and _is_ours(f"{directory}/{wanted}"):
                return f"{directory}/{wanted}"
            if label in names and os.path.basename(directory).startswith(STANDBY) and _is_ours(directory):
                return directory
    return None


def label(group: str, run_id: str) -> None:
    """Let a group be found that was made before it was known for which run. Raises OSError."""
    os.mkdir(f"{group}/{_LABEL}{run_id}", 0o700)


def remove_standby(pid: int) -> None:
    """Remove the group of a child that stood by and has ended."""
    try:
        if home := own():
            remove(f"{home}/{STANDBY}{pid}")
    except OSError:
        return


def members(group: str) -> list[int]:
    """Return the processes in a group and in those below it, dead ones left out; none where it is gone.

    Raises OSError where it cannot be read.
    """
    lines = (line for directory, _ in _tree(group) for line in _lines(f"{directory}/{MEMBERS}"))
    return list(map(int, lines))


def move_here(group: str) -> None:
    """Move this process into a group. Raises OSError."""
    _write(f"{group}/{MEMBERS}", b"0")


def kill(group: str) -> None:
    """Kill all that is in a group and below it at once, so that no fork escapes; needs Linux 5.14.

    Raises OSError where that is not possible.
    """
    _write(f"{group}/cgroup.kill", b"1")


def remove(group: str) -> None:
    """Remove a group and those below it, unless something lives in them."""
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
    """Remove the empty groups of runs in a group, which wrappers left that were killed at their very end."""
    oldest = time.time() - OLD_S
    for name in files.names(directory):
        try:
            if name.startswith(PREFIX) and os.stat(f"{directory}/{name}").st_mtime < oldest:
                remove(f"{directory}/{name}")
        except OSError:
            continue  # another wrapper has


def _mounts() -> Iterator[tuple[str, str]]:
    """Yield which part of the tree of groups is mounted where."""
    for line in _lines("/proc/self/mountinfo"):
        fields, _, source = line.partition(" - ")
        if source.startswith("cgroup2 "):
            root, mount = fields.split()[3:5]
            yield root, mount.replace("\\040", " ")


def _lines(path: str) -> list[str]:
    """Read a file of the kernel's; nothing when it is gone. Raises OSError."""
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
