"""Read a task from a file, or say in words why not."""

from __future__ import annotations

import os

from ...core.errors import UsageError
from ...core.text.plain import one_line, plain
from ..text.format import short_path

LIMIT = 256 * 1024
"""Bytes; more than that is no task but material, which an agent reads better by itself."""


def read_text(path: str) -> str:
    """Answer the text of a file, fit for the screen. Raises UsageError."""
    shown = short_path(path, 60)
    if not os.path.lexists(path):
        raise UsageError(f"{shown} does not exist", hint="choose a file that exists")
    if os.path.isdir(path):
        raise UsageError(f"{shown} is a directory", hint="choose a file in it")
    if not os.path.isfile(path):
        raise UsageError(f"{shown} is no plain file", hint="choose a text file")
    try:
        with open(path, "rb") as file:
            content = file.read(LIMIT + 1)
            size = os.fstat(file.fileno()).st_size
    except OSError as error:
        raise UsageError(
            f"{shown} cannot be read: {one_line(error.strerror or '')}", hint="check its rights"
        ) from error
    if len(content) > LIMIT:
        hint = "name the file in the task instead: the agent can read it"
        raise UsageError(f"{shown} is too large: {size // 1024} KB, at most {LIMIT // 1024} KB are taken", hint=hint)
    try:
        return plain(content.decode("utf-8-sig")).rstrip("\n")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise UsageError(f"{shown} is not UTF-8 text (line {line})", hint="save it as UTF-8 first") from error
