"""Delete finished runs, by name or by the retention rules; restore them, or remove them for good."""

from __future__ import annotations

import os
import stat
import time
from collections.abc import Collection, Iterable
from contextlib import suppress

from msgspec import Struct, structs

from .. import paths
from ..config.settings import Retention
from ..errors import RunBusy, SubdeckError, UnknownRun, UsageError
from ..run import artifacts, second_copy
from ..run.proven import has_result
from ..run.signature import Verifier
from ..system import files
from ..system.directory import Directory, RefusedError, opened
from ..text.plain import one_line
from .ownership import is_own

DAY = 24 * 3600.0
KEPT = DAY
"""Seconds that a deleted run can be restored."""
MB = 1024 * 1024
BLOCK = 512
"""The unit of `st_blocks`, on every file system."""
_LEVELS = 30
"""Levels of directories in a run whose files are counted."""


def delete(project: paths.Project, run_ids: Iterable[str]) -> tuple[str, ...]:
    """Move finished runs to the trash; return their ids. Raises RunBusy for a run that a process still holds.

    An untrusted run is moved even if it is held, and no path in its files is touched.
    """
    from .liveness import hold

    moved: list[str] = []
    for run_id in map(_checked, run_ids):
        run_dir = project.run_dir(run_id)
        is_ours = is_own(run_dir)
        lock = hold(run_dir) if is_ours else None
        if is_ours and lock is None and _is_locked(run_dir):
            raise RunBusy(f"run {run_id[-6:]} is still held by its wrapper", where=run_id, hint="stop it first")
        if is_ours and not artifacts.is_newer(run_dir):
            _close_pane(run_dir)
        try:
            with opened(project.runs) as runs, opened(project.trash, make=True) as trash:
                runs.rename(run_id, trash, run_id)
                trash.touch(run_id)
            moved.append(run_id)
            second_copy.remove(run_dir)
        except FileNotFoundError:
            continue  # another process removed it
        except OSError as error:
            raise SubdeckError(f"cannot delete the run: {error.strerror}", where=run_dir) from error
        finally:
            if lock is not None:
                os.close(lock)
    return tuple(moved)


def _is_locked(run_dir: str) -> bool:
    """Return whether there is a lock file, which is held if it could not be taken; any other entry locks nothing."""
    try:
        os.close(files.open_file(os.path.join(run_dir, paths.LOCK), os.O_RDONLY))
    except (FileNotFoundError, RefusedError):
        return False
    except OSError:
        return True
    return True


def restore(project: paths.Project, run_ids: Iterable[str]) -> tuple[str, ...]:
    """Restore deleted runs; return the ids of the restored ones."""
    back: list[str] = []
    for run_id in map(_checked, run_ids):
        try:
            files.rename(os.path.join(project.trash, run_id), project.run_dir(run_id))
            back.append(run_id)
        except OSError:
            continue
    return tuple(back)


def purge(project: paths.Project, run_ids: Iterable[str]) -> None:
    """Remove runs from the trash for good."""
    for run_id in map(_checked, run_ids):
        files.remove_tree(os.path.join(project.trash, run_id))


def old_runs(project: paths.Project) -> tuple[str, ...]:
    """Return the ids of the runs that were deleted more than `KEPT` seconds ago."""
    try:
        with opened(project.trash) as trash:
            old = [name for name in trash.names() if trash.status(name).st_mtime < time.time() - KEPT]
    except OSError:
        return ()
    return tuple(filter(paths.is_run_id, old))


def _checked(run_id: str) -> str:
    """Refuse invalid run ids: these names become paths that are moved and removed."""
    if not paths.is_run_id(run_id):
        raise UnknownRun(f'"{one_line(run_id, 40)}" is not a run id', where="run")
    return run_id


def _close_pane(run_dir: str) -> None:
    facts = artifacts.read_runner(run_dir)
    if facts is None or facts.tmux is None:
        return
    from ..runners.tmux import close_pane
    from .liveness import is_here

    try:
        close_pane(facts.tmux, os.path.basename(run_dir), facts.pid if is_here(facts) else None)
    except SubdeckError:
        return  # without tmux there is no pane either


