"""After any end of the deck, by a signal, an error or hanging, the terminal is restored, and the runs continue."""

from __future__ import annotations

import os
import re
import shlex
import signal
import subprocess
import sys
import termios
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path

import pytest
from subdeck.core.demo import playground
from subdeck.tui.terminal.rescue import SIGNALS, written

from tests.core.command_line import SUBDECK
from tests.waiting import wait_until

from .terminal import ESC, KEEP, Pty

pytestmark = pytest.mark.processes

MODE = re.compile(rb"\x1b\[\?([0-9;]+)([hl])|\x1b\[([<>])[0-9;]*u")
QUERY, SUPPORTED = b"\x1b[?2048$p", b"\x1b[?2048;2$y"
"""The query whether the terminal reports its size in the input, and a yes: then mouse reports are in pixels."""
ON_BEFORE = {b"7", b"25"}
"""Modes of a terminal that are on at first: lines wrap, and there is a cursor."""
FAULTS = {
    "timer": "self.set_timer(0.3, lambda: 1 / 0)",
    "memory": "self.set_timer(0.3, lambda: bytes(1 << 62))",
    "exit": "self.set_timer(0.3, lambda: sys.exit(3))",
    "output": "self.set_timer(0.3, lambda: self._driver.write(5))",
    "input": "self._driver.process_message = None",
}
"""Faults by their place in the app: in a callback, and in the threads that write and read."""
HANGS = {"sleep": "time.sleep(600)", "loop": "[None for _ in iter(int, 1)]"}
WRITES = {
    number: "(written := self._driver._writer_thread.write)('-written-'), "
    "(lock := self._driver._writer_thread._queue.mutex).acquire(), "
    f"signal.raise_signal({int(number)}), [None for _ in range(1000)], lock.release()"
    for number in (signal.SIGTSTP, signal.SIGCONT)
}
"""A signal arrives while the app holds the lock of its output."""
GO = "go"
WHEN_TOLD = f"told = self.set_interval(0.05, lambda: os.path.exists('{GO}') and (told.stop(),"
"""Does something once there is a file of that name."""
PROGRAM = """
import os, signal, sys, time
from subdeck.tui import main
from subdeck.tui.app import SubdeckApp

mount = SubdeckApp.on_mount
def on_mount(self):
    mount(self)
    {does}
SubdeckApp.on_mount = on_mount
sys.argv[1:] = []
main.program()
"""


class Shell(Pty):
    """A shell that has started a program and stays on the terminal after it."""

    def __init__(self, argv: Sequence[str], cwd: Path) -> None:
        super().__init__(["sh", "-c", KEEP, "sh", *argv], cwd)
        self.before = termios.tcgetattr(self._master)

    @property
    def pid(self) -> int:
        shell = str(self._program.pid)
        return int(Path("/proc", shell, "task", shell, "children").read_text())

    @property
    def modes(self) -> tuple[set[bytes], int]:
        """The modes that are on, and how many requests for reporting keys were not withdrawn."""
        on, keyboards = set(ON_BEFORE), 0
        for numbers, switch, keyboard in MODE.findall(self.written):
            for number in filter(None, numbers.split(b";")):
                (on.add if switch == b"h" else on.discard)(number)
            keyboards += {b">": 1, b"<": -1, b"": 0}[keyboard]
        return on, keyboards

    @property
    def settings(self) -> list[object]:
        return termios.tcgetattr(self._master)

    def open(self, shown: bytes = b"repo-scout") -> None:
        """Wait until the deck is drawn and has set up the terminal, which claims to support everything."""
        self.until(QUERY)
        os.write(self._master, SUPPORTED)
        self.until(b"\x1b[?2048h")
        self.until(shown)
        assert {b"1049", b"1003", b"1004", b"1016", b"2004"} <= self.modes[0] and self.modes[1] == 1
        assert self.before != self.settings

    def assert_restored(self, code: int) -> None:
        self.until(f"[exit code {code}]".encode())
        self.assert_as_before()
        assert self.written.rindex(b"\x1b[?1049l") < self.written.rindex(b"[exit code")

    def until_restored(self) -> None:
        def is_restored() -> bool:
            self.until(b"")  # reads the pending output
            return (self.before, (ON_BEFORE, 0)) == (self.settings, self.modes)

        wait_until(is_restored, "the terminal to be restored")

    def assert_as_before(self) -> None:
        assert (self.before, (ON_BEFORE, 0)) == (self.settings, self.modes)


