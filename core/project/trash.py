"""Deleting finished runs, taking it back, and making it final."""

from __future__ import annotations

import os
import time
from collections.abc import Iterable

from .. import paths
from ..errors import RunBusy, SubdeckError, UnknownRun
from ..run import artifacts
from ..system import files
from ..text.plain import one_line

KEPT = 24 * 3600.0
"""Seconds that a deleted run can be restored."""


def delete(project: paths.Project, run_ids: Iterable[str]) -> tuple[str, ...]:
    """Move finished runs to the trash; return their ids. Raises RunBusy for one that somebody still holds."""
    from .liveness import hold

    moved: list[str] = []
    for run_id in map(_checked, run_ids):
        run_dir = project.run_dir(run_id)
        lock = hold(run_dir)
        if lock is None and os.path.exists(os.path.join(run_dir, paths.LOCK)):
            raise RunBusy(f"run {run_id[-6:]} is still held by its wrapper", where=run_id, hint="stop it first")
        if not artifacts.is_newer(run_dir):
            _close_pane(run_dir)
        try:
            files.make_private_directory(project.trash)
            os.rename(run_dir, os.path.join(project.trash, run_id))
            os.utime(os.path.join(project.trash, run_id))
            moved.append(run_id)
        except FileNotFoundError:
            continue  # somebody else took it away
        except OSError as error:
            raise SubdeckError(f"the run could not be deleted: {error.strerror}", where=run_dir) from error
        finally:
            if lock is not None:
                os.close(lock)
    return tuple(moved)


def names(project: paths.Project) -> list[str]:
    """Return the ids of the deleted runs that can be restored."""
    return sorted(artifacts.run_ids(project.trash), reverse=True)


def restore(project: paths.Project, run_ids: Iterable[str]) -> tuple[str, ...]:
    """Take deleted runs back; return the ids of those that were still in the trash."""
    back: list[str] = []
    for run_id in map(_checked, run_ids):
        try:
            os.rename(os.path.join(project.trash, run_id), project.run_dir(run_id))
            back.append(run_id)
        except OSError:
            continue
    return tuple(back)


def purge(project: paths.Project, run_ids: Iterable[str]) -> None:
    """Remove runs from the trash for good."""
    for run_id in map(_checked, run_ids):
        files.remove_tree(os.path.join(project.trash, run_id))


def purge_old(project: paths.Project) -> None:
    """Remove for good what was deleted more than `KEPT` seconds ago."""
    try:
        old = [entry.name for entry in os.scandir(project.trash) if entry.stat().st_mtime < time.time() - KEPT]
    except OSError:
        return
    purge(project, filter(paths.is_run_id, old))


def _checked(run_id: str) -> str:
    """Refuse what is not a run id: these names become paths that are moved and removed."""
    if not paths.is_run_id(run_id):
        raise UnknownRun(f'"{one_line(run_id, 40)}" is not a run id', where="run")
    return run_id


def _close_pane(run_dir: str) -> None:
    facts = artifacts.read_runner(run_dir)
    if facts is None or facts.tmux is None:
        return
    from ..runners.tmux import close_pane

    try:
        close_pane(facts.tmux)
    except SubdeckError:
        return  # without tmux there is no pane either
