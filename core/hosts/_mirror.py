"""Which files of a run are mirrored, and which parts of them the operator lacks."""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Mapping

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from .. import paths
from ..run.model import RunResult
from ..run.proven import counts
from ..system.directory import Directory, RefusedError, opened
from ..text.decoder import UNDECODABLE, decode
from .protocol import MOST_MESSAGE, Bell, Chunk, End, Have

GROWING = (paths.STDERR, paths.STDOUT, paths.TRANSCRIPT, paths.EVENTS)
"""Mirrored while they grow; events last, so that the files they mention are there."""
AT_END = (paths.CHILD_SESSION, paths.CHANGES_PATCH, paths.CHECK_LOG, paths.SETUP_LOG)
"""Mirrored with the result, like the prompts of later attempts."""
MOST_BYTES = 1024 * 1024 * 1024
"""Most bytes mirrored of one file; the rest stays on the host."""
_LATER_PROMPT = r"prompt-[1-9][0-9]{0,3}\.md"
_LARGEST_RESULT = MOST_MESSAGE // 2
_LARGEST_BELL = 16384
_CUT_AT = 1_000_000
"""Characters kept of the answer in a result that is too large for a message."""


def is_mirrored(name: str) -> bool:
    """Return whether files of this name may be sent to the operator."""
    return name in GROWING or name in AT_END or re.fullmatch(_LATER_PROMPT, name) is not None


class Lacking(Struct, frozen=True):
    """Files and results that the operator lacks, for one answer."""

    chunks: tuple[Chunk, ...] = ()
    bells: tuple[Bell, ...] = ()
    ends: tuple[End, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.chunks or self.bells or self.ends)


class _Run(Struct, frozen=True):
    """A run that may have news."""

    result: bytes
    """Encoded; empty while it has none."""
    pieces: tuple[tuple[str, int, int], ...]
    """Name, offset and missing bytes of each file that is longer here."""
    bell: bytes | None
    """New activity file content, if any."""

    @property
    def wanted(self) -> int:
        return sum(size for _, _, size in self.pieces)


def lacking(project: paths.Project, have: Mapping[str, Have], budget: int) -> Lacking:
    """Return the next pieces of these runs, given what the operator has: at most `budget` bytes, shared fairly.

    A run's result comes with its last piece, never before.
    """
    try:
        runs = opened(project.runs)
    except OSError:
        return Lacking()
    with runs:
        candidates = {run_id: run for run_id, has in have.items() if (run := _look(project, runs, run_id, has))}
        limits = shares({run_id: run.wanted for run_id, run in candidates.items()}, budget)
        chunks: list[Chunk] = []
        ends: list[End] = []
        for run_id, run in candidates.items():
            pieces, is_whole = _read(runs, run_id, run, limits[run_id])
            chunks += pieces
            if run.result and is_whole and (not ends or budget > 0):
                ends.append(End(run_id, _fitting(run.result)))
                budget -= len(run.result)
    bells = tuple(
        Bell(run_id, run.bell) for run_id, run in candidates.items() if run.bell is not None and not run.result
    )
    return Lacking(tuple(chunks), bells, tuple(ends))


def shares(requests: Mapping[str, int], budget: int) -> dict[str, int]:
    """Share a number of bytes: small requests get all they need, the others equal parts."""
    granted: dict[str, int] = {}
    asking = len(requests)
    for run_id, size in sorted(requests.items(), key=lambda item: item[1]):
        granted[run_id] = min(size, budget // asking)
        budget -= granted[run_id]
        asking -= 1
    return granted


def _look(project: paths.Project, runs: Directory, run_id: str, has: Have) -> _Run | None:
    try:
        directory = runs.inside(run_id)
    except OSError:
        return None
    with directory:  # closed until it is read: there may be more runs than files that may be open
        result = _record(directory, paths.RESULT)  # first: everything written before the result is complete
        if result and not counts(directory.path, paths.RESULT, result):
            result = b""
        names = (*GROWING, *AT_END, *_later_prompts(directory)) if result else GROWING
        pieces = tuple((name, offset, size) for name in names for offset, size in _more(directory, name, has))
    bell = None if result else _bell(project, run_id, has)
    return _Run(result, pieces, bell) if result or pieces or bell is not None else None


def _more(directory: Directory, name: str, has: Have) -> list[tuple[int, int]]:
    try:
        status = directory.status(name)
    except OSError:
        return []
    offset = has.sizes.get(name, 0)
    size = min(status.st_size, MOST_BYTES) - offset
    return [(offset, size)] if stat.S_ISREG(status.st_mode) and size > 0 else []


def _later_prompts(directory: Directory) -> list[str]:
    try:
        return sorted(name for name in directory.names() if re.fullmatch(_LATER_PROMPT, name))
    except OSError:
        return []


def _bell(project: paths.Project, run_id: str, has: Have) -> bytes | None:
    try:
        with opened(project.active) as active:
            content = active.read(run_id)
    except OSError:
        return None
    return content if content != has.bell and len(content) <= _LARGEST_BELL else None


def _read(runs: Directory, run_id: str, run: _Run, most: int) -> tuple[list[Chunk], bool]:
    """Read up to `most` bytes of the pieces, in order; return whether that was everything."""
    if not run.pieces:
        return [], True
    try:
        with runs.inside(run_id) as directory:
            return _read_from(directory, run_id, run, most)
    except OSError:
        return [], False


def _read_from(directory: Directory, run_id: str, run: _Run, most: int) -> tuple[list[Chunk], bool]:
    chunks: list[Chunk] = []
    for name, offset, size in run.pieces:
        if most <= 0:
            return chunks, False
        try:
            content = _part(directory, name, offset, min(size, most))
        except (FileNotFoundError, PermissionError, RefusedError):
            continue  # removed, or no longer a readable file: it gets no more content
        except OSError:
            return chunks, False
        if content:
            chunks.append(Chunk(run_id, name, offset, content))
        most -= len(content)
        if 0 < len(content) < size:
            return chunks, False
    return chunks, True


def _part(directory: Directory, name: str, offset: int, size: int) -> bytes:
    descriptor = directory.open(name, os.O_RDONLY)
    try:
        return os.pread(descriptor, size, offset)
    finally:
        os.close(descriptor)


def _record(directory: Directory, name: str) -> bytes:
    try:
        return directory.read(name)
    except OSError:
        return b""


def _fitting(result: bytes) -> bytes:
    """Return a result unchanged, or with a truncated answer if it is too large for a message."""
    if len(result) <= _LARGEST_RESULT:
        return result
    try:
        whole = decode(result, RunResult)
    except UNDECODABLE:
        return result[:_LARGEST_RESULT]
    note = f"the answer was truncated to {_CUT_AT:,} characters in transfer"
    cut = replace(
        whole,
        final_text=whole.final_text and whole.final_text[:_CUT_AT],
        finalized=None,
        artifact_errors=(*whole.artifact_errors, note),
    )
    return msgspec.json.encode(cut)
