"""Programs in tmux panes on a private server, driven and read through one control-mode client.

A key or a look starts no process, and a look follows each piece of output: times do not depend on polling.
"""

from __future__ import annotations

import contextlib
import os
import select
import shlex
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence

from msgspec import Struct
from subdeck.core.system import processes

SIZE = (120, 30)
"""Columns and rows of each pane."""
APP = os.path.join(os.path.dirname(sys.executable), "subdeck")
MINIMAL = (sys.executable, "-P", os.path.join(os.path.dirname(__file__), "minimal_app.py"))
PATIENCE = 60.0
"""Seconds to wait for a screen."""
OPTIONS = ("status off", "default-terminal tmux-256color", "escape-time 0", "remain-on-exit on")


class Screen(Struct, frozen=True):
    at: float
    """Monotonic seconds after tmux's report: an upper bound, some tenths of a millisecond late."""
    text: str

    @property
    def lines(self) -> list[str]:
        return self.text.split("\n")


class PaneError(Exception):
    """A program did not show the expected screen; the text has its screen."""


class Panes:
    """A private tmux server; leaving the context ends it with all its processes."""

    def __init__(self, size: tuple[int, int] = SIZE) -> None:
        self._directory = tempfile.TemporaryDirectory()
        argv = ("tmux", "-u", "-S", os.path.join(self._directory.name, "socket"), "-f", os.devnull)
        environment = {name: value for name, value in os.environ.items() if name not in ("TMUX", "TMUX_PANE")}
        self._client = subprocess.Popen(
            (*argv, "-C", "new-session", "cat"),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=environment | {"LANG": "C.UTF-8", "COLORTERM": "truecolor"},
            bufsize=0,
        )
        assert self._client.stdout
        os.set_blocking(self._client.stdout.fileno(), False)
        self._rest = b""
        self._replies: list[list[str]] = []
        self._reply: list[str] | None = None
        self._foreign = False
        """Inside the reply to another's command: the first session's own."""
        self.told: dict[str, float] = {}
        """Pane -> time of its last output."""
        self._pids: list[int] = []
        for option in OPTIONS:
            self.command(f"set-option -g {option}")
        self.command("refresh-client -C {}x{}".format(*size))

    def __enter__(self) -> Panes:
        return self

    def __exit__(self, *_: object) -> None:
        assert self._client.stdin and self._client.stdout
        self._client.stdin.write(b"kill-server\n")
        os.set_blocking(self._client.stdout.fileno(), True)
        self._client.communicate(timeout=PATIENCE)
        for pid in self._pids:
            end(pid)
        self._directory.cleanup()

    def open(self, *argv: str, cwd: str) -> Pane:
        """Start a program in a new pane."""
        started = time.monotonic()
        # A single word would be a shell command, with the shell's pid.
        words = ("new-window", "-P", "-F", "#{pane_id} #{pane_pid}", "-c", cwd, "--", "env", *argv)
        pane, pid = self.command(shlex.join(words))[0].split()
        self._pids.append(int(pid))
        return Pane(self, pane, int(pid), started)

    def command(self, line: str) -> list[str]:
        """Give tmux a command; return its reply."""
        assert self._client.stdin
        self._client.stdin.write(line.encode() + b"\n")
        while not self._replies:
            self.listen(PATIENCE)
        return self._replies.pop(0)

    def screens(self, panes: Sequence[Pane], seconds: float) -> Iterator[tuple[Pane, Screen]]:
        """Yield the screens of some panes now and after each piece of their output, for so long."""
        until = time.monotonic() + seconds
        seen = dict.fromkeys(panes, -1.0)
        while (left := until - time.monotonic()) > 0:
            news = [pane for pane in panes if pane.wrote_at != seen[pane]]
            for pane in news:
                seen[pane] = pane.wrote_at
                yield pane, pane.look()
            if not news:
                self.listen(left)

    def wait(self, seconds: float) -> None:
        """Handle tmux's reports for so long; sleeping instead would block the programs in the panes."""
        until = time.monotonic() + seconds
        while (left := until - time.monotonic()) > 0:
            self.listen(left)

    def listen(self, seconds: float) -> None:
        """Handle tmux's reports, waiting at most this long for them."""
        assert self._client.stdout
        descriptor = self._client.stdout.fileno()
        if not select.select((descriptor,), (), (), max(0.0, seconds))[0]:
            return
        now = time.monotonic()
        if not (said := os.read(descriptor, 1 << 20)):
            raise PaneError("tmux went away")
        *lines, self._rest = (self._rest + said).split(b"\n")
        for line in lines:
            self._hear(line.decode("utf-8", "replace"), now)

    def _hear(self, line: str, now: float) -> None:
        word, _, rest = line.partition(" ")
        if word == "%begin":
            self._reply, self._foreign = [], not rest.endswith(" 1")
        elif word in ("%end", "%error") and self._reply is not None:
            if word == "%error":
                raise PaneError("\n".join(self._reply))
            if not self._foreign:
                self._replies.append(self._reply)
            self._reply = None
        elif self._reply is not None:
            self._reply.append(line)
        elif word == "%output":
            self.told[rest.partition(" ")[0]] = now


class Pane:
    """One program; `pid` is its own."""

    def __init__(self, panes: Panes, name: str, pid: int, started: float) -> None:
        self._panes = panes
        self._name = name
        self.pid = pid
        self.started = started
        """Just before tmux was asked to start it."""

    def look(self) -> Screen:
        """Return the current screen."""
        lines = self._panes.command(f"capture-pane -p -t {self._name}")
        return Screen(time.monotonic(), "\n".join(lines))

    def press(self, *keys: str) -> float:
        """Press keys by tmux's names; return the time."""
        now = time.monotonic()
        self._panes.command(f"send-keys -t {self._name} {shlex.join(keys)}")
        return now

    def wheel(self, down: bool, column: int, row: int) -> float:
        """Turn the mouse's wheel by one notch over a cell, both from 1."""
        report = f"\x1b[<{65 if down else 64};{column};{row}M"
        return self.press("-H", *(f"{byte:02x}" for byte in report.encode()))

    @property
    def wrote_at(self) -> float:
        """Time of its last output, in monotonic seconds."""
        return self._panes.told.get(self._name, 0.0)

    def until(self, shown: Callable[[Screen], object], what: str, patience: float = PATIENCE) -> Screen:
        """Wait for a screen; raise PaneError if it does not appear."""
        for _, screen in self._panes.screens((self,), patience):
            if shown(screen):
                return screen
        raise PaneError(f"no {what} within {patience:.0f} s:\n{self.look().text}")

    def until_wrote(self, since: float, patience: float) -> None:
        """Wait for output later than a moment."""
        given_up = time.monotonic() + patience
        while self.wrote_at <= since and (left := given_up - time.monotonic()) > 0:
            self._panes.listen(left)

    def until_quiet(self, seconds: float, patience: float = PATIENCE) -> None:
        """Wait until there was no output for so long."""
        given_up = time.monotonic() + patience
        while time.monotonic() < given_up:
            left = self.wrote_at + seconds - time.monotonic()
            if left <= 0:
                return
            self._panes.listen(left)

    def close(self) -> None:
        self._panes.command(f"kill-pane -t {self._name}")
        end(self.pid)


def end(pid: int) -> None:
    """Wait for the end of a program whose terminal was closed; kill it if it takes too long."""
    started, deadline = processes.start_time(pid), time.monotonic() + 5
    while started is not None and processes.is_alive(pid, started) and time.monotonic() < deadline + 2:
        if time.monotonic() > deadline:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        time.sleep(0.005)
