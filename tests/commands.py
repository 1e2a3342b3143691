"""Commands of subdeck, run by a loaded process: in a test of several commands their starts took longest."""

from __future__ import annotations

import json
import os
import secrets
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from threading import Thread

from .core.command_line import Done
from .isolation import MARKER

PROGRAM = Path(__file__).parent / "children" / "commands.py"
PATIENCE_S = 60.0
RUN_MARK = "SUBDECK_RUN_ID"
"""The mark of a run's processes, `processes.RUN_MARK`, repeated here to load nothing of subdeck."""


class Commands:
    """Runs each command in its own process, with this process's current environment.

    Its server process starts at the first use, and again after a test has ended all processes below this one.
    """

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None
        self._directory = tempfile.mkdtemp()
        self._address = ""
        self._environment = dict(os.environ)
        """The session's environment at the start of the server, not that of the first test that needs it."""

    def run(self, *words: str | bytes, cwd: Path, stdin: bytes = b"", **environment: str) -> Done:
        """Run one command to its end."""
        if self._process is None or self._process.poll() is not None:
            self.close()
            self._process = self._load()
        arguments = [os.fsdecode(word) for word in words]
        said = {"arguments": arguments, "directory": str(cwd), "environment": {**os.environ, **environment}}
        with (
            _pipe_of(stdin) as to_read,
            tempfile.TemporaryFile() as stdout,
            tempfile.TemporaryFile() as stderr,
            socket.socket(socket.AF_UNIX) as asked,
        ):
            asked.settimeout(PATIENCE_S)
            asked.connect(self._address)
            line = json.dumps(said).encode() + b"\n"
            sent = socket.send_fds(asked, [line], [to_read, stdout.fileno(), stderr.fileno()])
            asked.sendall(line[sent:])
            code = int(asked.recv(64))
            stdout.seek(0)
            stderr.seek(0)
            return Done(code, stdout.read().decode(), stderr.read().decode())

    def close(self) -> None:
        """End the server process."""
        process, self._process = self._process, None
        if process is not None:
            process.communicate()

    def _load(self) -> subprocess.Popen[bytes]:
        self._address = os.path.join(self._directory, secrets.token_hex(4))
        process = subprocess.Popen(
            [sys.executable, "-P", str(PROGRAM), self._address, "subdeck.core.wrapper"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            cwd=self._directory,
            env={**self._environment, MARKER: "-" * 16, RUN_MARK: "-" * 22},
        )
        assert process.stdout
        assert process.stdout.readline(), "it has not loaded"
        return process


@contextmanager
def _pipe_of(content: bytes) -> Iterator[int]:
    """Return the end of a pipe from which this content can be read; nothing requires reading it."""
    to_read, to_write = os.pipe()

    def feed() -> None:
        with suppress(BrokenPipeError), open(to_write, "wb") as pipe:
            pipe.write(content)

    feeding = Thread(target=feed)
    feeding.start()
    try:
        yield to_read
    finally:
        os.close(to_read)
        feeding.join()
