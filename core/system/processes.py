"""Linux processes: identity, descendants, run marks; and signals that cannot hit the wrong process.

A caller that must be certain that no process is left gets an OSError if `/proc` cannot be read, never an empty result.
Only the standard library's lightest modules: a wrapper that waits in a queue imports this.
"""

from __future__ import annotations

import errno
import os

from . import files

TYPE_CHECKING = False  # as typing's
if TYPE_CHECKING:
    import signal
    from collections.abc import Callable, Iterable, Mapping
else:
    import _signal as signal  # without the enums of `signal`: saves 0.7 MB in each waiting wrapper

RUN_MARK = "SUBDECK_RUN_ID"
"""Environment variable that every process of a run inherits."""


def boot_id() -> str:
    """Return the kernel's id of this boot; empty if `/proc` is missing."""
    return files.content("/proc/sys/kernel/random/boot_id").decode("ascii", "replace").strip()


def machine_id() -> str:
    """Return the machine id of this installation of the system; empty if it has none."""
    return files.content("/etc/machine-id").decode("ascii", "replace").strip()


def pid_namespace() -> str:
    try:
        return os.readlink("/proc/self/ns/pid")
    except OSError:
        return ""


def host() -> str:
    return os.uname().nodename


def start_time(pid: int) -> int | None:
    """Return when a process started, in clock ticks since boot; None if it does not exist. With the pid it is an
    identity.

    Raises OSError if that cannot be read.
    """
    fields = _stat(pid)
    return int(fields[_STARTED]) if fields else None


def is_alive(pid: int, started: int) -> bool:
    """Return whether the process that started at `started` is running; a zombie is not.

    If that cannot be read, the process counts as running.
    """
    try:
        fields = _stat(pid)
    except OSError:
        return True
    return bool(fields) and int(fields[_STARTED]) == started and not _is_dead(fields)


def living() -> dict[int, int]:
    """Return every living process, each with its parent. Raises OSError if `/proc` cannot be read."""
    stats = {pid: fields for pid in _pids() if (fields := _stat(pid))}
    return {pid: int(fields[_PARENT]) for pid, fields in stats.items() if not _is_dead(fields)}


def below(roots: Iterable[int], parents: Mapping[int, int]) -> list[int]:
    """Return all processes below `roots`, parents before children; `parents` is what `living` returned."""
    children: dict[int, list[int]] = {}
    for pid, parent in parents.items():
        children.setdefault(parent, []).append(pid)
    pids: list[int] = []
    level = list(roots)
    while level:
        level = [child for pid in level for child in children.get(pid, ())]
        pids += level
    return pids


def descendants(root: int) -> list[int]:
    """Return all living processes below `root`, parents before children. Raises OSError if `/proc` cannot be read."""
    return below([root], living())


def children() -> list[int]:
    """Return the children of this process, which has one thread, including zombies.

    Empty if the kernel has no such list. Until they are reaped, their pids and group ids are not reused.
    """
    own_pid = os.getpid()
    return [int(pid) for pid in files.content(f"/proc/{own_pid}/task/{own_pid}/children").split()]


def marked(run_id: str) -> list[int]:
    """Return all other living processes of this user with the mark of a run in their environment.

    Raises OSError if `/proc` cannot be read; a process that cannot be examined has no mark.
    """
    mark = f"{RUN_MARK}={run_id}".encode()
    own_pid = os.getpid()
    return [pid for pid in _pids() if pid != own_pid and mark in _content(pid, "environ").split(b"\0")]


def is_marked(pid: int, run_id: str) -> bool:
    """Return whether a process has the mark of a run in its environment. Raises OSError as `marked` does."""
    return f"{RUN_MARK}={run_id}".encode() in _content(pid, "environ").split(b"\0")


def has_open(pid: int, path: str) -> bool:
    """Return whether a process of this user has a file open."""
    try:
        file_status = os.lstat(path)
        for descriptor in os.listdir(f"/proc/{pid}/fd"):
            try:
                open_status = os.stat(f"/proc/{pid}/fd/{descriptor}")
            except OSError:
                continue  # closed by now
            if (open_status.st_dev, open_status.st_ino) == (file_status.st_dev, file_status.st_ino):
                return True
    except OSError:
        pass  # it is gone, or another user's
    return False


def name(pid: int) -> str:
    """Return the name of a process, from its program or as changed at run time; empty if it is gone."""
    return files.content(f"/proc/{pid}/comm").decode("utf-8", "replace").strip()


def arguments(pid: int) -> list[str]:
    """Return the command line of a process; empty if it is gone. Raises OSError if it cannot be read."""
    return os.fsdecode(_content(pid, "cmdline")).split("\0")


