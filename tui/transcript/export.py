"""Write a file that somebody asked for, whole or not at all."""

from __future__ import annotations

import os
import re
import secrets
from collections.abc import Iterable

from ...core.errors import SubdeckError
from ...core.text.plain import one_line

_UNFIT = re.compile(r"[^\w.-]+")
NAME_LENGTH = 60


def file_name(name: str, short_id: str) -> str:
    """Answer a name for the file of a run that needs no quoting anywhere."""
    fit = _UNFIT.sub("-", name[: NAME_LENGTH * 2])[:NAME_LENGTH].strip("-.")
    return f"{fit or 'run'}-{short_id}.md"


def full_path(written: str, cwd: str) -> str:
    return os.path.abspath(os.path.join(cwd, os.path.expanduser(written.strip())))


def exists(path: str) -> bool:
    """Answer whether a file is there already. Raises SubdeckError for a place where none can be."""
    if not path:
        raise SubdeckError("no file is named", hint="name one")
    if os.path.isdir(path):
        raise SubdeckError(f"{one_line(path)} is a directory", hint="name a file in it")
    directory = os.path.dirname(path)
    if not os.path.isdir(directory):
        raise SubdeckError(f"there is no directory {one_line(directory)}", hint="make it first, or choose another")
    return os.path.lexists(path)


def save(path: str, pieces: Iterable[str], *, over: bool) -> int:
    """Write the pieces; answer how many bytes. Raises OSError; without `over` FileExistsError for what is there."""
    if not over:
        return _write(path, pieces)
    path = os.path.realpath(path)
    directory, name = os.path.split(path)
    temporary = os.path.join(directory, f".{name[:80]}.{secrets.token_hex(4)}")
    size = _write(temporary, pieces)
    os.replace(temporary, path)
    return size


def _write(path: str, pieces: Iterable[str]) -> int:
    """Write a new file; what was begun and cannot be ended is removed."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666)
    try:
        with open(descriptor, "wb") as file:
            for piece in pieces:
                file.write(piece.encode("utf-8", "replace"))
            return file.tell()
    except BaseException:
        os.unlink(path)
        raise
