"""Read a bounded part of a file of a run, which may be missing, huge, or no file at all."""

from __future__ import annotations

import os
import stat
from dataclasses import dataclass

from ...core.system.files import open_regular
from .page import FileRow

LIMIT = 256 * 1024
"""Bytes of a file that are shown; the pager shows all of it."""


@dataclass(frozen=True, slots=True)
class FilePart:
    text: str
    size: int
    """Bytes of the whole file."""
    cut: bool
    """Whether only a part was read."""


def beginning(path: str, limit: int = LIMIT) -> FilePart | None:
    """Read the first `limit` bytes; None where there is no regular file."""
    return _read(path, 0, limit)


def end(path: str, limit: int = LIMIT) -> FilePart | None:
    """Read the last `limit` bytes, from the beginning of a line; None where there is no regular file."""
    return _read(path, limit, limit)


def listed(run_dir: str) -> tuple[FileRow, ...]:
    """Return the files of a run by name, with size and time."""
    try:
        with os.scandir(run_dir) as entries:
            found = [
                FileRow(entry.name, entry.path, status.st_size, status.st_mtime)
                for entry in entries
                if not entry.name.startswith(".")
                if stat.S_ISREG((status := entry.stat(follow_symlinks=False)).st_mode)
            ]
    except OSError:
        return ()
    return tuple(sorted(found, key=lambda row: row.name))


def _read(path: str, from_end: int, limit: int) -> FilePart | None:
    try:
        descriptor, status = open_regular(path)
    except OSError:
        return None
    try:
        start = max(0, status.st_size - from_end) if from_end else 0
        content = os.pread(descriptor, limit, start)
    except OSError:
        return None
    finally:
        os.close(descriptor)
    if start:
        content = content.partition(b"\n")[2] or content
    return FilePart(content.decode("utf-8", "replace"), status.st_size, start > 0 or len(content) < status.st_size)
