"""Start a program with pipes as its streams, in a control group from its first moment if there is one.

Neither `subprocess` nor `os.posix_spawn` forks into a group, and moving a process into one takes the kernel 20 ms. The
process that starts others has one thread.
"""

from __future__ import annotations

import errno
import os
import signal
from collections.abc import Mapping, Sequence
from typing import NoReturn

from . import cgroup, processes

_NOT_MOVED = b"-"
"""Report of a child that could not be moved into its group; it continues outside."""
_IN_DIRECTORY, _IN_PROGRAM = b"d", b"p"
"""Reports of a child that could not enter its directory, or exec its program."""


class Child:
    """A program that was started here, in its own session."""

    def __init__(self, pid: int, stdout: int, stderr: int, stdin: int | None = None, *, is_grouped: bool) -> None:
        self.pid = pid
        self.stdout = stdout
        self.stderr = stderr
        self.stdin = stdin
        """The writing end of a pipe, if it has one."""
        self.is_grouped = is_grouped
        """Whether it is in the requested group."""
        self.returncode: int | None = None
        """A negative signal or an exit code, once `poll` has seen its end."""

    def poll(self) -> int | None:
        """Return its return code, without waiting; None while it runs."""
        if self.returncode is None:
            try:
                pid, status = os.waitpid(self.pid, os.WNOHANG)
            except ChildProcessError:  # its exit was collected with all others
                self.returncode = 0
            else:
                self.returncode = os.waitstatus_to_exitcode(status) if pid else None
        return self.returncode

    def terminate(self) -> None:
        """Ask it to end. Until `poll` has seen its end, its pid is not reused."""
        if self.poll() is None:
            os.kill(self.pid, signal.SIGTERM)

    def close(self) -> None:
        """Close the reading ends of its output; the holder of `stdin` closes that."""
        os.close(self.stdout)
        os.close(self.stderr)


def start(
    argv: Sequence[str],
    *,
    directory: str,
    environment: Mapping[str, str],
    stdin: int | None = None,
    group: str | None = None,
    one_output: bool = False,
) -> Child:
    """Start a program; it reads the descriptor `stdin`, or a pipe. The three standard streams of this process must be
    open. With `one_output` its stderr goes where its stdout does, in order.

    Raises OSError with the file at fault, ValueError for words that no program can be given; nothing is started then.
    """
    words = [os.fsencode(word) for word in argv]
    variables = {os.fsencode(name): os.fsencode(value) for name, value in environment.items()}
    if any(b"\0" in word for word in (*words, os.fsencode(directory), *variables, *variables.values())):
        raise ValueError("a null byte in the arguments or the environment of a program")
    if any(b"=" in name for name in variables):
        raise ValueError("the name of an environment variable has a = in it")
    programs = _programs(argv[0], environment)
    ours: list[int] = []
    theirs: list[int] = []
    try:
        for is_written in (False, False, False, True)[: 4 if stdin is None else 3]:
            ends = os.pipe()
            ours.append(ends[is_written])
            theirs.append(ends[not is_written])
        written, stdout, stderr, *stdin_ends = theirs
        streams = (stdin_ends[0] if stdin is None else stdin, stdout, stdout if one_output else stderr)
        mask = signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
        try:
            pid, is_grouped = _fork(group)
            if pid == 0:
                _become(programs, words, variables, directory, streams, written, mask, None if is_grouped else group)
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, mask)
    except BaseException:
        _close(ours)
        raise
    finally:
        _close(theirs)
    reported, *kept = ours
    report = _read_report(reported)
    if not (trouble := report.removeprefix(_NOT_MOVED)):
        return Child(pid, *kept, is_grouped=group is not None and not report)
    os.waitpid(pid, 0)
    _close(kept)
    number = int(trouble[1:])
    raise OSError(number, os.strerror(number), directory if trouble[:1] == _IN_DIRECTORY else argv[0])


def _programs(name: str, environment: Mapping[str, str]) -> list[str]:
    """Return the paths to try for a program."""
    if "/" in name:
        return [name]
    return [os.path.join(directory, name) for directory in os.get_exec_path(environment)]


def _fork(group: str | None) -> tuple[int, bool]:
    """Fork, into a group if possible; return the child's pid, 0 in the child, and whether it is in the group."""
    if group:
        try:
            return cgroup.fork_into(group), True
        except OSError:
            pass  # an older kernel, or a sandbox that does not know the call
    return os.fork(), False


def _become(
    programs: Sequence[str],
    argv: list[bytes],
    environment: Mapping[bytes, bytes],
    directory: str,
    streams: Sequence[int],
    report: int,
    mask: set[int],
    group: str | None,
) -> NoReturn:
    """Become the program, in the child that was forked for it, or report why that fails; `group` is still to be
    entered.

    Signals are blocked: no handler of this process may run here.
    """
    trouble = _IN_DIRECTORY
    try:
        if group and not _enter(group):
            os.write(report, _NOT_MOVED)
        for number, descriptor in enumerate(streams):
            os.dup2(descriptor, number)
        os.dup2(report, len(streams), inheritable=False)
        report = len(streams)
        processes.close_inherited(above=report)
        os.chdir(directory)
        trouble = _IN_PROGRAM
        os.setsid()
        signal.set_wakeup_fd(-1)
        for number in (signal.SIGPIPE, signal.SIGXFSZ):  # which Python ignores
            signal.signal(number, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        failed: OSError | None = None
        for program in programs:
            try:
                os.execve(program, argv, environment)  # noqa: S606 - as every agent is
            except OSError as error:
                if not failed or error.errno not in (errno.ENOENT, errno.ENOTDIR):
                    failed = error
        raise failed or FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT))
    except OSError as error:
        os.write(report, trouble + str(error.errno).encode())
    finally:
        os._exit(127)


def _enter(group: str) -> bool:
    try:
        cgroup.move_here(group)
    except OSError:
        return False
    return True


def _read_report(descriptor: int) -> bytes:
    """Read a child's report, until it has become its program or has ended, and close the pipe."""
    reported = b""
    while part := os.read(descriptor, 64):
        reported += part
    os.close(descriptor)
    return reported


def _close(descriptors: Sequence[int]) -> None:
    for descriptor in descriptors:
        os.close(descriptor)
