"""Paths as programs read them: all paths that a tool may open for the path that its model wrote.

An agent's package describes how the agent's tools read paths. This module has their common parts, and a reader for
unknown programs.
"""

from __future__ import annotations

import os
import re
import unicodedata
from collections.abc import Iterable, Iterator
from typing import Protocol
from urllib.parse import unquote

from msgspec import Struct

from ..text.visible import is_hiding_name

LONGEST_PATH = 4096
"""Most bytes of a path, and most characters of one that is checked."""

UNICODE_BLANKS = re.compile("[\u00a0\u2000-\u200a\u202f\u205f\u3000]")
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:")
_FILE_URL = re.compile(r"file:[/\\]{0,2}", re.IGNORECASE)
_DRIVE = re.compile("[A-Za-z][:|]")
_ODD = re.compile(r"[%\\`\"“”‘’]|\$[({A-Za-z_]")
"""Text within a path that programs may decode, expand or drop."""


class Reading(Struct, frozen=True):
    """The paths that a tool may open for a path."""

    paths: tuple[str, ...]
    """Absolute, with links and `..` unresolved; the tool opens one of them."""
    is_certain: bool = True
    """Whether nothing else can be opened; if not, no allow rule covers the path."""


class PathReader(Protocol):
    """Reads paths as an agent's tools do."""

    def __call__(self, tool: str, path: str, directory: str, /) -> Reading:
        """Read a path given to a tool; relative ones start in `directory`. Accepts any text and never raises."""
        ...


class PathRules(Struct, frozen=True):
    """The context of path rules in a run."""

    read: PathReader
    settings: tuple[str, ...] = ()
    """Names of files and directories from which programs are started, such as `.claude` or `.github/copilot`."""


def spellings(path: str, directory: str) -> Iterator[str]:
    """Yield a path as an absolute one: with `..` left to the kernel, which follows links first, and with `..` resolved.

    A program may know its directory by another name than the one it was started with.
    """
    for base in dict.fromkeys((directory, os.path.realpath(directory))):
        whole = os.path.join(base, path)
        yield whole
        yield os.path.normpath(whole)


def read_as(paths: Iterable[str], directory: str, *, is_certain: bool = True) -> Reading:
    """Return the reading of a path that stands for any of these."""
    forms = tuple(paths)
    all_spellings = dict.fromkeys(spelling for path in forms for spelling in spellings(path, directory))
    return Reading(tuple(all_spellings), is_certain and all(map(is_readable, forms)))


def is_readable(path: str) -> bool:
    """Return whether a path can belong to a file and can be displayed."""
    return len(path) <= LONGEST_PATH and not is_hiding_name(path)


def home_of(path: str) -> str:
    """Return a path with a leading `~` expanded as in a shell."""
    return os.path.expanduser(path) if path.startswith("~") else path


def of_file_url(url: str) -> tuple[str, ...]:
    """Return the paths that a file URL may stand for, with any host; empty for other text."""
    url = url.strip("".join(map(chr, range(33))))
    start = _FILE_URL.match(url)
    if start is None:
        return ()
    rest = re.split("[?#]", re.sub("[\t\r\n]", "", url[start.end() :]).replace("\\", "/"), maxsplit=1)[0]
    has_host = start[0].endswith(("//", "\\\\", "/\\", "\\/"))
    paths = [f"/{rest}", *([rest[rest.find("/") :] if "/" in rest else "/"] if has_host else ())]
    return tuple(dict.fromkeys(unquote(form) for path in paths for form in (_without_dots(path), path)))


def _without_dots(path: str) -> str:
    """Remove `.` and `..` from a URL's path as browsers and node do: before `%2F` is decoded, counting empty names, and
    never leaving a drive.
    """
    kept: list[str] = []
    for name in path.split("/")[1:]:
        plain = name.replace("%2e", ".").replace("%2E", ".")
        if plain == "..":
            if len(kept) != 1 or not _DRIVE.fullmatch(kept[0]):
                del kept[-1:]
        elif plain != ".":
            kept.append(f"{name[0]}:" if not kept and _DRIVE.fullmatch(name) else name)
    return "/" + "/".join(kept)


def start_of_glob(pattern: str) -> str:
    """Return the start of the paths that match a pattern if it may leave the searched directory; `/` if unknown."""
    start = re.split(r"[*?\[{(|\\]", pattern, maxsplit=1)[0]
    rest = pattern[start.rfind("/") + 1 :]
    if start != pattern and (_may_begin_elsewhere(pattern) or any(map(_may_be_above, rest.split("/")))):
        return "/"
    return start if start.startswith(("/", "~")) or ".." in start.split("/") else ""


def _may_begin_elsewhere(pattern: str) -> bool:
    """Return whether an alternative in a group starts at another directory or may go up."""
    return any(
        each[:1] in ("/", "~") or (pattern.count(".") > 1 and "/" in each)
        for group in re.findall(r"[{(]([^})]*)", pattern)
        for each in re.split("[,|]", group)
    )


def _may_be_above(name: str) -> bool:
    """Return whether a part of a pattern may match `..`: it has only dots outside its groups."""
    fixed = re.sub(r"\\|\{[^}]*\}?|\[[^\]]*\]?|\([^)]*\)?", "", name)
    return name.count(".") > 1 and not fixed.strip(".{}()[]")


def any_program(_tool: str, path: str, directory: str) -> Reading:
    """Read a path as any program may; only plain paths are certain."""
    blank = UNICODE_BLANKS.sub(" ", path)
    forms = dict.fromkeys((path, blank, path.strip(), blank.strip()))
    for clean in (_unquoted, _without_mark, unquote, home_of):
        forms |= dict.fromkeys(clean(form) for form in tuple(forms))
    forms |= dict.fromkeys(path_of_url for form in tuple(forms) for path_of_url in of_file_url(form))
    normal = [unicodedata.normalize(name, form) for form in forms for name in ("NFC", "NFD")]
    is_odd = path != path.strip() or path[:1] in ("", "~", "@", "'") or _SCHEME.match(path) or _ODD.search(path)
    is_certain = not is_odd and blank == path and "'" not in path[-1:]
    return read_as((*forms, *normal), directory, is_certain=is_certain)


ANY_PROGRAM = PathRules(any_program)


def _unquoted(path: str) -> str:
    return path.strip("\"'`“”‘’")


def _without_mark(path: str) -> str:
    return path.removeprefix("@")