@pytest.fixture
def shell(shop: Path) -> Iterator[Callable[..., Shell]]:
    opened: list[Shell] = []

    def start(argv: Sequence[str] = SUBDECK, cwd: Path = shop) -> Shell:
        opened.append(Shell(argv, cwd))
        return opened[-1]

    yield start
    for one in opened:
        os.close(one._master)


ENDING = [
    *(signal.SIGHUP, signal.SIGQUIT, signal.SIGABRT, signal.SIGUSR1, signal.SIGUSR2, signal.SIGALRM, signal.SIGTERM),
    *(signal.SIGVTALRM, signal.SIGIO, signal.SIGRTMAX, signal.SIGINT),
]
"""By default each ends a process, and can be handled first."""


def test_each_signal_that_ends_a_process() -> None:
    """Every signal that can be handled is covered, unless Python ignores it or it is about a crash."""
    left = {signal.SIGKILL, signal.SIGPIPE, signal.SIGXFSZ, signal.SIGSEGV, signal.SIGBUS, signal.SIGFPE, signal.SIGILL}
    stopping = {signal.SIGSTOP, signal.SIGTSTP, signal.SIGTTIN, signal.SIGTTOU}
    for number in signal.valid_signals() - left - stopping - set(ENDING):
        done = subprocess.run(["sh", "-c", f"ulimit -c 0; kill -{int(number)} $$"])
        assert (done.returncode == -number) == (number in SIGNALS), number


@pytest.mark.parametrize("number", ENDING, ids=lambda number: number.name)
def test_a_signal(shell: Callable[..., Shell], number: signal.Signals) -> None:
    """The terminal is restored, and the exit code has the signal's number."""
    app = shell()
    app.open()
    os.kill(app.pid, number)
    app.assert_restored(128 + number)


def test_signals_that_end_nothing(shell: Callable[..., Shell]) -> None:
    """The deck continues after signals that Python ignores, or that are about something else."""
    app = shell()
    app.open()
    for number in (signal.SIGPIPE, signal.SIGXFSZ, signal.SIGWINCH, signal.SIGCHLD, signal.SIGURG):
        os.kill(app.pid, number)
    app.press(b"?")
    app.until(b"Keys")
    os.kill(app.pid, signal.SIGTERM)
    app.assert_restored(128 + signal.SIGTERM)


@pytest.mark.parametrize(
    ("hang", "number"), [("sleep", signal.SIGTERM), ("loop", signal.SIGHUP), ("loop", signal.SIGINT)]
)
def test_a_hanging_deck(shell: Callable[..., Shell], shop: Path, hang: str, number: signal.Signals) -> None:
    """A signal restores the terminal although the deck does nothing else."""
    does = f"{WHEN_TOLD} self._driver.write('-hangs-'), {HANGS[hang]}))"
    app = shell([sys.executable, "-P", "-c", PROGRAM.format(does=does)])
    app.open()
    (shop / GO).touch()
    app.until(b"-hangs-")
    os.kill(app.pid, number)
    app.assert_restored(128 + number)


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault(shell: Callable[..., Shell], fault: str) -> None:
    """An error that ends the deck restores the terminal, and the exit code marks it as internal."""
    app = shell([sys.executable, "-P", "-c", PROGRAM.format(does=FAULTS[fault])])
    if fault == "input":
        app.until(b"repo-scout")
        app.press(b"x")
    app.until(b"[exit code ")
    app.until(b"]\r\n")
    app.assert_as_before()
    assert b"[exit code 0]" not in app.written


