"""A run's changes in a git repository: its working tree before and afterwards, compared by git.

The wrapper does this in separate processes (`core/wrapper/_recorder.py`), and kills them if they take too long. Modules
needed only at the end are loaded then: the agent's task waits for the beginning.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from typing import IO

from msgspec.structs import replace

from .. import paths
from ..errors import SubdeckError
from ..git.repository import Repository, find
from ..git.snapshot import Snapshot, Store
from ..run.changes import MOST_FILES, NOT_RECORDED, ChangedFile, Changes, FileStatus
from ..run.events import Baseline
from ..run.model import RunMeta
from ..system import files
from . import presence
from .records import Large, Recorded, WorkRecord, index_of, read_record, read_recorded, store_of, write_recorded

MOST_PATCH = 32 * 1024 * 1024
"""Limit for `changes.patch`."""
MOST_SETTINGS = 50
"""Settings to name."""
LIVE = "live"
"""Directory for viewers' git data while a run is running, beside the records."""
_FOREIGN = "not a git repository"


def project_of(run_dir: str) -> paths.Project:
    """Return the project that a run's directory belongs to."""
    return paths.Project(os.path.dirname(os.path.dirname(os.path.dirname(os.path.dirname(run_dir)))))


def begin(meta: RunMeta, run_dir: str, root: str) -> Baseline:
    """Record the working tree before the agent does anything; `root` is its expected root."""
    try:
        recorded = _before(meta, paths.work_dir(project_of(run_dir), meta.run_id), root)
    except (SubdeckError, OSError) as error:
        return Baseline(root=root, note=f"{NOT_RECORDED}: {error}")
    return Baseline(
        root=recorded.root,
        prefix=recorded.prefix,
        tree=recorded.before,
        head=recorded.head,
        branch=recorded.branch,
    )


def _before(meta: RunMeta, directory: str, root: str) -> Recorded:
    """Raise SubdeckError and OSError if nothing can be recorded."""
    repository = repository_of(meta.cwd)
    made = _own_worktree(directory) if meta.worktree else None
    store = _store(store_of(directory))
    snapshot = None if made else store.take(repository)
    if made:
        store.begin(repository, index_of(directory))
    other_runs = presence.others(meta.run_id, root)
    recorded = Recorded(
        run_id=meta.run_id,
        root=repository.root,
        common_dir=repository.common_dir,
        before=made.base if made else snapshot.tree if snapshot else "",
        prefix=repository.prefix,
        head=repository.head or "",
        branch=repository.branch or "",
        left_out=_left_out(snapshot) if snapshot else {},
        others=tuple(run.run_id for run in other_runs if run.is_there),
        earlier=tuple(run.run_id for run in other_runs if not run.is_there),
        git_dir=repository.git_dir,
        reading=store.reading,
    )
    write_recorded(directory, recorded)
    return recorded


def _store(directory: str, recorded: Recorded | None = None, seed: str = "") -> Store:
    """Open a store; subdeck's own state is excluded, even if the user's home is a repository."""
    reading = recorded.reading if recorded else None
    return Store(directory, aside=(paths.state_file(), paths.cache_dir()), reading=reading, seed=seed)


def _own_worktree(directory: str) -> WorkRecord | None:
    """Return the record of a worktree made for a run; None if it continues in another run's."""
    made = read_record(directory)
    return None if made and getattr(made, "host", "") else made


def repository_of(directory: str) -> Repository:
    """Return the repository of a directory. Raises SubdeckError if it has none with a working tree."""
    repository = find(directory)
    if repository is None:
        raise SubdeckError(_FOREIGN)
    if repository.trouble:
        raise SubdeckError(repository.trouble)
    return repository


def finish(meta: RunMeta, run_dir: str, root: str) -> Changes:
    """Record the working tree after the run, with `changes.patch`; return its changes."""
    from .attribution import Written, shared_words

    directory = paths.work_dir(project_of(run_dir), meta.run_id)
    try:
        recorded = read_recorded(directory)
        if recorded is None:
            return Changes(note="the directory's earlier state is unknown")
        descriptor = files.open_private(os.path.join(run_dir, paths.CHANGES_PATCH), os.O_RDWR | os.O_TRUNC)
        with open(descriptor, "w+b") as patch:
            changes, snapshot = compare(recorded, store_of(directory), patch=patch)
        write_recorded(directory, replace(recorded, after=snapshot.tree))
        written = Written(meta.cwd, os.path.join(run_dir, paths.EVENTS))
        written.read(is_over=True)
        if not files.exists(os.path.join(run_dir, paths.CODE)):  # otherwise it had its host's tree to itself
            changes = replace(changes, shared=shared_words(recorded, changes, written))
        _tidy(directory, run_dir, changes)
        return changes
    except (SubdeckError, OSError) as error:
        return Changes(note=f"{NOT_RECORDED}: {error}", settings=_settings(directory))
    finally:
        try:
            presence.leave(meta.run_id, root)
        except OSError:
            pass


