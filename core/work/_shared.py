"""Who else may have changed what changed while a run was at work: then it is not claimed for the run."""

from __future__ import annotations

import os

from ..git.names import worded
from ..git.repository import find
from ..run.changes import Changes
from ..text.plain import one_line
from . import presence
from ._recorded import Recorded
from .written import Written

NAMED = 3
"""Runs or files that are named."""


def shared_words(recorded: Recorded, changes: Changes, written: Written) -> str:
    """Say who else was there, or may have been; empty where only the run can have changed anything.

    Other runs are known by the files they lock; a person by what git says, and by files that the tools of a run without
    a shell have not written.
    """
    found = (shared_now(recorded), _moved(recorded, written), _strange(recorded, changes, written))
    return "; ".join(filter(None, found))


def shared_now(recorded: Recorded) -> str:
    """Name the runs that have been in the working tree of a run since it began: also those that came."""
    try:
        known = presence.others(recorded.run_id, recorded.root)
    except OSError:
        return ""
    found = [one.words for one in known if one.is_there or one.run_id not in recorded.earlier]
    return f"other runs there: {_listed(found)}" if found else ""


def _moved(recorded: Recorded, written: Written) -> str:
    """Say that something else was checked out meanwhile, unless a command of the run itself may have done so."""
    if written.has_git:
        return ""
    now = find(recorded.root)
    if now is None or now.trouble:
        return ""
    if (now.branch or "") != recorded.branch:
        return f"another branch was checked out: {one_line(now.branch or 'none', 80)}"
    return "HEAD was moved" if (now.head or "") != recorded.head else ""


def _strange(recorded: Recorded, changes: Changes, written: Written) -> str:
    """Name what changed without a tool of the run, where it has no other means."""
    if written.has_commands or len(changes.named) < changes.files:
        return ""
    own = {worded(os.fsencode(os.path.relpath(os.path.realpath(path), recorded.root))) for path in written.paths}
    strange = [one_line(file.path, 80) for file in changes.named if file.path not in own]
    return f"not written by its tools: {_listed(strange)}" if strange else ""


def _listed(names: list[str]) -> str:
    more = len(names) - NAMED
    return ", ".join(names[:NAMED]) + (f" and {more} more" if more > 0 else "")
