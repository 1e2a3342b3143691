"""Records: JSON files that are read as the type they were written from."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import TypeVar, overload

from ..text.decoder import UNDECODABLE, decode
from . import files

T = TypeVar("T")
Report = Callable[[Exception], None]


@overload
def read_record(
    path: str,
    kind: type[T],
    *,
    damaged: T | None = None,
    certain: bool = False,
    follow: bool = False,
    largest: int = -1,
    report: Report | None = None,
) -> T | None: ...
@overload
def read_record(
    path: str,
    kind: type[T],
    otherwise: T,
    *,
    damaged: T | None = None,
    certain: bool = False,
    follow: bool = False,
    largest: int = -1,
    report: Report | None = None,
) -> T: ...
def read_record(
    path: str,
    kind: type[T],
    otherwise: T | None = None,
    *,
    damaged: T | None = None,
    certain: bool = False,
    follow: bool = False,
    largest: int = -1,
    report: Report | None = None,
) -> T | None:
    """Read a record; return `otherwise` if it is missing or cannot be read or decoded. Reads at most `largest` bytes.

    `damaged` replaces `otherwise` for a file that is there and cannot be decoded. With `certain` a file that cannot be
    read raises OSError: it may be there. With `follow` it may be a link. `report` gets the error of a file that is
    there.
    """
    try:
        return decode(_content(path, follow=follow, largest=largest), kind)
    except FileNotFoundError:
        return otherwise
    except OSError as error:
        if certain:
            raise
        fault: Exception = error
    except UNDECODABLE as error:
        fault, otherwise = error, otherwise if damaged is None else damaged
    if report:
        report(fault)
    return otherwise


def _content(path: str, *, follow: bool, largest: int) -> bytes:
    if not follow and largest < 0:
        return files.read(path)
    with os.fdopen(files.open_regular(path, follow=follow)[0], "rb") as file:
        return file.read(largest)
