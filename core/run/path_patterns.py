"""Paths against patterns like `src/**`: surely below, or perhaps touched, whatever links and `..` they go through."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence

from .patterns import fits
from .shell_words import ACTIVE_STAR

LONGEST_PATH = 4096
"""Bytes that a path can have, and characters of one that is looked at."""


def surely_below(pattern: str, paths: Sequence[str], directory: str, cwd: str) -> bool:
    """Tell whether all the paths, however an agent reads them, lead to files of a pattern, through no link to others.

    `directory` is where relative paths begin, `cwd` that of the run, where a relative pattern begins.
    """
    wanted = _segments(pattern, os.path.realpath(cwd))
    try:
        return bool(paths) and all(_surely_fits(wanted, directory, path) for path in paths)
    except (OSError, ValueError):
        return False


def may_touch(pattern: str, paths: Sequence[str], directory: str, cwd: str, *, looks_into: bool) -> bool:
    """Tell whether any of the paths may lead to files of a pattern, by name or by links.

    A call that `looks_into` directories touches what lies below its paths.
    """
    bases = {cwd, os.path.realpath(cwd)}
    try:
        wanted = [form for base in bases for form in _forms(_segments(pattern, base))]
        places = [place for path in paths for place in _places(directory, path)]
        return any(
            fits(form, place) or (looks_into and _fixed(form)[: len(place)] == place)
            for form in wanted
            for place in places
        )
    except (OSError, ValueError):
        return True


def _surely_fits(wanted: Sequence[str], directory: str, path: str) -> bool:
    if len(path) > LONGEST_PATH or not path.isprintable():
        return False
    return all(fits(wanted, _split(os.path.realpath(os.path.join(directory, read)))) for read in _readings(path))


def _places(directory: str, path: str) -> Iterator[tuple[str, ...]]:
    """Yield where a path leads, by its name and by its links."""
    if len(path) > LONGEST_PATH:
        raise ValueError
    for read in _readings(path):
        whole = os.path.join(directory, read)
        yield _split(os.path.normpath(whole))
        yield _split(os.path.realpath(whole))


def _readings(path: str) -> Iterator[str]:
    """Yield what an agent may take a path for: some know the home directory, or a mark before a path."""
    for read in (path, path.removeprefix("@"), path.removeprefix("file://")):
        yield read
        if read.startswith("~"):
            yield os.path.expanduser(read)


def _segments(pattern: str, base: str) -> tuple[str, ...]:
    """Return the parts of a pattern as those of an absolute path, `**` as a star of its own."""
    path = os.path.expanduser(pattern) if pattern.startswith("~") else pattern
    own = [part for part in path.split("/") if part not in ("", ".")]
    if path.endswith("/"):
        own.append("**")
    marked = (ACTIVE_STAR if part == "**" else _within(part) for part in own)
    return (*(() if os.path.isabs(path) else _split(base)), *marked)


def _within(part: str) -> str:
    """Mark the stars of one part: a star alone is any one name, never none and never several."""
    return part.replace("*", ACTIVE_STAR) + ("" if part.strip("*") else ACTIVE_STAR)


def _forms(pattern: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    """Yield a pattern as it is, and with the links followed in what comes before its first star."""
    yield pattern
    fixed = _fixed(pattern)
    yield (*_split(os.path.realpath("/" + "/".join(fixed))), *pattern[len(fixed) :])


def _fixed(pattern: Sequence[str]) -> tuple[str, ...]:
    first = next((at for at, part in enumerate(pattern) if ACTIVE_STAR in part), len(pattern))
    return tuple(pattern[:first])


def _split(path: str) -> tuple[str, ...]:
    return tuple(filter(None, path.split("/")))