class Stored(Struct, frozen=True, gc=False):
    """A run as measured in its directory."""

    run_id: str
    size: int
    """Bytes on the disk."""
    ended: float | None
    """When its result was written, in seconds since the epoch; None for a run that has not ended."""
    foreign: bool = False
    """Whether it has ended and is not this user's, so that no rule may delete it."""


class Stock(Struct, frozen=True):
    """All runs of a project, as of one read."""

    runs: tuple[Stored, ...]
    trash: tuple[Stored, ...] = ()
    """Deleted runs; `ended` is when they were deleted."""
    unreported: frozenset[str] = frozenset()
    """Ids of runs whose end was not reported yet."""
    unmerged: frozenset[str] = frozenset()
    """Ids of runs whose work exists only in their worktrees."""
    worktrees: int = 0
    """Number of worktrees, including those of removed runs."""
    worktrees_size: int = 0
    """Their bytes, already included in the sizes of their runs."""
    discarded: int = 0
    """Discarded worktrees, kept for a day so that they can be restored."""
    discarded_size: int = 0
    """Their bytes."""

    @property
    def size(self) -> int:
        return sum(run.size for run in self.runs)

    @property
    def trash_size(self) -> int:
        return sum(run.size for run in self.trash)


class Selection(Struct, frozen=True):
    """Runs to delete, the oldest first, and how many stay although a rule selects them."""

    going: tuple[Stored, ...]
    unfinished: int
    """Runs that are not finished, and never deleted."""
    needed: int
    """Runs that a rule selects, but that are needed."""
    foreign: int
    """Runs that a rule selects, but that are not this user's."""
    unmerged: int
    """Runs that a rule selects, but whose work exists nowhere else."""
    unreported: int
    """Runs to delete whose end was not reported yet."""

    @property
    def size(self) -> int:
        return sum(run.size for run in self.going)

    @property
    def run_ids(self) -> tuple[str, ...]:
        return tuple(run.run_id for run in self.going)


def choose(stock: Stock, rule: Retention, now: float, needed: Collection[str] = ()) -> Selection:
    """Select runs by the three rules; a run is deleted if one of them selects it.

    `days` selects runs that ended longer ago, `keep` all finished runs except so many of the newest, `max_mb` the
    oldest ones until the rest, unfinished runs included, fits. Unfinished and untrusted runs, runs with unmerged work
    and runs in `needed` always stay; they count in all rules.
    """
    foreign = {run.run_id for run in stock.runs if run.foreign}
    unmerged = stock.unmerged - foreign
    needed = foreign.union(unmerged, needed)
    finished = sorted((run for run in stock.runs if run.ended is not None), key=_age)
    taken: set[str] = set()
    if rule.days is not None:
        oldest = now - rule.days * DAY
        taken |= {run.run_id for run in finished if run.ended is not None and run.ended < oldest}
    if rule.keep is not None:
        taken |= {run.run_id for run in finished[: max(0, len(finished) - rule.keep)]}
    if rule.max_mb is not None:
        kept_size = stock.size - sum(run.size for run in finished if run.run_id in taken and run.run_id not in needed)
        for run in finished:
            if kept_size <= rule.max_mb * MB:
                break
            if run.run_id not in taken and run.run_id not in needed:
                kept_size -= run.size
            taken.add(run.run_id)
    going = tuple(run for run in finished if run.run_id in taken and run.run_id not in needed)
    return Selection(
        going,
        unfinished=len(stock.runs) - len(finished),
        needed=len(taken.intersection(needed) - foreign - unmerged),
        foreign=len(taken & foreign),
        unmerged=len(taken & unmerged),
        unreported=sum(run.run_id in stock.unreported for run in going),
    )


def _age(run: Stored) -> tuple[float, str]:
    return (run.ended or 0.0, run.run_id)


