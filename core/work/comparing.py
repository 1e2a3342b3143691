"""What differs between what two runs have left: tree against tree, as git tells it."""

from __future__ import annotations

import io
import os

from msgspec import Struct

from .. import paths
from ..errors import SubdeckError, UsageError
from ..git.diff import changed_files, write_patch
from ..git.program import Git
from ..git.snapshot import Store
from ..run.artifacts import read_result
from ..run.changes import Changes
from ..run.comparison import Side
from ..run.snapshot import RunSnapshot
from ..system import files
from .recording import MOST_PATCH, summed
from .source import root_of, source_of, tidy, usable, words_of


class Difference(Struct, frozen=True, kw_only=True):
    """What would make of the files that one run has left those that another has."""

    run: str
    other: str
    """Name the two for people: `reviewer 4ae0bd`."""
    changes: Changes
    patch: bytes
    """As git writes it."""
    notes: tuple[str, ...] = ()
    """What a person should know, clauses."""


def side_of(project: paths.Project, run: RunSnapshot, changes: Changes | None) -> Side:
    """Return a run with what it changed and the beginning of its answer."""
    result = read_result(project.run_dir(run.run_id)) if run.has_ended else None
    return Side(run=run, changes=changes, answer=((result and result.final_text) or ""))


def difference(project: paths.Project, run: RunSnapshot, other: RunSnapshot) -> Difference:
    """Compare what two runs have left, or have up to now. Takes as long as git.

    Raises SubdeckError where it is not known of one of them, or where they worked in different repositories; OSError.
    """
    for one in (run, other):
        if one.is_left_alone:
            raise SubdeckError(f"{words_of(one)} is not compared: the run is not trusted", where=one.run_id)
    if run.run_id == other.run_id:
        raise UsageError("cannot compare a run with itself", where=run.run_id)
    target = usable(root_of(project, run))
    directory = os.path.join(paths.works_dir(project), f".compared-{os.getpid()}-{os.urandom(3).hex()}")
    store = Store(directory)
    try:
        sources = [source_of(project, one, store, target) for one in (run, other)]
        git = store.git(target)
        first, second = sources
        notes = [f"{source.words} is still running" for source in sources if source.is_running]
        notes += [f"{source.words}: {note}" for source in sources for note in source.notes]
        if _tree(git, first.before) != _tree(git, second.before):
            notes.append("they started from different files, which are part of the difference")
        named = changed_files(git, first.after, second.after)
        patch = io.BytesIO()
        kept = write_patch(git, first.after, second.after, patch, MOST_PATCH)
        if not kept.is_whole:
            notes.append("the patch is too long to show in full")
        for source in sources:
            tidy(source.directory)
        return Difference(
            run=first.words,
            other=second.words,
            changes=summed(named, second.after),
            patch=patch.getvalue(),
            notes=tuple(notes),
        )
    finally:
        files.remove_tree(directory)


def _tree(git: Git, name: str) -> bytes:
    """Return the tree that a tree or a commit is."""
    return git.run("rev-parse", "--verify", "--end-of-options", f"{name}^{{tree}}").strip()
