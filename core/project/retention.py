"""Which old runs a clean-up takes; pure."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Sequence
from typing import TYPE_CHECKING

from msgspec import Struct

from .. import paths
from ..config.settings import Retention
from ..errors import SubdeckError
from ..run import artifacts
from . import trash

if TYPE_CHECKING:
    from ..config.settings import Retention

DAY = 24 * 3600.0
MB = 1024 * 1024


class Stored(Struct, frozen=True, gc=False):
    """A run as its directory shows it."""

    run_id: str
    size: int
    """Bytes that it takes on the disk."""
    ended: float | None
    """When its result was written, in seconds since the epoch; None for a run that has not ended."""


class Stock(Struct, frozen=True):
    """All runs of a project, as of one look."""

    runs: tuple[Stored, ...]
    trash: tuple[Stored, ...] = ()
    """Deleted ones; `ended` is when they were deleted."""
    untold: frozenset[str] = frozenset()
    """Ids of runs whose end was told to nobody yet."""

    @property
    def size(self) -> int:
        return sum(run.size for run in self.runs)

    @property
    def trash_size(self) -> int:
        return sum(run.size for run in self.trash)


class Selection(Struct, frozen=True):
    """What goes, the oldest first, and what is left out although a rule would take it."""

    going: tuple[Stored, ...]
    unfinished: int
    """Runs that go on: they are never taken."""
    needed: int
    """Runs that a rule would take if nobody needed them."""
    untold: int
    """Of those that go: how many have an end that nobody was told of."""

    @property
    def size(self) -> int:
        return sum(run.size for run in self.going)

    @property
    def run_ids(self) -> tuple[str, ...]:
        return tuple(run.run_id for run in self.going)


def choose(stock: Stock, rule: Retention, now: float, needed: Collection[str] = ()) -> Selection:
    """Decide by the three rules, each of which takes the oldest; a run goes when one of them takes it.

    `days` takes what ended longer ago, `keep` all finished runs but the newest so many, `max_mb` as many as are
    needed for what stays, unfinished runs included, to fit. Runs that go on and those in `needed` stay whatever the
    rules say; they count in all of them.
    """
    finished = sorted((run for run in stock.runs if run.ended is not None), key=_age)
    taken: dict[str, Stored] = {}
    if rule.days is not None:
        oldest = now - rule.days * DAY
        taken |= {run.run_id: run for run in finished if run.ended is not None and run.ended < oldest}
    if rule.keep is not None:
        taken |= {run.run_id: run for run in finished[: max(0, len(finished) - rule.keep)]}
    going = {run_id: run for run_id, run in taken.items() if run_id not in needed}
    spared = set(taken) - set(going)
    if rule.max_mb is not None:
        _fit(finished, stock.size - sum(run.size for run in going.values()), rule.max_mb * MB, needed, going, spared)
    chosen = tuple(run for run in finished if run.run_id in going)
    return Selection(
        chosen,
        unfinished=sum(run.ended is None for run in stock.runs),
        needed=len(spared),
        untold=sum(run.run_id in stock.untold for run in chosen),
    )


def _fit(
    finished: Sequence[Stored],
    size: int,
    most: float,
    needed: Collection[str],
    going: dict[str, Stored],
    spared: set[str],
) -> None:
    """Add the oldest runs to `going` until what stays takes at most `most` bytes; tell in `spared` who could not."""
    for run in finished:
        if size <= most:
            return
        if run.run_id in going:
            continue
        if run.run_id in needed:
            spared.add(run.run_id)
        else:
            going[run.run_id] = run
            size -= run.size


def _age(run: Stored) -> tuple[float, str]:
    return (run.ended or 0.0, run.run_id)


BLOCK = 512
"""What `st_blocks` counts in, whatever the file system."""


class Cleaned(Struct, frozen=True):
    moved: tuple[str, ...]
    """Ids of the runs that went."""
    left: tuple[tuple[str, str], ...]
    """Those that did not, each with the reason."""


def read_stock(project: paths.Project) -> Stock:
    """Look at every run directory without opening a file in it: 10,000 runs take a fraction of a second."""
    return Stock(tuple(_stored(project.runs)), tuple(_deleted(project.trash)), _untold(project))


def clean(project: paths.Project, run_ids: Iterable[str], *, purge: bool) -> Cleaned:
    """Move runs to the trash, or remove them for good; one that cannot go keeps no other from going."""
    moved: list[str] = []
    left: list[tuple[str, str]] = []
    for run_id in run_ids:
        try:
            gone = trash.delete(project, (run_id,))
        except SubdeckError as error:
            left.append((run_id, error.what))
            continue
        moved += gone
        if purge:
            trash.purge(project, gone)
    return Cleaned(tuple(moved), tuple(left))


def tidy(project: paths.Project, rule: Retention, now: float) -> tuple[Selection, Cleaned]:
    """Move to the trash what the rules of the settings take; what nobody was told of stays, for nobody is asked."""
    stock = read_stock(project)
    selection = choose(stock, rule, now, needed=stock.untold)
    own = (run_id for run_id in selection.run_ids if not artifacts.is_newer(project.run_dir(run_id)))
    return selection, clean(project, own, purge=False)


def _stored(directory: str) -> Iterable[Stored]:
    for run_id, path in _run_dirs(directory):
        size, ended = _measured(path)
        yield Stored(run_id, size, ended)


def _deleted(directory: str) -> Iterable[Stored]:
    for run_id, path in _run_dirs(directory):
        try:
            yield Stored(run_id, _measured(path)[0], os.stat(path).st_mtime)
        except OSError:
            continue  # purged meanwhile


def _run_dirs(directory: str) -> list[tuple[str, str]]:
    try:
        with os.scandir(directory) as entries:
            found = [(entry.name, entry.path) for entry in entries if paths.is_run_id(entry.name)]
    except OSError:
        return []
    return found


def _measured(run_dir: str) -> tuple[int, float | None]:
    """Return the bytes on the disk below a run directory, and when its result was written; links are not followed."""
    size, ended = 0, None
    waiting = [run_dir]
    while waiting:
        directory = waiting.pop()
        try:
            with os.scandir(directory) as entries:
                for entry in entries:
                    status = entry.stat(follow_symlinks=False)
                    size += status.st_blocks * BLOCK
                    if entry.is_dir(follow_symlinks=False):
                        waiting.append(entry.path)
                    elif entry.name == paths.RESULT and directory == run_dir:
                        ended = status.st_mtime
        except OSError:
            continue  # somebody takes it away just now
    return size, ended


def _untold(project: paths.Project) -> frozenset[str]:
    """Return the runs that some session launched in the background and was not told the end of."""
    from .session import SessionFile

    try:
        names = [name[:-6] for name in os.listdir(project.sessions) if name.endswith(".jsonl")]
    except OSError:
        return frozenset()
    untold: set[str] = set()
    for name in names:
        try:
            untold.update(SessionFile(project, name).untold())
        except SubdeckError:
            continue  # not a file of ours
    return frozenset(untold)
