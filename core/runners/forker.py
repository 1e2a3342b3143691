"""A preloaded wrapper that forks one process per run: with many runs, loading is most of the cost of starting one.

Requests come through a socket, one run at a time. It exits when the socket closes, which happens however its owner
ends; forked wrappers keep running.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence

from . import standby

TYPE_CHECKING = False  # like typing's
if TYPE_CHECKING:
    import signal
    import socket
    from subprocess import Popen
else:
    import _signal as signal

OPTION = "--fork"
"""The wrapper's only argument when it is started by this module."""
ANSWER_S = 10.0
"""Seconds it may take to load or fork; after that a wrapper is started without it."""
_LARGEST = 128 * 1024
"""Most bytes of a run's arguments."""


class Forker:
    """The owner's side: starts the process with the first run, and again if it has died. Use it in one thread at a
    time.
    """

    def __init__(self) -> None:
        self._process: Popen[bytes] | None = None
        self._socket: socket.socket | None = None
        self._environment: Mapping[str, str] = {}

    def fork_off(self, arguments: Sequence[str], environment: Mapping[str, str]) -> int | None:
        """Return the pid of a run's wrapper; None if it may not exist and another one must be started."""
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
        """Stop the process."""
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
    """Fork a process for each requested run; return the run's arguments in it, and an empty list here at the end."""
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # the kernel reaps them
    try:
        while request := os.read(0, _LARGEST):
            pid = os.fork()
            if pid == 0:
                signal.signal(signal.SIGCHLD, signal.SIG_DFL)
                os.setsid()
                return os.fsdecode(request).split("\0")
            os.write(0, b"%d" % pid)
    except OSError:
        pass  # the owner has ended, or starts wrappers itself now
    return []
