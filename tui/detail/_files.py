"""The files of one run: their list, and the parts of them that are shown."""

from __future__ import annotations

import os
import stat

from msgspec import Struct

from ...core.run.describe import size_text
from ...core.system.directory import opened
from ...core.system.files import open_regular
from .page import Row, note, text_rows

FILE_LIMIT = 256 * 1024
"""Bytes shown of a file; the pager shows the whole file."""


class RunFile(Struct, frozen=True):
    name: str
    path: str
    size: int
    modified: float
    """Seconds since the epoch."""


class FilePart(Struct, frozen=True):
    text: str
    size: int
    """Bytes of the whole file."""
    is_cut: bool
    """Whether only a part was read."""


def list_files(run_dir: str) -> tuple[RunFile, ...]:
    try:
        with opened(run_dir) as directory:
            files = [
                RunFile(name, os.path.join(run_dir, name), status.st_size, status.st_mtime)
                for name, status in directory.entries()
                if not name.startswith(".") and not name.endswith(".tmp") and stat.S_ISREG(status.st_mode)
            ]
    except OSError:
        return ()
    return tuple(sorted(files, key=lambda file: file.name))


def read_part(path: str, *, from_end: bool = False) -> FilePart | None:
    """Read the first `FILE_LIMIT` bytes of a file, or the last, starting at a line; None if it cannot be read."""
    try:
        descriptor, status = open_regular(path)
        with open(descriptor, "rb") as file:
            start = file.seek(max(0, status.st_size - FILE_LIMIT)) if from_end else 0
            content = file.read(FILE_LIMIT)
    except OSError:
        return None
    if start:
        content = content.partition(b"\n")[2] or content
    return FilePart(content.decode("utf-8", "replace"), status.st_size, start > 0 or len(content) < status.st_size)


def first_rows(part: FilePart, width: int) -> list[Row]:
    rows = text_rows(part.text, width)
    return [*rows, note(f"… truncated, the whole file is {size_text(part.size)}")] if part.is_cut else rows


def last_rows(part: FilePart, width: int, longest: int | None = None) -> list[Row]:
    """Lay out the end of a file; `longest` is the number of characters shown of a line."""
    rows = text_rows("\n".join(line[:longest] for line in part.text.split("\n")), width)
    return [note(f"… last part of {size_text(part.size)}"), *rows] if part.is_cut else rows
