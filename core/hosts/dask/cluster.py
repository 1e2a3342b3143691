"""The scheduler and workers of a cluster, kept running in the foreground: a program that exits is started again.

They end with this process, however it ends. Processes that they started in other sessions stay.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from ...config.host_settings import TlsFiles, split_address
from ...system import files
from ...system.processes import ending_with_parent
from . import _configuration, security

ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
FIRST_WAIT_S, LONGEST_WAIT_S = 0.5, 15.0
"""Seconds before an exited program is restarted, doubled each time that it did not last."""
LASTED_S = 30.0


@dataclass(frozen=True)
class Program:
    title: str
    argv: Sequence[str]
    environment: Mapping[str, str]
    cwd: str
    """Not the caller's directory; the program writes nothing there."""


@dataclass
class _Kept:
    program: Program
    process: subprocess.Popen[bytes] | None = None
    started: float = 0.0
    wait: float = FIRST_WAIT_S
    due: float = 0.0
    """When to start it, in monotonic seconds."""


@dataclass
class Keeper:
    """Keeps programs running. Use it as a context: inside it only `run` receives termination signals."""

    report: Callable[[str], None]
    """Receives messages for a person, one line each."""
    _kept: list[_Kept] = field(default_factory=list[_Kept])
    _ending: tuple[signal.Signals, ...] = ENDING
    _mask: set[int | signal.Signals] = field(default_factory=set[int | signal.Signals])

    def __enter__(self) -> Keeper:
        if signal.getsignal(signal.SIGHUP) is signal.SIG_IGN:  # started by nohup
            self._ending = tuple(number for number in ENDING if number != signal.SIGHUP)
        self._mask = set(signal.pthread_sigmask(signal.SIG_BLOCK, (*self._ending, signal.SIGCHLD)))
        return self

    def __exit__(self, *_: object) -> None:
        self.end()
        while signal.sigtimedwait((*self._ending, signal.SIGCHLD), 0) is not None:
            continue  # they were meant for the ended programs
        signal.pthread_sigmask(signal.SIG_SETMASK, self._mask)

    def add(self, program: Program) -> None:
        """Start a program and keep it running. Raises OSError if the first start fails."""
        kept = _Kept(program)
        self._start(kept)
        self._kept.append(kept)

    def run(self, timeout: float | None = None) -> bool:
        """Keep the programs running until a termination signal (True) or for `timeout` seconds (False)."""
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
        """Kill all programs: they have nothing to lose, and a dask worker may take long to exit on its own."""
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
            stdout=2,  # stdout is for this command's own output
            env={**os.environ, **kept.program.environment},
            cwd=kept.program.cwd,
            process_group=0,  # ctrl-C goes to the keeper only
            preexec_fn=prepare,
        )
        kept.started = time.monotonic()


def _words(code: int) -> str:
    return f"signal {-code}" if code < 0 else f"exit code {code}"


# --- the scheduler ---------------------------------------------------------------------------------------------------


def scheduler_program(address: str, certificates: TlsFiles | None, directory: str) -> Program:
    """Return the program of a scheduler that listens only on that address.

    Raises OSError. Creates `directory` if it is missing; the scheduler stores nothing in it.
    """
    host, port = split_address(address)
    files.make_private_directory(directory)
    return Program(
        title="the scheduler",
        argv=[
            *(sys.executable, "-P", "-E", "-m", "distributed.cli.dask_scheduler"),
            *("--host", host, "--port", str(port), "--protocol", address.partition("://")[0]),
            *("--no-dashboard", "--dashboard-address", "127.0.0.1:0"),
            *security.options(certificates),
        ],
        environment=_configuration.variables(encrypted=certificates is not None),
        cwd=os.path.abspath(directory),
    )


# --- workers ---------------------------------------------------------------------------------------------------------

MEMORY_OF_A_CHILD_MB = 400
"""Memory used by pi."""
SLOTS_OF_A_CORE = 4
"""Agents mostly wait for models."""
_DASKS_OWN = "dask-scratch-space"
"""The directory in which dask creates files readable by others, because its umask is the one the runs' agents need."""
PRELOAD = "subdeck.core.hosts.dask.preload"


@dataclass(frozen=True)
class Host:
    """A host to run on this machine."""

    scheduler: str
    certificates: TlsFiles | None
    slots: int
    spool: str
    labels: Mapping[str, float] = field(default_factory=dict[str, float])
    name: str = ""
    """Empty for the machine's name."""
    listen: str = ""
    """Address at which others reach it; empty for the one from which it reaches the scheduler."""

    @property
    def program(self) -> Program:
        """The worker's program. Raises OSError if the spool cannot be created."""
        scratch = os.path.join(self.spool, "tmp")
        files.make_private_directory(os.path.join(scratch, _DASKS_OWN))
        resources = {"subdeck": self.slots, **self.labels}
        return Program(
            title=f"the worker {self.name}".rstrip(),
            argv=[
                *(sys.executable, "-P", "-E", "-m", "distributed.cli.dask_worker", self.scheduler),
                *("--nthreads", str(self.slots), "--no-nanny", "--memory-limit", "0"),
                *("--no-dashboard", "--dashboard-address", "127.0.0.1:0", "--local-directory", scratch),
                *("--resources", " ".join(f"{label}={count:g}" for label, count in resources.items())),
                *(("--host", self.listen) if self.listen else ()),
                *security.options(self.certificates),
                *("--preload", PRELOAD, "--spool", self.spool),
                *(("--host-name", self.name) if self.name else ()),
            ],
            environment=_configuration.variables(encrypted=self.certificates is not None),
            cwd=scratch,
        )


def usual_slots() -> int:
    """Return how many agents fit on this machine, by free memory and cores."""
    return max(1, min(_free_megabytes() // MEMORY_OF_A_CHILD_MB, len(os.sched_getaffinity(0)) * SLOTS_OF_A_CORE))


def _free_megabytes() -> int:
    for line in files.content("/proc/meminfo").splitlines():
        if line.startswith(b"MemAvailable:"):
            return int(line.split()[1]) // 1024
    return MEMORY_OF_A_CHILD_MB
