"""A run's changes, for readers: as recorded, or from its current files while it is running and if it was lost.

A run's worktree belongs to the last run that used it. If it was edited since that run ended, readers of this run get
its current content, which `apply` and `merge` also use, marked as edited. Lists show the recorded changes: they start
no git.
"""

from __future__ import annotations

import io
import os
import time
from collections.abc import Generator
from contextlib import contextmanager
from functools import cached_property
from typing import IO, TYPE_CHECKING, Any

from msgspec import Struct
from msgspec.structs import replace

from .. import paths
from ..errors import SubdeckError
from ..run.changes import NOT_RECORDED, Changes
from ..run.model import RunReason
from ..run.snapshot import RunSnapshot
from ..system import files
from .attribution import Written, changes_by_tools
from .operation import Act, Operation, Plan
from .records import Recorded, has_worktree, read_record, read_recorded, store_of, tree_of, work_dirs

if TYPE_CHECKING:
    from ..run.comparison import Side
    from .source import Difference

EVERY_S = 5.0
"""Seconds between two checks of the files of a running run."""
SHARE = 10
"""Minimum pause after a check, as a multiple of its duration."""
PATIENCE_S = 10.0
"""Seconds to wait for another viewer of a run that has ended."""
SINCE_LOST = "its wrapper died: its current files are shown"
BY_TOOLS = "its wrapper died before the changes were recorded: only changes by its tools are shown"


class _Look(Struct):
    """The last check of a running run."""

    again_at: float = 0.0
    """In monotonic seconds."""
    changes: Changes | None = None
    written: Written | None = None


class LiveChanges:
    """Current changes of running runs, computed on demand; each at most once every few seconds."""

    def __init__(self, project: paths.Project) -> None:
        self._project = project
        self._looks: dict[str, _Look] = {}

    def look(self, run: RunSnapshot) -> Changes | None:
        """Return a run's current changes, from the last check if that is recent; None if they are unknown."""
        look = self._looks.setdefault(run.run_id, _Look())
        began = time.monotonic()
        if began >= look.again_at:
            try:
                look.changes = self._now(run, look)
            except (SubdeckError, OSError):
                pass  # another viewer or git is busy, or the run has just ended: keep the last result
            ended = time.monotonic()
            look.again_at = ended + max(EVERY_S, SHARE * (ended - began))
        return look.changes

    def forget(self, run_id: str) -> None:
        self._looks.pop(run_id, None)

    def _now(self, run: RunSnapshot, look: _Look) -> Changes | None:
        directory = paths.work_dir(self._project, run.run_id)
        if recorded := read_recorded(directory):
            from .attribution import shared_now

            return replace(current(recorded, directory), shared=shared_now(recorded))
        if look.written is None:
            look.written = Written(run.meta.cwd, os.path.join(self._project.run_dir(run.run_id), paths.EVENTS))
        look.written.read(is_over=False)
        return look.written.changes()


class EndedChanges:
    """Changes of ended runs; each worktree is checked again after some seconds at the earliest."""

    def __init__(self, project: paths.Project) -> None:
        self._project = project
        self._looks: dict[str, tuple[float, Changes | None]] = {}
        """The changes seen last, and until when they count in monotonic seconds."""

    def look(self, run: RunSnapshot) -> Changes | None:
        again_at, changes = self._looks.get(run.run_id, (0.0, None))
        return changes if time.monotonic() < again_at else self._look(run)

    def patch(self, run: RunSnapshot) -> bytes:
        """Return the patch that `look` describes from then on. Raises SubdeckError and OSError."""
        patch = io.BytesIO()
        changes = self._look(run, patch)
        if changes and (changes.edited or changes.is_nothing):
            return patch.getvalue() if changes.edited else b""
        return patch_of(self._project, run)

    def _look(self, run: RunSnapshot, patch: IO[bytes] | None = None) -> Changes | None:
        began = time.monotonic()
        changes = changes_of(self._project, run, patch)
        ended = time.monotonic()
        self._looks[run.run_id] = ended + max(EVERY_S, SHARE * (ended - began)), changes
        return changes


def changes_of(project: paths.Project, run: RunSnapshot, patch: IO[bytes] | None = None) -> Changes | None:
    """Return an ended run's changes; None if they are unknown. For a lost run, the changes that can still be
    determined.

    Runs git if the run had a worktree. If that was edited since, its current changes are returned, and written to
    `patch`.
    """
    known = run.changes
    if run.is_left_alone or not run.has_ended or not _may_have_worked(run):
        return known
    if known is not None and not known.note.startswith(NOT_RECORDED):
        return (_edited(project, run, patch) if run.meta.worktree else None) or known
    if known is not None and known.files:
        return known
    directory = paths.work_dir(project, run.run_id)
    if run.meta.worktree and (recorded := read_recorded(directory)):
        try:
            return replace(current(recorded, directory), note=SINCE_LOST)
        except (SubdeckError, OSError):
            pass
    if known is None and (run.reason is not RunReason.LOST or run.started_at is None):
        return None
    changes = changes_by_tools(run.meta, project.run_dir(run.run_id), known.note if known else BY_TOOLS)
    return replace(changes, settings=known.settings) if known else changes


def _may_have_worked(run: RunSnapshot) -> bool:
    """Whether its agent was started, or its wrapper died before it could write that down."""
    return run.started_at is not None or run.reason is RunReason.LOST


