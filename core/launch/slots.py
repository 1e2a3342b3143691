"""The lock files of queues: which a run waits for, and their removal when their queue is over."""

from __future__ import annotations

import os
import time

from .. import paths
from ..run.model import RunMeta
from ..system import files, locks

OLD = 3600.0
"""Seconds after which a group without a holder is over; every wrapper of it has come up long before."""
_PROJECT = "project"


def slot_options(project: paths.Project, meta: RunMeta) -> tuple[str, ...]:
    """Return the wrapper's options for the slots of its group, then those of the project."""
    options: tuple[str, ...] = ()
    if meta.group is not None:
        options = ("--slots", str(meta.group.max_parallel), os.path.join(project.slots, meta.group.id))
    if meta.max_running is not None:
        options = (*options, "--slots", str(meta.max_running), os.path.join(project.slots, _PROJECT))
    return options


def remove_old_slots(project: paths.Project) -> None:
    """Remove the lock files of groups that are over: old, and neither a slot nor the door is held."""
    try:
        with os.scandir(project.slots) as entries:
            groups = [entry.path for entry in entries if entry.name != _PROJECT and _is_old(entry)]
    except OSError:
        return
    for group in groups:
        try:
            held = [_hold(os.path.join(group, name)) for name in os.listdir(group)]
        except OSError:
            continue
        if None not in held:
            files.remove_tree(group)
        for lock in held:
            if lock is not None:
                os.close(lock)


def _hold(path: str) -> int | None:
    """Lock one file; None where somebody has it, or it cannot be locked."""
    try:
        lock = locks.open_lock(path)
    except OSError:
        return None
    try:
        if locks.try_lock(lock):
            return lock
    except OSError:
        pass  # no locks there: then nobody can tell that it is free
    os.close(lock)
    return None


def _is_old(entry: os.DirEntry[str]) -> bool:
    try:
        return entry.stat().st_mtime < time.time() - OLD
    except OSError:
        return False
