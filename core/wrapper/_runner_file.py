"""`runner.json`: the machine and processes that hold the run; retried until it is written, and rewritten with the
agent.

Put together by hand, as a wrapper that waits in a queue loads no encoder: every value is a number, or text without
quotes and backslashes.
"""

from __future__ import annotations

import errno
import os

from .. import paths
from ..run import second_copy
from ..system import files, processes


class RunnerFile:
    def __init__(self, run_dir: str, tmux: tuple[str, ...]) -> None:
        """`tmux` is socket, session and window; empty for a process run."""
        self._run_dir = run_dir
        self._path = os.path.join(run_dir, paths.RUNNER)
        self._tmux = tmux
        self._child = ""
        self._is_written = False
        self.trouble: OSError | None = None
        """The first error on writing it."""

    def write(self) -> None:
        """Write the file if the disk allows; otherwise `try_again` retries."""
        try:
            content = self._content().encode()
            second_copy.write(self._run_dir, paths.RUNNER, content)
            files.write_whole(self._path, content)
            self._is_written = True
        except OSError as error:
            self._is_written = False
            self.trouble = self.trouble or error

    def try_again(self) -> None:
        if not self._is_written:
            self.write()

    def add_child(self, pid: int, started: int | None) -> None:
        self._child = f',"childPid":{pid}' + (f',"childPidStarted":{started}' if started else "")
        self.write()

    def _content(self) -> str:
        """Return the content; raise OSError if the kernel does not identify this process: half of that could be
        another's.
        """
        boot_id, pid = processes.boot_id(), os.getpid()
        started = processes.start_time(pid)
        if not boot_id or started is None:
            raise OSError(errno.ENODATA, "cannot read boot and process information from the kernel", "/proc")
        pane = ""
        if self._tmux:
            values = (*self._tmux, os.environ.get("TMUX_PANE", ""))
            names = dict(zip(("socket", "session", "window", "pane"), values, strict=True))
            pane = ',"tmux":{' + ",".join(f'"{key}":"{_bare(value)}"' for key, value in names.items()) + "}"
        return (
            f'{{"kind":"{"tmux" if self._tmux else "process"}","host":"{_bare(processes.host())}",'
            f'"machineId":"{_bare(processes.machine_id())}","bootId":"{_bare(boot_id)}",'
            f'"pidNamespace":"{_bare(processes.pid_namespace())}",'
            f'"pid":{pid},"pidStarted":{started}{self._child}{pane}}}'
        )


def _bare(text: str) -> str:
    return "".join(char for char in text if char.isascii() and char.isprintable() and char not in '"\\')