def _edited(project: paths.Project, run: RunSnapshot, patch: IO[bytes] | None) -> Changes | None:
    """Return the current changes in a run's worktree; None if it is unedited, gone or unreadable, or another run has
    continued in it.
    """
    from .source import host_of

    directory, record = host_of(project, run.run_id)
    recorded = read_recorded(paths.work_dir(project, run.run_id))
    tree = tree_of(directory)
    if record is None or record.away or recorded is None or not recorded.after:
        return None
    if os.path.realpath(recorded.root) != os.path.realpath(tree) or not has_worktree(directory):
        return None
    try:
        now = current(recorded, paths.work_dir(project, run.run_id), patch, is_over=True)
    except (SubdeckError, OSError):
        return None
    if now.tree == recorded.after or _has_successor(project, run, record.run_id):
        return None
    recorded_changes = run.changes or Changes()  # changes to settings are not checked again
    return replace(now, edited=True, settings=recorded_changes.settings, ignored=recorded_changes.ignored)


def _has_successor(project: paths.Project, run: RunSnapshot, owner: str) -> bool:
    """Whether a later run worked in the worktree that was made for `owner`."""
    second = run.run_id.rpartition("-")[0]
    later = (read_record(each) for each in work_dirs(project) if os.path.basename(each) >= second)
    return any(
        record.host == owner and record.made_at > run.meta.created_at
        for record in later
        if record is not None and record.run_id != run.run_id
    )


def patch_of(project: paths.Project, run: RunSnapshot) -> bytes:
    """Return a run's changes, as git writes them: recorded, or from its current files if they are its own, or it is
    running. Empty if git does not know them. Raises SubdeckError and OSError.
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


def current(recorded: Recorded, directory: str, patch: IO[bytes] | None = None, *, is_over: bool = False) -> Changes:
    """Compare a run's working tree with its earlier state; write the diff to `patch` if given.

    If the run is over, remove the data for the next check, and wait for other viewers. Raises SubdeckError and OSError,
    also if another viewer is busy.
    """
    from .snapshots import LIVE, compare

    live_directory = os.path.join(directory, LIVE)
    with _alone(live_directory, PATIENCE_S if is_over else 0.0):
        try:
            return compare(recorded, live_directory, lent=store_of(directory), patch=patch)[0]
        finally:
            if is_over:
                for name in files.names(live_directory):
                    path = os.path.join(live_directory, name)
                    (files.remove_tree if os.path.isdir(path) else files.remove)(path)


@contextmanager
def _alone(directory: str, patience: float) -> Generator[None]:
    """Lock the directory of the viewers' git data. Raises OSError if another viewer has it for too long."""
    files.make_private_directory(directory)
    descriptor = files.open_directory(directory)
    try:
        if not files.lock_soon(descriptor, patience):
            raise BlockingIOError("another viewer is already computing it")
        yield
    finally:
        os.close(descriptor)


# --- operations on the work of a project's runs ----------------------------------------------------------------------


class Work:
    """The work of one project's runs; modules are loaded when needed."""

    def __init__(self, project: paths.Project) -> None:
        self._project = project

    def changes(self, run: RunSnapshot) -> Changes | None:
        """Return a run's changes, or its changes so far; None if they are unknown.

        For a running run, or one that ended in a worktree, this checks the files. It takes as long as git, at most
        every five seconds and for a tenth of the time.
        """
        if run.is_left_alone or run.elsewhere or not _may_have_worked(run):
            return run.changes
        if not run.has_ended:
            return self._live.look(run)
        return self._ended.look(run)

    def patch(self, run: RunSnapshot) -> bytes:
        """Return a run's changes as git writes them; empty if git does not know them. Raises SubdeckError and
        OSError.
        """
        if run.has_ended and not run.is_left_alone:
            return self._ended.patch(run)
        return patch_of(self._project, run)

    def root(self, run: RunSnapshot) -> str:
        """Return the root of the working tree of a run; outside git its directory."""
        recorded = None if run.is_left_alone else read_recorded(paths.work_dir(self._project, run.run_id))
        return recorded.root if recorded else run.meta.cwd

    def side(self, run: RunSnapshot) -> Side:
        """Return a run's data for a comparison; takes as long as `changes`."""
        from .source import side_of

        return side_of(self._project, run, self.changes(run))

    def difference(self, run: RunSnapshot, other: RunSnapshot) -> Difference:
        """Compare the final or current files of two runs. Takes as long as git. Raises SubdeckError and OSError."""
        from .source import difference

        return difference(self._project, run, other)

    def plan(self, operation: Operation, run: RunSnapshot, /, **options: Any) -> Plan:
        """Plan an operation on a run's work. Changes nothing; raises SubdeckError and OSError."""
        return operation.plan(self._project, run, **options)

    def act(self, plan: Plan, message: str = "") -> Act:
        """Carry out a plan, with another `message` if given. Raises SubdeckError, OSError."""
        return plan.operation.act(self._project, plan, message)

    def forget(self, act: Act) -> None:
        """Make an act permanent, and remove its undo data. Raises OSError."""
        from .acts import drop

        drop(self._project, act.id)

    @cached_property
    def _ended(self) -> EndedChanges:

        return EndedChanges(self._project)

    @cached_property
    def _live(self) -> LiveChanges:

        return LiveChanges(self._project)
