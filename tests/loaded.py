"""Start the wrappers of tests by forking one that has loaded, where their start is not what is tested."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from pathlib import Path

from subdeck.core import paths
from subdeck.core.runners import process, standby
from subdeck.core.runners.process import HasGone, WrapperCall
from subdeck.core.system import files

from .isolation import MARKER

PROGRAM = Path(__file__).parent / "children" / "loaded.py"
START_PROCESS = process._start_process
ANSWER_S = 60.0


class LoadedWrapper:
    """One such process for all tests of a session; it is started when it is first needed."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None
        self._socket, self._theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._socket.settimeout(ANSWER_S)
        self._owner = os.getpid()

    def start(self, call: WrapperCall) -> HasGone:
        """Do what `process._start_process` does; where a test has changed something about that, by it."""
        usual = (sys.executable, "-P", "-E", "-m", "subdeck.core.wrapper", *call.arguments)
        if call.argv != usual or os.getpid() != self._owner:  # a fork may have changed its mounts
            return START_PROCESS(call)
        self._process = self._process or self._load()
        umask = os.umask(0o077)
        os.umask(umask)
        order = {"arguments": call.arguments, "environment": dict(call.own_environment), "umask": umask}
        with (
            open(os.devnull, "rb+", buffering=0) as nowhere,
            open(os.path.join(call.run_dir, paths.STDERR), "ab", opener=files.open_private) as stderr,
        ):
            streams = (nowhere.fileno(), nowhere.fileno(), stderr.fileno())
            socket.send_fds(self._socket, [json.dumps(order).encode()], streams)
        return process._end_of(int(self._socket.recv(64)))

    def close(self) -> None:
        """End it."""
        self._socket.close()
        self._theirs.close()
        if self._process:
            self._process.wait()

    def _load(self) -> subprocess.Popen[bytes]:
        """Start it. By its last argument wrappers are recognized."""
        return subprocess.Popen(
            (sys.executable, "-P", "-E", str(PROGRAM), "subdeck.core.wrapper"),
            stdin=self._theirs.fileno(),
            stdout=subprocess.DEVNULL,
            cwd="/",
            env={**os.environ, MARKER: "-" * 16, standby.MARK: standby.UNMARKED},
        )
