"""What Linux says of processes: identity, descendants, marks; and signals that cannot hit a stranger.

Only the standard library's lightest modules: a wrapper that waits in a queue imports this.
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Iterable

from . import files

RUN_MARK = "SUBDECK_RUN_ID"
"""Environment variable that every process of a run inherits."""


def boot_id() -> str:
    """Return the kernel's id of this boot; empty where `/proc` is missing."""
    return files.content("/proc/sys/kernel/random/boot_id").decode("ascii", "replace").strip()


def pid_namespace() -> str:
    try:
        return os.readlink("/proc/self/ns/pid")
    except OSError:
        return ""


def host() -> str:
    return os.uname().nodename


def start_time(pid: int) -> int | None:
    """When a process started, in clock ticks since boot; None when there is none. With the pid it is an identity."""
    fields = _stat(pid)
    return int(fields[19]) if fields else None


def is_alive(pid: int, started: int) -> bool:
    """Return whether the process that started at `started` runs; one that only waits to be reaped does not."""
    fields = _stat(pid)
    return bool(fields) and int(fields[19]) == started and fields[0] != b"Z"


def descendants(root: int) -> list[int]:
    """All living processes below `root`, parents before children."""
    children: dict[int, list[int]] = {}
    for pid in _pids():
        fields = _stat(pid)
        if fields and fields[0] != b"Z":
            children.setdefault(int(fields[1]), []).append(pid)
    found: list[int] = []
    level = [root]
    while level:
        level = [child for pid in level for child in children.get(pid, ())]
        found += level
    return found


def marked(run_id: str) -> list[int]:
    """All living processes of this user, but this one, whose environment says that they belong to a run."""
    mark = f"{RUN_MARK}={run_id}".encode()
    own = os.getpid()
    return [pid for pid in _pids() if pid != own and mark in files.content(f"/proc/{pid}/environ").split(b"\0")]


def find_program(name: str) -> str | None:
    """Return the path of a program on PATH; None where there is none."""
    paths = (os.path.join(directory, name) for directory in os.environ.get("PATH", os.defpath).split(os.pathsep))
    return next((path for path in paths if os.path.isfile(path) and os.access(path, os.X_OK)), None)


def send(pid: int, number: int, started: int | None = None) -> bool:
    """Signal a process through a pidfd, only if it is the one that started at `started`; False when it is gone."""
    try:
        descriptor = os.pidfd_open(pid)
    except OSError:
        return False
    try:
        if started is not None and start_time(pid) != started:
            return False
        signal.pidfd_send_signal(descriptor, number)
        return True
    except OSError:
        return False
    finally:
        os.close(descriptor)


def end_all(alive: Callable[[], Iterable[int]], patience: float) -> list[int]:
    """End the processes that `alive` names: TERM, `patience` seconds, then KILL for up to 2 s; return the first."""
    first = list(alive())
    for pid in first:
        send(pid, signal.SIGTERM)
    deadline = time.monotonic() + patience
    left: list[int] = first
    while left and time.monotonic() < deadline:
        time.sleep(0.01)
        left = list(alive())
    deadline = time.monotonic() + 2.0
    while left and time.monotonic() < deadline:
        for pid in left:
            send(pid, signal.SIGKILL)
        time.sleep(0.005)
        left = list(alive())
    return first


def close_inherited() -> None:
    """Close all descriptors but stdin, stdout and stderr: locks and pipes that a parent of ours let us have."""
    for descriptor in [int(name) for name in files.names("/proc/self/fd") if int(name) > 2]:
        try:
            os.close(descriptor)
        except OSError:
            continue  # the one by which the directory was read


def reap(keep: int) -> None:
    """Collect the exits of orphans that were handed to this process; that of the child `keep` is left to its owner."""
    while True:
        try:
            exited = os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
        except ChildProcessError:
            return
        if exited is None or exited.si_pid == keep:
            return
        os.waitpid(exited.si_pid, os.WNOHANG)


def become_subreaper() -> bool:
    """Have orphans among this process's descendants handed to it, so that `setsid` does not hide them."""
    import ctypes  # 5 ms and 1 MB: only for a wrapper that is about to start its child

    set_child_subreaper = 36
    try:
        return ctypes.CDLL(None, use_errno=True).prctl(set_child_subreaper, 1, 0, 0, 0) == 0
    except (OSError, AttributeError):
        return False


def _pids() -> list[int]:
    return [int(name) for name in files.names("/proc") if name.isdigit()]


def _stat(pid: int) -> list[bytes]:
    """Fields of `/proc/<pid>/stat` from the state on; empty when the process is gone."""
    return files.content(f"/proc/{pid}/stat").rpartition(b") ")[2].split()
