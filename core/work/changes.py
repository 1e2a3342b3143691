"""What a run changed, for readers: as recorded, or as its files are now while it goes on and where it was lost."""

from __future__ import annotations

import io
import os
import time
from collections.abc import Generator
from contextlib import contextmanager
from typing import IO

from msgspec import Struct
from msgspec.structs import replace

from .. import paths
from ..errors import SubdeckError
from ..run.changes import NOT_RECORDED, Changes
from ..run.model import RunReason
from ..run.snapshot import RunSnapshot
from ..system import files
from .recorded import Recorded, read_recorded, store_of
from .written import Written, changes_by_tools

EVERY_S = 5.0
"""Seconds between two looks at the files of a run that goes on."""
SHARE = 10
"""So many times as long as a look took nobody looks again."""
SINCE_LOST = "its wrapper died: these are its files as they are now"
BY_TOOLS = "its wrapper died before it was recorded: this is what its tools wrote"


class _Look(Struct):
    """What was seen last of a run that goes on."""

    again_at: float = 0.0
    """In monotonic seconds."""
    changes: Changes | None = None
    written: Written | None = None


class LiveChanges:
    """What runs have changed up to now, as far as somebody looks; of each at most every some seconds."""

    def __init__(self, project: paths.Project) -> None:
        self._project = project
        self._looks: dict[str, _Look] = {}

    def look(self, run: RunSnapshot) -> Changes | None:
        """Return what a run has changed up to now, as it was at the last look where that is not long ago; None where
        that is not known.
        """
        look = self._looks.setdefault(run.run_id, _Look())
        began = time.monotonic()
        if began >= look.again_at:
            try:
                look.changes = self._now(run, look)
            except (SubdeckError, OSError):
                pass  # another viewer is at it, or git is, or the run has just ended: what was seen last holds
            ended = time.monotonic()
            look.again_at = ended + max(EVERY_S, SHARE * (ended - began))
        return look.changes

    def forget(self, run_id: str) -> None:
        self._looks.pop(run_id, None)

    def _now(self, run: RunSnapshot, look: _Look) -> Changes | None:
        directory = paths.work_dir(self._project, run.run_id)
        if recorded := read_recorded(directory):
            from .shared import shared_now

            return replace(current(recorded, directory), shared=shared_now(recorded))
        if look.written is None:
            look.written = Written(run.meta.cwd, os.path.join(self._project.run_dir(run.run_id), paths.EVENTS))
        look.written.read(is_over=False)
        return look.written.changes()


def changes_of(project: paths.Project, run: RunSnapshot) -> Changes | None:
    """Return what a run that has ended changed; None where nobody looked. Of one that was lost, what can still be told.

    Takes as long as git where the run was lost in a worktree of its own.
    """
    known = run.changes
    if run.is_left_alone or not run.has_ended or run.started_at is None:
        return known
    if known is not None and not known.note.startswith(NOT_RECORDED):
        return known
    if known is not None and known.files:
        return known
    directory = paths.work_dir(project, run.run_id)
    if run.meta.worktree and (recorded := read_recorded(directory)):
        try:
            return replace(current(recorded, directory), note=SINCE_LOST)
        except (SubdeckError, OSError):
            pass
    if known is None and run.reason is not RunReason.LOST:
        return None
    return changes_by_tools(run.meta, project.run_dir(run.run_id), known.note if known else BY_TOOLS)


def patch_of(project: paths.Project, run: RunSnapshot) -> bytes:
    """Return what a run changed, as git writes it: as it was recorded, else as its files are now where they are its
    own, or it goes on. Nothing where no git knows. Raises SubdeckError and OSError.
    """
    try:
        return files.read(os.path.join(project.run_dir(run.run_id), paths.CHANGES_PATCH))
    except FileNotFoundError:
        pass
    directory = paths.work_dir(project, run.run_id)
    recorded = None if run.is_left_alone else read_recorded(directory)
    if recorded is None or (run.has_ended and not run.meta.worktree):
        return b""
    written = io.BytesIO()
    current(recorded, directory, written)
    return written.getvalue()


def current(recorded: Recorded, directory: str, patch: IO[bytes] | None = None) -> Changes:
    """Compare the working tree of a run with what it was before; write the difference where it is wanted.

    Raises SubdeckError and OSError, also where another viewer is at it.
    """
    from .recording import LIVE, compare

    place = os.path.join(directory, LIVE)
    with _alone(place):
        return compare(recorded, place, lent=store_of(directory), patch=patch)[0]


@contextmanager
def _alone(place: str) -> Generator[None]:
    """Hold the place where viewers keep what they need of git. Raises OSError where another one has it."""
    files.make_private_directory(place)
    turn = files.open_directory(place)
    try:
        if not files.try_lock(turn):
            raise BlockingIOError("another viewer is at it")
        yield
    finally:
        os.close(turn)
