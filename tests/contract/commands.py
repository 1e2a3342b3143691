"""Commands of subdeck, run by a process that has loaded it: in a test of several commands their starts took longest."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.core.command_line import Done

PROGRAM = Path(__file__).parents[1] / "children" / "commands.py"
PATIENCE_S = 60.0


class Commands:
    """Runs each command in a process of its own, with this process's environment of that moment."""

    def __init__(self, address: str) -> None:
        self._address = address

    def run(self, *words: str, cwd: Path, **environment: str) -> Done:
        """Run one command to its end."""
        said = {"arguments": words, "directory": str(cwd), "environment": {**os.environ, **environment}}
        with (
            open(os.devnull, "rb") as stdin,
            tempfile.TemporaryFile() as stdout,
            tempfile.TemporaryFile() as stderr,
            socket.socket(socket.AF_UNIX) as asked,
        ):
            asked.settimeout(PATIENCE_S)
            asked.connect(self._address)
            line = json.dumps(said).encode() + b"\n"
            sent = socket.send_fds(asked, [line], [stdin.fileno(), stdout.fileno(), stderr.fileno()])
            asked.sendall(line[sent:])
            code = int(asked.recv(64))
            stdout.seek(0)
            stderr.seek(0)
            return Done(code, stdout.read().decode(), stderr.read().decode())


@contextmanager
def loaded() -> Iterator[Commands]:
    """Start the process, and end it."""
    address = os.path.join(tempfile.mkdtemp(), "commands")
    with subprocess.Popen(
        [sys.executable, "-P", str(PROGRAM), address], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
        assert process.stdin and process.stdout
        assert process.stdout.readline(), "it has not loaded"
        yield Commands(address)
        process.stdin.close()
