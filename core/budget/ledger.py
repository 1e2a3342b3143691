"""The ledger: a file for each day, in which runs reserve their budgets and record their spending.

`<user state>/spend/<local day>.jsonl`. Each line is the whole record of one run on that day, and its last line counts:
a torn, missing or repeated line distorts a sum only until the run's next one. Recording spending appends one line and
needs no lock; reserving holds the lock from reading the sums to the last line.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Sequence
from contextlib import suppress
from datetime import datetime

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from .. import paths
from ..run import second_copy
from ..run.describe import moment
from ..run.events import UsageReported
from ..run.fold import add_usage
from ..run.model import LARGEST, Cost, Usage, Whole
from ..run.proven import has_result
from ..system import files, processes
from ..system.line_file import LineTail
from ..text.decoder import UNDECODABLE, decoder

LOCK_PATIENCE_S = 10.0
"""Seconds that a launcher waits for another one that is reserving."""
UNBORN_S = 600.0
"""Seconds after which a reservation without a run directory is void, even if its launcher lives."""
_LOCK = ".lock"


class Launcher(Struct, frozen=True, rename="camel"):
    """A process that launches runs."""

    place: str
    """Machine, boot and pid namespace of `pid`."""
    pid: Whole
    started: Whole

    @property
    def is_gone(self) -> bool:
        """Whether its process has provably ended."""
        return self.place == _pid_scope() and not processes.is_alive(self.pid, self.started)


def this_launcher() -> Launcher:
    return Launcher(_pid_scope(), os.getpid(), processes.start_time(os.getpid()) or 0)


def _pid_scope() -> str:
    return " ".join((processes.host(), processes.boot_id(), processes.pid_namespace()))


class LedgerEntry(Struct, frozen=True, omit_defaults=True, rename="camel"):
    """Reservation and spending of one run on a day; dollars."""

    run: str
    project: str
    """Root of the project."""
    at: str = ""
    reserved: Cost = 0.0
    """What it may spend on this day in total; 0 for a run without a budget, which reserves nothing."""
    spent: Cost = 0.0
    tokens: Whole = 0
    unpriced: Whole = 0
    """Tokens among them without a known price."""
    over: bool = False
    """Whether the run has ended, so that it reserves nothing."""
    launcher: Launcher | None = None
    """The process that reserves, before there is a run."""

    @property
    def held(self) -> float:
        """Reserved, and not spent yet."""
        return 0.0 if self.over else max(0.0, self.reserved - self.spent)


class Sum(Struct, frozen=True):
    """Sums of several entries."""

    spent: float = 0.0
    held: float = 0.0
    unpriced: int = 0


_decoded = decoder(LedgerEntry)


def directory() -> str:
    return paths.state_file("spend")


def day_file(day: str) -> str:
    return os.path.join(directory(), f"{day}.jsonl")


def local_day(iso: str = "") -> str:
    """Return the day of a time in this machine's time zone, as `2026-11-23`; today without one."""
    at = moment(iso) if iso else None
    return (at.astimezone() if at else datetime.now()).date().isoformat()


class DayBook:
    """The entries of a day, read as its file grows; checking an unchanged file costs one stat."""

    def __init__(self, day: str) -> None:
        self.day = day
        self.entries: dict[str, LedgerEntry] = {}
        self._tail = LineTail(day_file(day))
        self._inode = 0
        self._seen = -1

    def look(self) -> bool:
        """Read new entries; return whether anything has changed. A file that cannot be read adds nothing."""
        try:
            status = os.stat(day_file(self.day))
        except OSError:
            return False
        is_another = status.st_ino != self._inode or status.st_size < self._tail.offset
        if is_another:
            self.entries.clear()
            self._inode, self._tail = status.st_ino, LineTail(day_file(self.day))
        if status.st_size == self._seen and not is_another:
            return False
        self._seen, before = status.st_size, self._tail.offset
        for line in self._tail.lines():
            with suppress(*UNDECODABLE):
                entry = _decoded(line)
                self.entries[entry.run] = entry
        return is_another or self._tail.offset > before

    def sum(self, project: str | None = None) -> Sum:
        """Add up all runs, or the runs of a project."""
        return _sum(entry for entry in self.entries.values() if project in (None, entry.project))

    def release_dead(self) -> None:
        """Drop the reservations of runs that have ended, or never existed."""
        for run, entry in self.entries.items():
            if entry.held and _is_dead(entry):
                self.entries[run] = replace(entry, over=True)


