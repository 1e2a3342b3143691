"""Restore the records of an unfinished run from its second copy if something else changed them.

For the process that holds the run: its wrapper while it is working, or the process that finishes a lost run.
"""

from __future__ import annotations

import os
import stat
import time

from .. import paths
from ..system.directory import Directory, RefusedError, opened, regain_way
from . import proven, second_copy

_WRITING_S = 0.2
"""Seconds that writing a stop request takes at most, first into the copy and then beside the other records."""
_CLOSED = "the permissions of the run's directory, or of one above it, were removed during the run"
_KEPT = (
    *(paths.META, paths.RUNNER, paths.STOP, paths.LOCK),
    *(paths.EVENTS, paths.TRANSCRIPT, paths.STDOUT, paths.STDERR),
)
"""Files of a run that are useless if they cannot be opened."""


def let_in(run_dir: str) -> None:
    """Restore subdeck's permissions on the directory of an unfinished run if something removed them."""
    if not second_copy.exists(run_dir):
        return
    try:
        was_out = regain_way(run_dir)
    except OSError:
        return  # the next use of the directory reports the error
    if was_out:
        second_copy.note_tampering(run_dir, _CLOSED)


def restore(run_dir: str) -> list[str]:
    """Restore the records of a run from its copy, if it has one; return the faults, a sentence each.

    An entry in the place of a record is moved aside, itself and not its link target.
    """
    faults: list[str] = []
    let_in(run_dir)
    meta = second_copy.read(run_dir, paths.META)
    try:
        if meta:
            faults += _restore_directory(run_dir)
        with opened(run_dir) as directory:
            if meta:
                faults += _restored(run_dir, directory, meta)
            if directory.has(paths.RESULT) and not proven.has_result(run_dir):
                faults.append(moved_aside(directory, paths.RESULT))
    except FileNotFoundError:
        pass  # all runs of the project are gone
    except OSError as error:
        faults.append(f"cannot restore the run's records: {error.strerror}")
    for sentence in faults:
        second_copy.note_tampering(run_dir, sentence)
    return faults


def _restored(run_dir: str, directory: Directory, meta: bytes) -> list[str]:
    faults = [f"the permissions of {name} were removed during the run" for name in _KEPT if _regained(directory, name)]
    faults += _restore_record(directory, paths.META, meta)
    if runner := second_copy.read(run_dir, paths.RUNNER):
        faults += _restore_record(directory, paths.RUNNER, runner)
    if not _is_stop_whole(run_dir, directory):
        faults += _restore_record(directory, paths.STOP, second_copy.read(run_dir, paths.STOP))
    if not (directory.has(paths.LOCK) and second_copy.is_the_lock(run_dir, directory.status(paths.LOCK))):
        faults.append(moved_aside(directory, paths.LOCK))  # its wrapper creates another
    if os.path.isdir(f"{second_copy.directory_of(run_dir)}/{paths.INBOX}"):
        faults += _restore_inbox(directory)
    return faults


def _is_stop_whole(run_dir: str, directory: Directory) -> bool:
    """Return whether the stop request matches its copy, now or soon: a sender may be writing to both places."""
    deadline = time.monotonic() + _WRITING_S
    while True:
        try:
            there = directory.read(paths.STOP) if directory.has(paths.STOP) else b""
        except OSError:
            return False
        if there == second_copy.read(run_dir, paths.STOP):
            return True
        if time.monotonic() > deadline:
            return False
        time.sleep(0.01)


def move_forged(run_dir: str, name: str) -> None:
    """Move an unsigned record aside before another is written in its place. Raises OSError."""
    with opened(run_dir) as directory:
        if not directory.has(name):
            return
        try:
            if proven.counts(run_dir, name, directory.read(name)):
                return
        except (RefusedError, PermissionError):
            pass  # not a file, or not readable
        second_copy.note_tampering(run_dir, moved_aside(directory, name))


def moved_aside(directory: Directory, name: str) -> str:
    """Move an entry aside, if it exists; return a sentence about it. Raises OSError."""
    try:
        aside = proven.set_aside(directory, name)
    except FileNotFoundError:
        return f"{name} was removed during the run"
    return f"{name} was changed or replaced during the run; the replaced content is {aside}"


def _regained(directory: Directory, name: str) -> bool:
    try:
        return directory.regain(name)
    except FileNotFoundError:
        return False


def _restore_directory(run_dir: str) -> list[str]:
    """Create the run's directory again if it is not a directory, unless all runs of the project are gone."""
    with opened(os.path.dirname(run_dir)) as runs:
        name = os.path.basename(run_dir)
        faults: list[str] = []
        if runs.has(name):
            if stat.S_ISDIR(runs.status(name).st_mode):
                return []
            faults = [f"the run's directory was replaced; the replaced content is {proven.set_aside(runs, name)}"]
        runs.make(name)
        return faults or ["the run's directory was removed"]


def _restore_record(directory: Directory, name: str, content: bytes) -> list[str]:
    """Write a record again unless it is correct; without content it should not exist."""
    try:
        if content and directory.read(name) == content:
            return []
    except OSError:
        pass  # not a file, or missing
    fault = moved_aside(directory, name)
    if content:
        directory.write_whole(name, content)
    return [fault]


def _restore_inbox(directory: Directory) -> list[str]:
    if directory.has(paths.CLOSED_INBOX):
        return []
    try:
        if stat.S_ISDIR(directory.status(paths.INBOX).st_mode):
            return []
    except FileNotFoundError:
        pass
    fault = moved_aside(directory, paths.INBOX)
    directory.make(paths.INBOX)
    return [fault]
