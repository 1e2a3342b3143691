"""A tiny process that puts the terminal back if this one is killed, or crashes, and can do so no more.

It waits at a pipe that this process alone holds open, and by which it is told whether the app is drawn. It stays in the
process group of the app: once a shell has taken the terminal back, the kernel refuses it the settings, which are the
shell's by then, and lets it write the sequences that leave screen, mouse and modes.
"""

from __future__ import annotations

import os
from contextlib import suppress
from time import monotonic, sleep
from typing import Any

_SCRIPT = r"""
trap '' HUP INT QUIT TERM TSTP TTIN TTOU USR1 USR2 ALRM
while read -r state; do drawn=$state; done
[ "$drawn" = 1 ] || exit 0
printf %b "$2"
(trap - TTOU; exec stty "$1" <&1) &
for _ in 1 2 3 4 5 6 7 8 9 10; do
    kill -0 $! || exit 0
    sleep 0.1
done
kill -KILL $!
"""
"""The kernel stops who sets a terminal that is a shell's by now, if it does not refuse it: so that is ended then."""
_SHELL = "/bin/sh"
LEAVE_S = 0.2
"""Seconds that it gets to go."""
_DRAWN, _AWAY = b"1\n", b"0\n"


class Rescuer:
    """Holds the pipe; where it cannot be had, the app goes on without."""

    def __init__(self, terminal: int, settings: list[Any], parting: bytes) -> None:
        """Begin, with the settings of `terminal` before the app, and what is `parting` from it."""
        self._pipe = self._pid = -1
        escaped = parting.replace(b"\\", b"\\\\").replace(b"\x1b", b"\\0033")
        try:
            reader, self._pipe = os.pipe2(os.O_CLOEXEC)
        except OSError:
            return
        os.set_blocking(self._pipe, False)
        streams = (
            (os.POSIX_SPAWN_DUP2, reader, 0),
            (os.POSIX_SPAWN_DUP2, terminal, 1),
            (os.POSIX_SPAWN_OPEN, 2, os.devnull, os.O_WRONLY, 0),
        )
        argv = (_SHELL, "-c", _SCRIPT, "terminal", written(settings), escaped)
        environment = {"PATH": os.environ.get("PATH", os.defpath), "PWD": "/"}
        try:
            self._pid = os.posix_spawn(_SHELL, argv, environment, file_actions=streams)
        except OSError:
            self.end()
        finally:
            os.close(reader)

    def tell(self, *, is_drawn: bool) -> None:
        """Say whether the terminal is set for the app."""
        if self._pipe >= 0:
            with suppress(OSError):
                os.write(self._pipe, _DRAWN if is_drawn else _AWAY)

    def end(self) -> None:
        """Take leave: the terminal is as it was."""
        self.tell(is_drawn=False)
        if self._pipe >= 0:
            os.close(self._pipe)
        self._pipe = -1
        until = monotonic() + LEAVE_S
        while self._pid >= 0 and monotonic() < until:
            if _has_gone(self._pid):
                self._pid = -1
            else:
                sleep(0.001)


def _has_gone(pid: int) -> bool:
    try:
        return os.waitpid(pid, os.WNOHANG)[0] != 0
    except ChildProcessError:
        return True


def written(settings: list[Any]) -> str:
    """Return settings of a terminal as `stty -g` writes them."""
    numbers = [*settings[:4], *(sign if isinstance(sign, int) else sign[0] for sign in settings[6])]
    return ":".join(f"{number:x}" for number in numbers)