def _sum(entries: Iterable[LedgerEntry]) -> Sum:
    spent, held, unpriced = 0.0, 0.0, 0
    for entry in entries:
        spent += entry.spent
        held += entry.held
        unpriced += entry.unpriced
    return Sum(spent, held, unpriced)


def _is_dead(entry: LedgerEntry) -> bool:
    if not paths.is_run_id(entry.run):
        return True
    run_dir = paths.Project(entry.project).run_dir(entry.run)
    if has_result(run_dir):
        return True
    if os.path.lexists(os.path.join(run_dir, paths.PERMIT)):
        return False  # it may still run on its host, even if no process here vouches for it
    if os.path.isdir(run_dir):
        return _is_free(second_copy.lock_of(run_dir))
    at = moment(entry.at)
    is_old = at is None or time.time() - at.timestamp() > UNBORN_S
    return is_old or (entry.launcher is not None and entry.launcher.is_gone)


def _is_free(path: str) -> bool:
    """Return whether the lock of a run is free: neither a launcher nor a wrapper holds it."""
    try:
        lock = files.open_file(path, os.O_RDONLY)
    except OSError:
        return False
    try:
        return files.try_lock(lock)
    except OSError:
        return False
    finally:
        os.close(lock)


def append(day: str, entries: Sequence[LedgerEntry]) -> None:
    """Append lines to a day, also after a torn one. Raises OSError."""
    files.make_private_directory(directory())
    descriptor = files.open_private(day_file(day), os.O_RDWR | os.O_APPEND)
    try:
        size = os.fstat(descriptor).st_size
        is_torn = size > 0 and os.pread(descriptor, 1, size - 1) != b"\n"
        content = b"\n" * is_torn + b"".join(msgspec.json.encode(entry) + b"\n" for entry in entries)
        if os.write(descriptor, content) < len(content):
            raise OSError(28, os.strerror(28))
    finally:
        os.close(descriptor)


class Locked:
    """Holds the lock of reserving launchers. Raises OSError, TimeoutError if another one keeps it."""

    def __init__(self) -> None:
        files.make_private_directory(directory())
        self._descriptor = files.open_lock(os.path.join(directory(), _LOCK))
        try:
            if not files.lock_soon(self._descriptor, LOCK_PATIENCE_S):
                raise TimeoutError("another launch holds its lock")
        except BaseException:
            os.close(self._descriptor)
            raise

    def __enter__(self) -> None: ...

    def __exit__(self, *_: object) -> None:
        os.close(self._descriptor)


class RunBook:
    """Spending of one run on each day; any process that has its events may write its lines."""

    def __init__(self, project: str, run: str, budget: float, launched_at: str) -> None:
        self._project = project
        self._run = run
        self._budget = budget
        self._days: dict[str, tuple[Usage, Usage]] = {local_day(launched_at): (Usage(), Usage())}
        """Sums before and at the end of each day."""
        self._total = Usage()

    def add(self, event: UsageReported, at: str) -> None:
        day = local_day(at)
        before = self._days.get(day, (self._total, self._total))[0]
        self._total = add_usage(self._total, event)
        self._days[day] = (before, self._total)

    def entries(self, *, is_over: bool) -> dict[str, LedgerEntry]:
        """Return an entry for each day."""
        made: dict[str, LedgerEntry] = {}
        for day, (before, after) in self._days.items():
            made[day] = LedgerEntry(
                self._run,
                self._project,
                paths.now_iso(),
                reserved=max(0.0, self._budget - before.cost),
                spent=min(max(0.0, after.cost - before.cost), LARGEST),
                tokens=max(0, after.tokens - before.tokens),
                unpriced=max(0, after.unpriced - before.unpriced),
                over=is_over or after != self._total,
            )
        return made

    def settle(self) -> None:
        """Record the end of a lost run, with no less than its wrapper had recorded. Raises OSError."""
        for day, entry in self.entries(is_over=True).items():
            book = DayBook(day)
            book.look()
            recorded = book.entries.get(self._run, entry)
            spent, tokens = max(recorded.spent, entry.spent), max(recorded.tokens, entry.tokens)
            append(day, [replace(entry, spent=spent, tokens=tokens)])

    def write(self, *, is_over: bool) -> None:
        """Write all days at the end, otherwise the newest day and the one before it. Raises OSError."""
        entries = self.entries(is_over=is_over)
        for day in sorted(entries)[0 if is_over else -2 :]:
            append(day, [entries[day]])
