"""Restore the terminal after any end of the app: by a signal, by an error that Textual does not see, or hanging.

If this process is killed or crashes, a tiny process restores the terminal. It waits at a pipe that only this process
holds open, and that tells it whether the app is drawn. It stays in the app's process group: once a shell has the
terminal again, the kernel refuses to change the settings, which are the shell's by then, but allows the sequences that
leave screen, mouse and modes.
"""

from __future__ import annotations

import fcntl
import os
import signal
import termios
import threading
from collections.abc import Generator
from contextlib import contextmanager, suppress
from time import monotonic, sleep
from typing import TYPE_CHECKING, Any

from .driver import SleepingDriver

if TYPE_CHECKING:
    from textual.app import App

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
"""If a shell owns the terminal now, the kernel refuses the change of settings, or stops stty, which is then killed."""
_SHELL = "/bin/sh"
LEAVE_S = 0.2
"""Seconds that the process gets to end."""
_DRAWN, _AWAY = b"1\n", b"0\n"


class Rescuer:
    """Holds the pipe; without one the app runs anyway."""

    def __init__(self, terminal: int, settings: list[Any], parting: bytes) -> None:
        """Begin, with the settings of `terminal` before the app, and the sequence written at its end, `parting`."""
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
        """Report whether the terminal is set up for the app."""
        if self._pipe >= 0:
            with suppress(OSError):
                os.write(self._pipe, _DRAWN if is_drawn else _AWAY)

    def end(self) -> None:
        """End: the terminal is restored."""
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


# --- restoring the terminal ------------------------------------------------------------------------------------------

# pyright: reportPrivateUsage=false

GRACE_S = 1.0
"""Seconds that the app gets to leave the terminal on its own; after that it counts as hung."""
END_S = 10.0
"""Seconds that the process gets to end once the terminal is restored: a demo still removes its directory."""
WRITE_S = 0.5
"""Seconds that a terminal gets to read the last sequence: it may be stopped, or gone."""
FAULT = 70
"""Exit code after an unexpected error."""
SIGNALS = signal.valid_signals() - {
    *(signal.SIGKILL, signal.SIGSTOP, signal.SIGTSTP, signal.SIGTTIN, signal.SIGTTOU, signal.SIGCONT),
    *(signal.SIGCHLD, signal.SIGWINCH, signal.SIGURG),
    # A Python handler would return into the fault forever.
    *(signal.SIGSEGV, signal.SIGBUS, signal.SIGFPE, signal.SIGILL),
}
"""Signals that end a process, and can be handled first."""
RESTORE = (
    b"\x1b\\"  # ends a sequence that was cut off
    b"\x1b[?2026l\x1b[?2004l\x1b[?7h\x1b[?2048l"
    b"\x1b[?1016l\x1b[?1000l\x1b[?1003l\x1b[?1015l\x1b[?1006l"
    b"\x1b[0m\x1b[<u\x1b[?1049l\x1b[?25h\x1b[?1004l"
)
"""Synchronized output, bracketed paste, wrapping, in-band resize, mouse, colours, keyboard, screen, cursor, focus: as
`LinuxDriver.stop_application_mode` writes it, and modes it omits.
"""


class _Keeper:
    """Waits in a thread for signals, which arrive even if the loop hangs, and for faults of threads."""

    def __init__(self, app: App[Any], parting: str) -> None:
        self.code: int | None = None
        """The exit code for a forced end; None otherwise."""
        self._app = app
        self._parting = RESTORE + parting.encode()
        self._settings = termios.tcgetattr(0)
        self._terminal = fcntl.fcntl(2, fcntl.F_DUPFD_CLOEXEC, 3)
        self._reader, self._writer = os.pipe2(os.O_CLOEXEC)
        os.set_blocking(self._writer, False)
        self._former: dict[int, Any] = {}
        self._former_hook = threading.excepthook
        self._rescuer: Rescuer | None = None

    @property
    def is_drawn(self) -> bool:
        return isinstance(driver := self._app._driver, SleepingDriver) and driver.is_drawing

    def begin(self) -> None:
        signal.set_wakeup_fd(self._writer, warn_on_full_buffer=False)
        for number in SIGNALS:
            # Signals that a shell, nohup or Python ignores stay ignored.
            if signal.getsignal(number) is signal.SIG_DFL:
                self._former[number] = signal.signal(number, lambda _number, _frame: None)
        threading.excepthook = self._note
        threading.Thread(target=self._watch, name="subdeck-signals", daemon=True).start()

    def end(self) -> None:
        threading.excepthook = self._former_hook
        for number, handler in self._former.items():
            signal.signal(number, handler)
        signal.set_wakeup_fd(-1)
        if self.is_drawn:
            self._restore()
        self._take_leave()

    def _tell(self) -> None:
        if self._rescuer:
            self._rescuer.tell(is_drawn=self.is_drawn)

    def _take_leave(self) -> None:
        """Prevent any further restoring."""
        SleepingDriver.listeners.clear()
        if self._rescuer:
            self._rescuer.end()

    def _note(self, ended: threading.ExceptHookArgs) -> None:
        self._former_hook(ended)
        if ended.thread is not None and ended.thread.name == "textual-output":
            os.write(self._writer, b"\0")  # drawing has stopped, and the loop soon waits for it

    def _watch(self) -> None:
        # In this thread: the start does not wait for it.
        self._rescuer = Rescuer(self._terminal, self._settings, self._parting)
        SleepingDriver.listeners.append(self._tell)
        self._tell()
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTTOU})  # another process may own the terminal by now
        self.code = self._next_code()
        # Textual's own way first, but a second signal skips it.
        self._app.call_later(self._app.exit, None, self.code)
        impatient = threading.Thread(target=self._next_code, daemon=True)
        impatient.start()
        deadline, was_drawn, is_restored = monotonic() + GRACE_S, False, False
        while monotonic() < deadline and impatient.is_alive() and not is_restored:
            impatient.join(0.02)
            is_restored = was_drawn and not self.is_drawn
            was_drawn = was_drawn or self.is_drawn
        if is_restored:
            impatient.join(END_S)
        if self.is_drawn:
            self._restore()
        self._take_leave()
        os._exit(self.code)

    def _next_code(self) -> int:
        """Wait for the app's forced end; return the exit code."""
        while True:
            number = os.read(self._reader, 1)[0]
            if not number:
                return FAULT
            # ctrl-C is for the program that the terminal was lent to.
            if number in self._former or (number == signal.SIGINT and self.is_drawn):
                return 128 + number

    def _restore(self) -> None:
        """Restore the terminal without Textual, which writes nothing more to it."""
        with suppress(OSError):
            if os.tcgetpgrp(self._terminal) != os.getpgrp():
                return  # a shell has it
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, 2)
        with suppress(termios.error):
            termios.tcsetattr(self._terminal, termios.TCSANOW, self._settings)
            termios.tcflush(self._terminal, termios.TCIFLUSH)
        writing = threading.Thread(target=self._part, daemon=True)
        writing.start()
        writing.join(WRITE_S)

    def _part(self) -> None:
        with suppress(OSError):
            os.write(self._terminal, self._parting)


@contextmanager
def kept_terminal(app: App[Any], parting: str = "") -> Generator[_Keeper]:
    """Restore the terminal after an app inside, for any kind of end, and write `parting` to it.

    A signal whose default is to end the process makes the app exit, with 128 plus its number as the `code` of the
    yielded object. If the app has not exited after a second, the terminal is restored and the process ended directly.
    """
    keeper = _Keeper(app, parting)
    keeper.begin()
    try:
        yield keeper
    finally:
        keeper.end()
