"""Keeps programs running in the foreground: one that ends is started again, until this process is told to end.

They go with it, however it ends. What they started in sessions of their own stays.
"""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from ...system.processes import ending_with_parent

ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
FIRST_WAIT_S, LONGEST_WAIT_S = 0.5, 15.0
"""Before a program that ended is started again; twice as long each time that it did not last."""
LASTED_S = 30.0


@dataclass(frozen=True)
class Program:
    title: str
    argv: Sequence[str]
    environment: Mapping[str, str]
    cwd: str
    """It writes nothing there; never where the command was given."""


@dataclass
class _Kept:
    program: Program
    process: subprocess.Popen[bytes] | None = None
    started: float = 0.0
    wait: float = FIRST_WAIT_S
    due: float = 0.0
    """When it is to be started; monotonic seconds."""


@dataclass
class Keeper:
    """Use it as a context: within it the signals that end a program are taken by `run` alone."""

    report: Callable[[str], None]
    """Takes what a person should know, a line each."""
    _kept: list[_Kept] = field(default_factory=list[_Kept])
    _ending: tuple[signal.Signals, ...] = ENDING
    _mask: set[int | signal.Signals] = field(default_factory=set[int | signal.Signals])

    def __enter__(self) -> Keeper:
        if signal.getsignal(signal.SIGHUP) is signal.SIG_IGN:  # nohup's wish
            self._ending = tuple(number for number in ENDING if number != signal.SIGHUP)
        self._mask = set(signal.pthread_sigmask(signal.SIG_BLOCK, (*self._ending, signal.SIGCHLD)))
        return self

    def __exit__(self, *_: object) -> None:
        self.end()
        while signal.sigtimedwait((*self._ending, signal.SIGCHLD), 0) is not None:
            continue  # they were meant for what has ended
        signal.pthread_sigmask(signal.SIG_SETMASK, self._mask)

    def add(self, program: Program) -> None:
        """Start a program and keep it. Raises OSError where it cannot be started the first time."""
        kept = _Kept(program)
        self._start(kept)
        self._kept.append(kept)

    def run(self, timeout: float | None = None) -> bool:
        """Keep all until this process is told to end (True), or for a time in seconds (False)."""
        end = None if timeout is None else time.monotonic() + timeout
        while True:
            now = time.monotonic()
            for kept in self._kept:
                self._look_after(kept, now)
            if end is not None and now >= end:
                return False
            due = [kept.due for kept in self._kept if kept.process is None]
            wake = min((now + 60.0, *due, *(() if end is None else (end,))))
            arrived = signal.sigtimedwait((*self._ending, signal.SIGCHLD), max(0.0, wake - now))
            if arrived is not None and arrived.si_signo in self._ending:
                return True

    def end(self) -> None:
        """End all of them, by force: they have nothing to lose, and a worker of dask may take long to go by itself."""
        running = [kept.process for kept in self._kept if kept.process is not None]
        self._kept.clear()
        for process in running:
            process.kill()
        for process in running:
            process.wait()

    def _look_after(self, kept: _Kept, now: float) -> None:
        if kept.process is not None:
            code = kept.process.poll()
            if code is None:
                return
            kept.wait = FIRST_WAIT_S if now - kept.started > LASTED_S else min(kept.wait * 2, LONGEST_WAIT_S)
            kept.process, kept.due = None, now + kept.wait
            self.report(f"{kept.program.title} exited ({_words(code)}); starting it again")
        if now >= kept.due:
            try:
                self._start(kept)
            except OSError as error:
                kept.due = now + LONGEST_WAIT_S
                self.report(f"cannot start {kept.program.title}: {error.strerror}")

    def _start(self, kept: _Kept) -> None:
        die = ending_with_parent(signal.SIGKILL)
        mask = self._mask

        def prepare() -> None:
            signal.pthread_sigmask(signal.SIG_SETMASK, mask)
            die()

        kept.process = subprocess.Popen(
            kept.program.argv,
            stdin=subprocess.DEVNULL,
            stdout=2,  # stdout is for what this command says
            env={**os.environ, **kept.program.environment},
            cwd=kept.program.cwd,
            process_group=0,  # ctrl-C is for the keeper
            preexec_fn=prepare,
        )
        kept.started = time.monotonic()


def _words(code: int) -> str:
    return f"signal {-code}" if code < 0 else f"exit code {code}"