def _settings(directory: str) -> tuple[str, ...]:
    """Return the changed settings of a repository that cannot be read."""
    try:
        recorded = read_recorded(directory)
        return _changed_settings(recorded) if recorded else ()
    except (SubdeckError, OSError):
        return ()


def _tidy(directory: str, run_dir: str, changes: Changes) -> None:
    """Remove data that is no longer needed after the run."""
    files.remove_tree(os.path.join(directory, LIVE))
    files.remove(os.path.join(store_of(directory), "index"))
    if changes.files:
        return
    files.remove(os.path.join(run_dir, paths.CHANGES_PATCH))
    made = read_record(directory)
    if made is None or not made.host:  # another run's worktree may be edited later, and is then compared with this
        _store(store_of(directory)).remove()


def compare(
    recorded: Recorded, store: str, *, lent: str = "", patch: IO[bytes] | None = None
) -> tuple[Changes, Snapshot]:
    """Compare the current working tree, which has a store, with its earlier state; write the diff to `patch` if given.

    `lent` is the store with the earlier tree, if it is another one. Raises SubdeckError and OSError.
    """
    from ..git.diff import changed_files, write_patch

    if os.path.islink(recorded.root):
        raise SubdeckError("its working tree was replaced by a link")
    repository = repository_of(recorded.root)
    first = index_of(os.path.dirname(store))
    taken = _store(store, recorded, first if os.path.exists(first) or not lent else os.path.join(lent, "index"))
    snapshot = taken.take(repository)
    alternates = (os.path.join(lent, "objects"),) if lent else ()
    git = taken.git(repository, alternates=alternates)
    named = (*changed_files(git, recorded.before, snapshot.tree), *_large(recorded.left_out, _left_out(snapshot)))
    if patch is not None:
        write_patch(git, recorded.before, snapshot.tree, patch, MOST_PATCH)
    ignored, unknown = (), ""
    if recorded.reading:
        from ..git.ignored import newly_ignored

        since = recorded.reading.at_ns
        try:
            ignored = newly_ignored(git, recorded.root, recorded.before, snapshot.tree, since)
        except (SubdeckError, OSError) as error:
            unknown = f"files hidden by new ignore rules are unknown: {error}"
    settings = _changed_settings(recorded)
    note = "; ".join(filter(None, (snapshot.note, unknown)))
    changes = replace(summed(named, snapshot.tree), note=note, settings=settings, ignored=ignored)
    return changes, snapshot


def _changed_settings(recorded: Recorded) -> tuple[str, ...]:
    """Return the names of the repository's changed settings."""
    from ..git.read_settings import changed_settings

    if recorded.reading is None:
        return ()
    return changed_settings(recorded.reading, recorded.root, recorded.git_dir, recorded.common_dir)[:MOST_SETTINGS]


def summed(named: Iterable[ChangedFile], tree: str = "") -> Changes:
    """Add up the files."""
    ordered = sorted(named, key=lambda file: file.path)
    return Changes(
        files=len(ordered),
        added=sum(file.added or 0 for file in ordered),
        removed=sum(file.removed or 0 for file in ordered),
        tree=tree,
        named=tuple(ordered[:MOST_FILES]),
    )


def _left_out(snapshot: Snapshot) -> dict[str, Large]:
    return {
        file.path: Large(file.size or None, file.mtime_ns or None, file.why, file.ctime_ns or None)
        for file in snapshot.skipped
    }


def _large(before: dict[str, Large], after: dict[str, Large]) -> Iterator[ChangedFile]:
    """Yield changed files that are in no tree."""
    from ..run.describe import size_text

    for path in sorted(before.keys() | after.keys()):
        old, new = before.get(path), after.get(path)
        if old == new or (old and new and old.status_ns is None and old == replace(new, status_ns=None)):
            continue  # as far as it was recorded
        status = FileStatus.MODIFIED if old and new else FileStatus.ADDED if new else FileStatus.DELETED
        size = (new or old or Large()).size
        why = (new or old or Large()).why
        yield ChangedFile(path, status, note=f"{why}: {size_text(size)}" if size else why)
