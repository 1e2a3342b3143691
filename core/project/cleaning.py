"""Look how much room runs take, and move old ones out of the way."""

from __future__ import annotations

import os
from collections.abc import Iterable

from msgspec import Struct

from .. import paths
from ..config.settings import Retention
from ..errors import SubdeckError
from . import trash
from .retention import Selection, Stock, Stored, choose

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
    return selection, clean(project, selection.run_ids, purge=False)


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
    """Answer the bytes on the disk below a run directory, and when its result was written; links are not followed."""
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
    """Answer the runs that some session launched in the background and was not told the end of."""
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
