"""Actions in a project that can be undone, the last one first: one stack for the app and the command line.

The stack is in the user's state, a line per act. An operation on a repository writes its act before, as `begun`, and
again when it is done. An act interrupted by a kill stays here, and is undone like the rest.
"""

from __future__ import annotations

import os
import time
from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import msgspec
from msgspec import structs

from .. import paths
from ..errors import SubdeckError
from ..project.trash import size_of
from ..system import files
from ..text.decoder import UNDECODABLE, decode
from .operation import BY_KIND, Act, ActKind, TakenBack, Undo

KEPT = 24 * 3600.0
"""Seconds that discarded work can be restored: it takes as much space as before."""
MOST = 100
"""Acts on the stack; older ones are dropped with their files."""


def record(project: paths.Project, kind: ActKind, words: str, data: dict[str, Any], *, begun: bool = False) -> Act:
    """Put an act on the stack. Raises OSError; then it is not there."""
    act = Act(os.urandom(6).hex(), kind, words, paths.now_iso(), data, begun)
    with _changing(project) as acts:
        acts.append(act)
        for old in acts[:-MOST]:
            files.remove_tree(undo_directory(project, old.id))
        del acts[:-MOST]
    return act


def finish(project: paths.Project, act: Act, data: dict[str, Any] | None = None) -> Act:
    """Mark a begun act as done, with new data if given. Raises OSError."""
    done = structs.replace(act, begun=False, data=act.data if data is None else data)
    with _changing(project) as acts:
        acts[:] = [done if one.id == act.id else one for one in acts]
    return done


def note_undo(project: paths.Project, act: Act, undo: Undo | None) -> None:
    """Record that an undo of an act is about to write files, or that it wrote none. Raises OSError."""
    noted = structs.replace(act, undo=undo)
    with _changing(project) as acts:
        acts[:] = [noted if one.id == act.id else one for one in acts]


def join(project: paths.Project, act_ids: Sequence[str], title: str) -> None:
    """Group several acts, to be undone together as one. Raises OSError."""
    with _changing(project) as acts:
        acts[:] = [structs.replace(act, part_of=title) if act.id in act_ids else act for act in acts]


def drop(project: paths.Project, act_id: str) -> bool:
    """Remove an act from the stack, with its files; return whether it was there. Raises OSError."""
    with _changing(project) as acts:
        remaining = [act for act in acts if act.id != act_id]
        was_there = len(remaining) < len(acts)
        acts[:] = remaining
    files.remove_tree(undo_directory(project, act_id))
    return was_there


def tidy(project: paths.Project) -> None:
    """Drop work discarded more than `KEPT` seconds ago, and remove files of acts that are no longer on the stack: a
    process may be killed while it drops one. Raises OSError.
    """
    above = os.path.dirname(undo_directory(project, "-"))
    if not os.path.isdir(above):
        return
    oldest = paths.iso_time(time.time() - KEPT)
    with _changing(project) as acts:
        acts[:] = [act for act in acts if act.kind is not ActKind.DISCARD or act.at > oldest]
        for name in set(files.names(above)) - {act.id for act in acts}:
            files.remove_tree(undo_directory(project, name))


def expire(project: paths.Project, before: str) -> None:
    """Remove work discarded before a time from the stack, with its files. Raises OSError."""
    for act in read(project):
        if act.kind is ActKind.DISCARD and act.at < before and not act.begun:
            drop(project, act.id)


def read(project: paths.Project) -> list[Act]:
    """Return the stack, the last act last; unreadable lines are skipped."""
    return list(_parsed(files.content(file_of(project))))


def undo_directory(project: paths.Project, act_id: str) -> str:
    """Return the directory for an act's files; it is removed with the act, and created when needed."""
    return os.path.join(paths.works_dir(project), "undo", act_id)


def discarded_sizes(project: paths.Project) -> list[int]:
    """Return the sizes in bytes of discarded worktrees that can still be restored."""
    kept = [undo_directory(project, act.id) for act in read(project) if act.kind is ActKind.DISCARD]
    return [size_of(directory) for directory in kept if os.path.isdir(directory)]


def file_of(project: paths.Project) -> str:
    """Return the path of the stack."""
    return os.path.join(paths.works_dir(project), "undo.jsonl")


def _parsed(content: bytes) -> Iterator[Act]:
    for line in content.split(b"\n"):
        try:
            act = decode(line, Act)
        except UNDECODABLE:
            continue
        if act.id.isalnum():  # it becomes the name of a directory that is removed
            yield act


def last_act(project: paths.Project) -> Act | None:
    """Return the act that undo would revert now; skip acts whose runs have left the trash."""
    return next((act for act in reversed(read(project)) if not _is_void(project, act)), None)


def take_back(project: paths.Project, act: Act) -> TakenBack:
    """Undo one act and remove it from the stack, with the other steps of the same action.

    Raises SubdeckError if that fails in full or in part; an act whose runs have left the trash also leaves the stack.
    """
    back = _take_back_one(project, act)
    count = 1
    while act.part_of and (before := next(reversed(read(project)), None)) and before.part_of == act.part_of:
        _take_back_one(project, before)
        count += 1
    return back if count == 1 else TakenBack(f"undid {act.part_of}")


def _take_back_one(project: paths.Project, act: Act) -> TakenBack:
    operation = BY_KIND.get(act.kind)
    if operation is None:
        raise SubdeckError(f"this version of subdeck cannot undo {act.title}", hint="use the version that did it")
    try:
        back = operation.undo(project, act)
    except UNDECODABLE as error:
        what = f"cannot undo {act.title}: its record is damaged, or from another version of subdeck"
        hint = f'remove the line with "{act.id}" from that file to undo the action before it'
        raise SubdeckError(what, where=file_of(project), hint=hint) from error
    drop(project, act.id)
    return back


def _is_void(project: paths.Project, act: Act) -> bool:
    operation = BY_KIND.get(act.kind)
    return operation is not None and operation.is_void(project, act)


@contextmanager
def _changing(project: paths.Project) -> Generator[list[Act]]:
    """Yield the acts for a change under a lock, then write them."""
    directory = paths.works_dir(project)
    files.make_private_directory(directory)
    descriptor = files.open_directory(directory)
    try:
        files.lock(descriptor)
        acts = read(project)
        yield acts
        content = b"".join(msgspec.json.encode(act) + b"\n" for act in acts)
        files.write_whole(file_of(project), content, durable=True)
    finally:
        os.close(descriptor)
