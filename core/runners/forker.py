"""A wrapper that has loaded, and forks off one for each run: where many are started, loading is most of what they cost.

It is asked over a socket, for one run after the other. Where that is closed, because its owner has ended, however that
was, it ends; what it has forked off goes on.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence

from . import standby

TYPE_CHECKING = False  # as typing's
if TYPE_CHECKING:
    import signal
    import socket
    from subprocess import Popen
else:
    import _signal as signal

OPTION = "--fork"
"""The wrapper's only argument when it is started by this module."""
ANSWER_S = 10.0
"""How long it may take to load, and to fork; then a wrapper is started without it."""
_LARGEST = 128 * 1024
"""Bytes of the arguments of a run."""


class Forker:
    """The owner's side: it is started with the first run, and again after it has died. For one thread at a time."""

    def __init__(self) -> None:
        self._process: Popen[bytes] | None = None
        self._socket: socket.socket | None = None
        self._environment: Mapping[str, str] = {}

    def fork_off(self, arguments: Sequence[str], environment: Mapping[str, str]) -> int | None:
        """Return the pid of a wrapper for a run; None where there may be none, and another is to be started."""
        try:
            if self._socket is None or environment != self._environment:
                self.close()
                self._socket = self._start(environment)
            self._socket.send(b"\0".join(map(os.fsencode, arguments)))
            return int(self._socket.recv(64))
        except (OSError, ValueError):
            self.close()
            return None

    def close(self) -> None:
        """End it."""
        ours, process = self._socket, self._process
        self._socket = self._process = None
        if ours is not None:
            ours.close()
        if process is not None:
            process.kill()
            process.wait()

    def _start(self, environment: Mapping[str, str]) -> socket.socket:
        import socket
        from subprocess import DEVNULL, Popen

        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        try:
            ours.settimeout(ANSWER_S)
            self._process = Popen(
                (sys.executable, "-P", "-E", *standby.loading(), OPTION),
                stdin=theirs.fileno(),
                stdout=DEVNULL,
                stderr=DEVNULL,
                cwd="/",
                env={**environment, standby.MARK: standby.UNMARKED},
                start_new_session=True,
            )
        except BaseException:
            ours.close()
            raise
        finally:
            theirs.close()
        self._environment = environment
        return ours


def serve() -> list[str]:
    """Fork off a process for each run that is asked for, and return its arguments in there; here none, at last."""
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # they are reaped without us
    try:
        while request := os.read(0, _LARGEST):
            pid = os.fork()
            if pid == 0:
                signal.signal(signal.SIGCHLD, signal.SIG_DFL)
                os.setsid()
                return os.fsdecode(request).split("\0")
            os.write(0, b"%d" % pid)
    except OSError:
        pass  # its owner has gone, or starts wrappers by himself from now on
    return []