def test_stopped_and_continued(shell: Callable[..., Shell]) -> None:
    """SIGTSTP restores the terminal, SIGCONT sets it up again and draws everything; it also does after a SIGSTOP."""
    app = shell()
    app.open()
    raw, modes = app.settings, app.modes
    for stop in (signal.SIGTSTP, signal.SIGSTOP) * 3:
        pid = app.pid
        os.kill(pid, stop)
        wait_until(lambda pid=pid: ") T " in Path(f"/proc/{pid}/stat").read_text(), "it to be stopped")
        if stop == signal.SIGTSTP:
            app.until(b"\x1b[?1049l")
            app.until(b"\x1b[?1004l")
            app.assert_as_before()
        else:
            termios.tcsetattr(app._master, termios.TCSANOW, app.before)  # as a shell does
        app._seen = len(app.written)
        os.kill(pid, signal.SIGCONT)
        app.until(QUERY)
        os.write(app._master, SUPPORTED)
        app.until(b"repo-scout")
        wait_until(lambda: app.settings == raw, "the settings of the app")
        app.press(b"?")
        app.until(b"Keys")
        app.until(b"\x1b[?2048h") if app.modes != modes else None
        assert app.modes == modes
        app.press(ESC)
        app.until(b"repo-scout")  # a stop discards typed keys that were not yet read
    os.kill(app.pid, signal.SIGQUIT)
    app.assert_restored(128 + signal.SIGQUIT)


@pytest.mark.parametrize("number", [signal.SIGTSTP, signal.SIGCONT], ids=lambda number: number.name)
def test_a_stop_in_the_midst_of_a_write(shell: Callable[..., Shell], shop: Path, number: signal.Signals) -> None:
    """The deck is stopped and continued while it writes to the terminal, and still answers keys afterwards."""
    app = shell([sys.executable, "-P", "-c", PROGRAM.format(does=f"{WHEN_TOLD} {WRITES[number]}))")])
    app.open()
    (shop / GO).touch()
    app.until_past(b"-written-")  # the deck sent its query and switched that mode on once before
    if number == signal.SIGTSTP:
        pid = app.pid
        wait_until(lambda: ") T " in Path(f"/proc/{pid}/stat").read_text(), "it to be stopped")
        app.until(b"\x1b[?1049l")
        app.until(b"\x1b[?1004l")
        app.assert_as_before()
        os.kill(pid, signal.SIGCONT)
    app.until(QUERY)
    os.write(app._master, SUPPORTED)
    app.until(b"\x1b[?2048h")  # keys are read again
    app.press(b"?")
    app.until(b"Keys")
    os.kill(app.pid, signal.SIGTERM)
    app.assert_restored(128 + signal.SIGTERM)


def rescuer_of(pid: int) -> Path:
    """Return the directory in `/proc` of the process that restores the terminal."""

    def found() -> list[Path]:
        rescuers: list[Path] = []
        for thread in Path(f"/proc/{pid}/task").iterdir():
            with suppress(OSError):  # a thread, or its process, has ended since
                children = [Path("/proc", each) for each in (thread / "children").read_text().split()]
                rescuers += [child for child in children if b"stty" in (child / "cmdline").read_bytes()]
        return rescuers

    wait_until(found, "the process that puts the terminal back")
    rescuer = found()[0]
    ignored = re.compile(r"SigIgn:\s*0*[^0\s]")
    wait_until(lambda: ignored.search((rescuer / "status").read_text()), "it to ignore signals")
    return rescuer


