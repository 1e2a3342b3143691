"""Start the wrappers of tests by forking a loaded process, unless their start itself is tested."""

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
CHANGES: dict[tuple[str, ...], str] = {}
"""By the command line of a wrapper: the code that changes it, from `factories.run_wrappers_with`."""


class LoadedWrapper:
    """The loaded process for all tests of a session. It starts at the first use, and again after a test has ended all
    processes below this one.
    """

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None
        self._socket: socket.socket | None = None
        self._owner = os.getpid()

    def start(self, call: WrapperCall) -> HasGone:
        """Start a wrapper like `process._start_process`, or by that if a test has changed the start."""
        usual = (sys.executable, "-P", "-E", "-c", standby.WRAPPER_PROGRAM, standby.WRAPPER, *call.arguments)
        change = CHANGES.get(call.argv, "")
        if (call.argv != usual and not change) or os.getpid() != self._owner:  # a fork may have changed its mounts
            return START_PROCESS(call)
        if self._socket is None or self._process is None or self._process.poll() is not None:
            self.close()
            self._socket = self._load()
        umask = os.umask(0o077)
        os.umask(umask)
        order = {
            "arguments": call.arguments,
            "environment": dict(call.own_environment),
            "umask": umask,
            "change": change,
        }
        with (
            open(os.devnull, "rb+", buffering=0) as nowhere,
            open(os.path.join(call.run_dir, paths.STDERR), "ab", opener=files.open_private) as stderr,
        ):
            streams = (nowhere.fileno(), nowhere.fileno(), stderr.fileno())
            socket.send_fds(self._socket, [json.dumps(order).encode()], streams)
        return process._end_of(int(self._socket.recv(64)))

    def close(self) -> None:
        """End the process."""
        if self._socket:
            self._socket.close()
        if self._process:
            self._process.wait()
        self._process = self._socket = None

    def _load(self) -> socket.socket:
        """Start the process and return its socket. Wrappers are recognized by its last argument."""
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        ours.settimeout(ANSWER_S)
        with theirs:
            self._process = subprocess.Popen(
                (sys.executable, "-P", "-E", str(PROGRAM), "subdeck.core.wrapper"),
                stdin=theirs.fileno(),
                stdout=subprocess.DEVNULL,
                cwd="/",
                env={**os.environ, MARKER: "-" * 16, standby.MARK: standby.UNMARKED},
            )
        return ours
