"""The child process: its start, its output pipes, its end."""

from __future__ import annotations

import fcntl
import os
import signal
import subprocess
from collections.abc import Iterator

from ..agents.base import Command
from ..system import processes

CHUNK = 256 * 1024
"""Bytes read from a pipe at a time."""


class Child:
    """One running child in a session of its own, so that a key typed in its pane reaches the wrapper only."""

    def __init__(self, command: Command, cwd: str, prompt: str) -> None:
        """Start it with the file `prompt` as stdin. Raises OSError with the file that is to blame."""
        environment = {name: value for name, value in os.environ.items() if name not in command.unset}
        environment |= command.env | {"PWD": cwd}
        with open(prompt, "rb") as stdin:
            self._process = subprocess.Popen(
                command.argv,
                stdin=stdin,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                cwd=cwd,
                env=environment,
                bufsize=0,
                start_new_session=True,
            )
        assert self._process.stdout and self._process.stderr  # noqa: S101 - for the type: both are pipes
        self.pid = self._process.pid
        self.started = processes.start_time(self.pid)
        self.stdout = self._process.stdout.fileno()
        self.stderr = self._process.stderr.fileno()
        for pipe in (self.stdout, self.stderr):
            os.set_blocking(pipe, False)
        _widen(self.stdout)

    def exit(self) -> int | None:
        """Return the return code (negative for a signal) once the child has ended."""
        return self._process.poll()

    def terminate(self) -> None:
        if self._process.poll() is None:
            self._process.send_signal(signal.SIGTERM)

    def close(self) -> None:
        for pipe in (self._process.stdout, self._process.stderr):
            if pipe:
                pipe.close()


def read_available(pipe: int) -> Iterator[bytes]:
    """Yield what a pipe holds now; an empty chunk is its end."""
    while True:
        try:
            chunk = os.read(pipe, CHUNK)
        except BlockingIOError:
            return
        yield chunk
        if not chunk:
            return


def _widen(pipe: int) -> None:
    """Let the child write more before it has to wait: fewer turns for its longest lines."""
    try:
        fcntl.fcntl(pipe, fcntl.F_SETPIPE_SZ, 1024 * 1024)
    except OSError:
        return  # above the user's limit: the default works as well