def has_ended(process: Path) -> bool:
    """Return whether it has ended; the reaper of orphans may leave a zombie for seconds."""
    try:
        return ") Z " in (process / "stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return True


CRASHES = pytest.mark.parametrize(
    "number", [signal.SIGKILL, signal.SIGSEGV, signal.SIGBUS], ids=lambda number: number.name
)


@CRASHES
def test_a_deck_that_is_killed(shell: Callable[..., Shell], number: signal.Signals) -> None:
    """The terminal is restored although the deck can do nothing more, and none of its processes is left."""
    app = shell(["sh", "-c", 'ulimit -c 0; exec "$@"', "sh", *SUBDECK])
    app.open()
    rescuer = rescuer_of(app.pid)
    os.kill(app.pid, number)
    app.until(f"[exit code {128 + number}]".encode())
    app.until_restored()
    wait_until(lambda: has_ended(rescuer), "its process to end")


def test_a_deck_that_is_killed_while_it_is_stopped(shell: Callable[..., Shell]) -> None:
    """Nothing is restored before, as the stopped process may continue."""
    app = shell()
    app.open()
    rescuer = rescuer_of(app.pid)
    os.kill(app.pid, signal.SIGSTOP)
    assert app.before != app.settings and rescuer.exists()
    os.kill(app.pid, signal.SIGKILL)
    app.until_restored()
    wait_until(lambda: has_ended(rescuer), "its process to end")


@pytest.mark.parametrize("signals", [(), (signal.SIGINT, signal.SIGQUIT, signal.SIGHUP, signal.SIGTERM)])
def test_the_rescuer_ends_with_the_deck(shell: Callable[..., Shell], signals: Sequence[signal.Signals]) -> None:
    """No signal ends it before, and after the deck's normal end it writes nothing to the terminal."""
    app = shell()
    app.open()
    rescuer = rescuer_of(app.pid)
    for number in signals:
        os.kill(int(rescuer.name), number)
    assert rescuer.exists()
    os.kill(app.pid, signal.SIGTERM)
    app.assert_restored(128 + signal.SIGTERM)
    assert not rescuer.exists()
    assert b"\x1b[?1049l" not in app.written.rpartition(b"[exit code")[2]


def test_a_shell_keeps_the_terminal_that_it_took_back(shop: Path) -> None:
    """If a shell with jobs owns the terminal by then, its settings are kept, and the modes are reset."""
    app = Shell(["setsid", "-c", "bash", "--norc", "--noprofile", "-i"], shop)
    try:
        app.until(b"bash-")
        os.write(app._master, f"PS1='ready> '; {shlex.join(SUBDECK)}\r".encode())
        app.open()
        shells = Path(f"/proc/{app.pid}/task/{app.pid}/children").read_text().split()
        rescuer = rescuer_of(int(shells[0]))
        os.kill(int(shells[0]), signal.SIGKILL)
        app.until(b"Killed")
        wait_until(lambda: has_ended(rescuer), "its process to end")
        app.until(b"")
        assert ON_BEFORE == app.modes[0] - {b"2004"}, "the line of the shell has pasting in brackets"
        os.write(app._master, b"echo a$((1 + 1))b\r")
        app.until(b"a2b")
        assert b"echo a$((1 + 1))b" in app.written, "what is typed is shown"
        os.write(app._master, b"exit\r")
        app.until(b"[exit code ")
    finally:
        os.close(app._master)


def test_the_settings_are_written_as_stty_does() -> None:
    """So that stty accepts them."""
    master, terminal = os.openpty()
    try:
        told = subprocess.run(["stty", "-g"], stdin=terminal, capture_output=True, text=True).stdout.strip()
        assert told == written(termios.tcgetattr(terminal))
    finally:
        os.close(master)
        os.close(terminal)


def test_a_demo_leaves_nothing(shell: Callable[..., Shell]) -> None:
    """A signal to a demo restores the terminal and removes its directory."""
    app = shell([*SUBDECK, "demo"])
    app.open(b"30 running")
    os.kill(app.pid, signal.SIGTERM)
    app.assert_restored(128 + signal.SIGTERM)
    assert not [name for name in os.listdir(os.environ["TMPDIR"]) if playground.PREFIX in name]
