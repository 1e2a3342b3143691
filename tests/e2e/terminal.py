"""Programs on real terminals: in tmux, read from their screen, or on a bare one, read byte by byte."""

from __future__ import annotations

import os
import re
import select
import signal
import subprocess
import termios
import time
from collections.abc import Callable, Sequence
from itertools import cycle
from pathlib import Path
from typing import ClassVar, TypeVar

from tests.waiting import wait_until

T = TypeVar("T")

KEEP = '"$@"; code=$?; echo "[exit code $code]"; while read -r _; do echo "[exit code $code]"; done'
"""A shell script that keeps the screen after the program has ended (tmux may never learn how it ended).

Enter prints the exit code once more.
"""
MODES = ("alternate_on", "mouse_any_flag", "mouse_sgr_flag", "cursor_flag", "keypad_flag", "insert_flag", "wrap_flag")
"""Of a pane: modes that a program may have left switched on or off."""
ENDED = re.compile(r"\[exit code (\d+)\]")

NO_CONFIGURATION = ("-f", os.devnull)


class Terminal:
    """Shows one program; its screen stays readable after the program has ended."""

    def __init__(self, name: str, argv: Sequence[str], cwd: Path, size: tuple[int, int] = (120, 30)) -> None:
        self._socket = name
        width, height = map(str, size)
        self._tmux(
            *NO_CONFIGURATION, "new-session", "-d", "-x", width, "-y", height, "-c", str(cwd),
            "--", "sh", "-c", KEEP, "sh", *argv, ";", "set-option", "-g", "status", "off",
        )  # fmt: skip

    def __enter__(self) -> Terminal:
        return self

    def __exit__(self, *_: object) -> None:
        subprocess.run(["tmux", "-L", self._socket, "kill-server"], stdin=subprocess.DEVNULL, capture_output=True)

    @property
    def screen(self) -> str:
        """The current screen, a line each, without trailing spaces."""
        return self._tmux("capture-pane", "-p")

    @property
    def pid(self) -> int:
        """The program's, not that of the shell around it."""
        shell = self._tmux("display-message", "-p", "#{pane_pid}").strip()
        return int(Path("/proc", shell, "task", shell, "children").read_text())

    @property
    def state(self) -> tuple[str, ...]:
        """The terminal's settings: its line discipline, and the screen's modes."""
        tty, *modes = self._tmux(
            "display-message", "-p", " ".join(f"#{{{name}}}" for name in ("pane_tty", *MODES))
        ).split()
        settings = subprocess.run(["stty", "-g", "-F", tty], check=True, capture_output=True, text=True).stdout
        return (settings.strip(), *modes)

    def click(self, column: int, row: int) -> None:
        """Click as a terminal reports it to a program that requested the mouse; both count from 1."""
        for end in "Mm":
            self._tmux("send-keys", "-l", f"\x1b[<0;{column};{row}{end}")

    def press(self, *keys: str) -> None:
        """Press keys, by tmux's names: `n`, `C-s`, `Enter`."""
        self._tmux("send-keys", *keys)

    def type(self, text: str) -> None:
        self._tmux("send-keys", "-l", "--", text)

    def paste(self, text: str) -> None:
        """Paste as a terminal does into a program that requested bracketed paste."""
        self._tmux("set-buffer", "--", text, ";", "paste-buffer", "-p")

    def resize(self, width: int, height: int) -> None:
        self._tmux("resize-window", "-x", str(width), "-y", str(height))

    def kill(self) -> None:
        """Kill the program with SIGKILL; the terminal may be restored after its end is printed."""
        os.kill(self.pid, signal.SIGKILL)
        ended = self.until(lambda: self._tmux("send-keys", "Enter") or ENDED.search(self.screen), "the program to end")
        assert isinstance(ended, re.Match)
        assert 128 + signal.SIGKILL == int(ended[1])

    @property
    def has_ended(self) -> bool:
        return ENDED.search(self.screen) is not None

    def exit_code(self) -> int:
        """Wait for the program's end."""
        return int(self.until(lambda: ENDED.search(self.screen), "the program to end")[1])

    def until(self, condition: Callable[[], T], what: str) -> T:
        """Wait for a condition; on failure show the screen."""
        try:
            return wait_until(condition, what)
        except AssertionError as error:
            raise AssertionError(f"{error}; the screen:\n{self.screen}") from None

    def until_shown(self, *texts: str) -> str:
        """Wait until one screen shows all these texts; return it."""

        def shown() -> str:
            screen = self.screen
            return screen if all(text in screen for text in texts) else ""

        return self.until(shown, f"{' and '.join(map(repr, texts))} on the screen")

    def until_hidden(self, text: str) -> None:
        self.until(lambda: text not in self.screen, f"{text!r} to leave the screen")

    def press_until_hidden(self, key: str, text: str) -> None:
        """Press a key, and once more after 2 s: the app drops the keys that are typed right behind a refused one."""
        pressed = float("-inf")

        def hidden() -> bool:
            nonlocal pressed
            if time.monotonic() - pressed > 2:
                pressed = time.monotonic()
                self.press(key)
            return text not in self.screen

        self.until(hidden, f"{text!r} to leave the screen by {key}")

    def _tmux(self, *words: str) -> str:
        # The environment is named: pytest's readline has put its own COLUMNS and LINES below Python's.
        done = subprocess.run(
            ["tmux", "-L", self._socket, *words],
            env=os.environ,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
        )
        assert done.returncode == 0, f"tmux {words[0]}: {done.stderr}"
        return done.stdout