def wear_mark(run_id: str) -> None:
    """Overwrite the mark that this process was started with by a run's mark, where others see it; both have one
    length.
    """
    import ctypes

    getenv = ctypes.CDLL(None).getenv
    getenv.restype = ctypes.c_void_p
    there = os.environ.get(RUN_MARK, "")
    address = getenv(RUN_MARK.encode())
    if address and len(there) == len(run_id):
        ctypes.memmove(address, run_id.encode("ascii"), len(run_id))


def find_program(name: str) -> str | None:
    """Return the path of a program on PATH; None if it is not there."""
    paths = (os.path.join(directory, name) for directory in os.environ.get("PATH", os.defpath).split(os.pathsep))
    return next((path for path in paths if os.path.isfile(path) and os.access(path, os.X_OK)), None)


def send(pid: int, number: int, started: int | None = None) -> bool:
    """Signal a process if it started at `started`; return False if it is gone or may not be signalled.

    A pidfd keeps the pid from being reused in between; if the kernel gives none (too old, a sandbox, too many open
    files) the time between the comparison and the signal has to be short enough.
    """
    try:
        descriptor = os.pidfd_open(pid)
    except ProcessLookupError:
        return False
    except OSError:
        descriptor = -1
    try:
        if started is not None and start_time(pid) != started:
            return False
        if descriptor < 0:
            os.kill(pid, number)
        else:
            signal.pidfd_send_signal(descriptor, number)
        return True
    except OSError:
        return False
    finally:
        if descriptor >= 0:
            os.close(descriptor)


def catches(pid: int, number: int) -> bool:
    """Return whether a process handles a signal that would otherwise end it. Raises OSError as `marked` does."""
    for line in _content(pid, "status").splitlines():
        name, _, value = line.partition(b":")
        if name == b"SigCgt":
            return bool(int(value, 16) >> (number - 1) & 1)
    return False


def close_inherited(above: int = 2) -> None:
    """Close all descriptors except stdin, stdout and stderr: locks and pipes inherited from a parent process."""
    for descriptor in [int(name) for name in files.names("/proc/self/fd") if int(name) > above]:
        try:
            os.close(descriptor)
        except OSError:
            continue  # the descriptor of this listing


def reap(keep: int) -> None:
    """Collect the exits of orphans handed to this process; that of the child `keep` is left to its owner."""
    while True:
        try:
            exited = os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
        except ChildProcessError:
            return
        if exited is None or exited.si_pid == keep:
            return
        os.waitpid(exited.si_pid, os.WNOHANG)


def reap_all() -> bool:
    """Collect the exits of all children; return whether some have not ended yet."""
    try:
        while os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG):
            continue
    except ChildProcessError:
        return False
    return True


def become_subreaper() -> bool:
    """Make orphans among this process's descendants its children, so that `setsid` does not hide them."""
    import ctypes  # 5 ms and 1 MB: only for a wrapper that is about to start its agent

    set_child_subreaper = 36
    try:
        return ctypes.CDLL(None, use_errno=True).prctl(set_child_subreaper, 1, 0, 0, 0) == 0
    except (OSError, AttributeError):
        return False


def ending_with_parent(number: int) -> Callable[[], None]:
    """Return a function that a forked process calls to get a signal once this process is gone, even if killed."""
    import ctypes

    parent, libc, set_death_signal = os.getpid(), ctypes.CDLL(None, use_errno=True), 1

    def prepare() -> None:
        libc.prctl(set_death_signal, number, 0, 0, 0)
        if os.getppid() != parent:
            os.kill(os.getpid(), number)

    return prepare


_PARENT, _THREADS, _STARTED = 1, 17, 19
"""Fields of `/proc/<pid>/stat`, counted from the state on."""


def _pids() -> list[int]:
    pids = [int(entry) for entry in os.listdir("/proc") if entry.isdigit()]
    if os.getpid() not in pids:
        raise OSError(errno.ENOENT, "it does not show this process", "/proc")
    return pids


def _stat(pid: int) -> list[bytes]:
    """Return the fields of `/proc/<pid>/stat` from the state on; empty if the process is gone."""
    return _content(pid, "stat").rpartition(b") ")[2].split()


def _is_dead(fields: list[bytes]) -> bool:
    """Return whether a process has ended; a zombie with more than one thread only lost its first."""
    return fields[0] in (b"Z", b"X") and int(fields[_THREADS]) <= 1


def _content(pid: int, name: str) -> bytes:
    """Read a kernel file about a process; empty if the process is gone or another user's."""
    try:
        return files.read(f"/proc/{pid}/{name}")
    except OSError as error:
        if error.errno in _GONE:
            return b""
        raise


_GONE = frozenset({errno.ENOENT, errno.ESRCH, errno.EACCES, errno.EPERM})