def read_stock(project: paths.Project) -> Stock:
    """Measure every run directory, and read `meta.json` of finished runs: 10,000 take a second at most."""
    runs, deleted = _stored(project.runs, Verifier()), _stored(project.trash)
    gone = tuple(structs.replace(run, ended=changed) for run, changed in deleted)
    return Stock(tuple(run for run, _ in runs), gone, _unreported(project))


def _stored(path: str, verifier: Verifier | None = None) -> list[tuple[Stored, float]]:
    """Return the runs in a directory, each with the time when its directory last changed.

    Without a verifier, ownership is not checked.
    """
    runs: list[tuple[Stored, float]] = []
    try:
        with opened(path) as directory:
            for run_id in filter(paths.is_run_id, directory.names()):
                with suppress(OSError):  # it is being removed
                    status = directory.status(run_id)
                    size, ended = _measured(directory, run_id) if stat.S_ISDIR(status.st_mode) else (0, None)
                    foreign = False
                    if verifier is not None and ended is not None:
                        foreign, has_ended = artifacts.end_trust(directory, run_id, verifier)
                        ended = ended if has_ended else None
                    size += status.st_blocks * BLOCK
                    runs.append((Stored(run_id, size, ended, foreign), status.st_mtime))
    except OSError:
        pass  # missing, or not a directory
    return runs


def _measured(above: Directory, name: str, levels: int = _LEVELS) -> tuple[int, float | None]:
    """Return the bytes on the disk below a directory, and when the result in it was written; links are not followed."""
    size, ended = 0, None
    with suppress(OSError), above.inside(name) as directory:
        for entry, status in directory.entries():
            size += status.st_blocks * BLOCK
            if stat.S_ISDIR(status.st_mode):
                size += _measured(directory, entry, levels - 1)[0] if levels else 0
            elif entry == paths.RESULT:
                ended = status.st_mtime
    return size, ended


def size_of(path: str) -> int:
    """Return the bytes on the disk of a directory and its content; links are not followed."""
    try:
        with opened(os.path.dirname(path)) as above:
            return _measured(above, os.path.basename(path))[0]
    except OSError:
        return 0


def _unreported(project: paths.Project) -> frozenset[str]:
    """Return the background runs whose end was not reported to their session."""
    from .session import SessionFile

    unreported: set[str] = set()
    for name in files.names(project.sessions):
        with suppress(UsageError):  # not a session file
            unreported.update(SessionFile(project, name.removesuffix(".jsonl")).unreported())
    return frozenset(unreported)


# --- directories of runs that were never published -------------------------------------------------------------------

UNBORN_S = 24 * 3600.0
"""Seconds after which any process removes such a directory."""
SURELY_S = 60.0
"""The same for a request to remove everything; a launcher takes milliseconds from its directory to the lock in it."""


def remove_unborn(project: paths.Project, older_than_s: float = UNBORN_S) -> int:
    """Remove such directories older than `older_than_s` that no process holds, and second copies of ended runs; return
    the number of directories.
    """
    for run_id in second_copy.run_ids(project.runs):
        if has_result(project.run_dir(run_id)):
            second_copy.remove(project.run_dir(run_id))
    oldest = time.time() - older_than_s
    try:
        with opened(project.runs) as runs:
            hidden = [name for name in runs.names() if name[0] == "." and paths.is_run_id(name[1:])]
            old = [name for name in hidden if runs.status(name).st_mtime < oldest]
    except OSError:
        return 0  # another launcher is removing them
    return sum(_remove(os.path.join(project.runs, name)) for name in old)


def hold_file(path: str) -> int | None:
    """Lock a file; None if another process has it, or it cannot be locked."""
    try:
        lock = files.open_lock(path)
    except OSError:
        return None
    try:
        if files.try_lock(lock):
            return lock
    except OSError:
        pass  # there are no locks here, so it may be in use
    os.close(lock)
    return None


def _remove(directory: str) -> bool:
    lock = hold_file(os.path.join(directory, paths.LOCK))
    if lock is None:
        return False
    try:
        files.remove_tree(directory)
    finally:
        os.close(lock)
    return not os.path.lexists(directory)