ESC = b"\x1b[27u"
"""The whole key; a lone byte may be read as the beginning of the next one."""


class Pty:
    """A program on a terminal that records every byte; after its test it is killed if it is still running."""

    running: ClassVar[list[subprocess.Popen[bytes]]] = []

    def __init__(self, argv: Sequence[str], cwd: Path, **environment: str) -> None:
        self._master, slave = os.openpty()
        termios.tcsetwinsize(slave, (24, 80))
        self.written = b""
        self._seen = 0
        """Bytes that conditions ignore: those before the last key, and those passed."""
        self._program = subprocess.Popen(
            argv, cwd=cwd, stdin=slave, stdout=slave, stderr=slave, start_new_session=True,
            env=os.environ | {"TERM": "xterm-256color"} | environment,
        )  # fmt: skip
        Pty.running.append(self._program)
        os.close(slave)

    def until(self, text: bytes) -> None:
        self.until_true(lambda: text in self.written[self._seen :], f"{text!r} on the terminal")

    def until_true(self, condition: Callable[[], object], what: str) -> None:
        """Wait for a condition; read the program's output during that, or it would block."""

        def holds() -> object:
            if select.select([self._master], [], [], 0)[0]:
                self.written += os.read(self._master, 65536)
            return condition()

        wait_until(holds, what)

    def until_past(self, text: bytes) -> None:
        """Wait until a text came; from then on only the output behind it counts."""
        self.until(text)
        self._seen = self.written.index(text, self._seen) + len(text)

    def press(self, keys: bytes) -> None:
        self._seen = len(self.written)
        os.write(self._master, keys)

    def end(self) -> int:
        """Quit, and read the remaining output; a closing dialog drops keys typed before its end."""
        pressed, keys = 0.0, cycle((b"q", b"y"))  # quit, and yes if it asks

        def ended() -> bool:
            nonlocal pressed
            if time.monotonic() - pressed > 2:
                pressed = time.monotonic()
                self.press(next(keys))
            while select.select([self._master], [], [], 0)[0]:
                try:
                    self.written += os.read(self._master, 65536)
                except OSError:  # the other side is closed
                    break
            return self._program.poll() is not None

        wait_until(ended, "the program to end")
        os.close(self._master)
        return self._program.returncode
