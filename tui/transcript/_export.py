"""Export a run: the path and the writing of a saved file, and the text of a view for the pager."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from ...core.errors import SubdeckError
from ...core.run.progress import ProgressFormatter
from ...core.system.files import write_new, write_whole
from ...core.text.plain import one_line
from ..feed.lines import View, body_of_line, body_text, entry_of_line, full_text

if TYPE_CHECKING:
    from ...core.system.line_file import LineFile

_UNFIT = re.compile(r"[^\w.-]+")
NAME_LENGTH = 60


def file_name(name: str, short_id: str) -> str:
    """Return a file name for a run that needs no quoting anywhere."""
    fit = _UNFIT.sub("-", name[: NAME_LENGTH * 2])[:NAME_LENGTH].strip("-.")
    return f"{fit or 'run'}-{short_id}.md"


def full_path(written: str, cwd: str) -> str:
    """Return the absolute path of a typed one; `~` is the home directory."""
    return os.path.abspath(os.path.join(cwd, os.path.expanduser(written.strip())))


def exists(path: str) -> bool:
    """Return whether a file exists already. Raises SubdeckError for an impossible path."""
    if not path:
        raise SubdeckError("no file name", hint="enter a path")
    if os.path.isdir(path):
        raise SubdeckError(f"{one_line(path)} is a directory", hint="name a file in it")
    directory = os.path.dirname(path)
    if not os.path.isdir(directory):
        raise SubdeckError(f"{one_line(directory)} does not exist", hint="create it, or choose another")
    return os.path.lexists(path)


def save(path: str, pieces: Iterable[str], *, over: bool) -> int:
    """Write the pieces; return the number of bytes. Raises OSError; without `over` FileExistsError for an existing
    file.
    """
    content = (piece.encode("utf-8", "replace") for piece in pieces)
    if over:
        write_whole(os.path.realpath(path), content, mode=0o666)
    else:
        write_new(path, content, mode=0o666)
    return os.path.getsize(path)


TIME_WIDTH = 10
"""Cells of the time in front of a line."""

BODY_PREFIX = "  │ "
_UNFINISHED = 1024 * 1024
"""Bytes of an unfinished last line that are included."""


def text_of(file: LineFile, view: str) -> Iterator[str]:
    """Yield the text in pieces: every line of the view, opened, without control characters."""
    formatter = ProgressFormatter()
    end = 0
    for _, block, following in file.blocks(0):
        end = following
        texts = (_text_of_line(view, line, formatter) for line in block.split(b"\n")[:-1])
        yield "".join(f"{text}\n" for text in texts if text is not None)
    if view == View.STDERR and (unfinished := file.read(end, _UNFINISHED)):
        yield f"{_text_of_line(view, unfinished, formatter)}\n"


def _text_of_line(view: str, line: bytes, formatter: ProgressFormatter) -> str | None:
    if view != View.READABLE:
        return full_text(view, line, formatter) if line or view == View.STDERR else None
    entry = entry_of_line(view, line, formatter)
    if entry is None:
        return None
    first, *more = entry.text.split("\n")
    lines = [entry.time.ljust(TIME_WIDTH) + first, *(" " * TIME_WIDTH + line for line in more)]
    if entry.opens:
        body = body_text(body_of_line(view, line)).split("\n")
        lines += [" " * TIME_WIDTH + BODY_PREFIX + text for text in body]
    return "\n".join(line.rstrip() for line in lines)
