"""Matches paths against patterns like `src/**`: surely below, or perhaps touched, through any links and `..`.

Rules with relative paths apply in all working trees of a repository: Claude Code can give a nested agent its own, and a
run may itself work in one.
"""

from __future__ import annotations

import os
import re
import unicodedata
from collections.abc import Iterable, Iterator, Sequence

from ..system.git_pointers import directories_of
from .path_readings import LONGEST_PATH, UNICODE_BLANKS, Reading
from .shell_words import ACTIVE_STAR, ANYTHING, HOLE

_OF_PROCESS = re.compile("/(?:proc/(?:self|thread-self|[0-9]+)|dev/(?:fd|stdin|stdout|stderr))(?:/|$)")
"""Paths that differ for each process: only the process that opens one knows where it leads."""
_MOST_LINKS = 40
"""Most links that the kernel follows on the way to a file."""

_LOOK_ALIKE = str.maketrans("‘’", "''")


def surely_below(pattern: str, readings: Sequence[Reading], cwd: str) -> bool:
    """Return whether all files that may be opened match a pattern, without a link to other files.

    `cwd` is the run's directory, where relative patterns start.
    """
    pattern_parts = segments(pattern, os.path.realpath(cwd))
    try:
        return bool(readings) and all(_surely_fits(pattern_parts, reading) for reading in readings)
    except (OSError, ValueError):
        return False


def may_touch(pattern: str, readings: Sequence[Reading], cwd: str, *, looks_into: bool) -> bool:
    """Return whether anything that may be opened matches a pattern: by name, by links, or by the same path in another
    working tree of the repository.

    A call that `looks_into` directories touches the files below its paths.
    """
    try:
        opened = dict.fromkeys(parts for reading in readings for parts in places(reading))
        in_other_trees = same_in_others(cwd, opened) if not pattern.startswith(("/", "~")) else ()
        bases = dict.fromkeys((cwd, os.path.realpath(cwd), *in_other_trees))
        forms = dict.fromkeys(form for base in bases for form in forms_of(segments(pattern, base)))
        return any(
            _touches(form, parts, looks_into=looks_into and not os.path.isfile(joined(parts)))
            for form in forms
            for parts in opened
        )
    except (OSError, ValueError):
        return True


def _surely_fits(pattern: Sequence[str], reading: Reading) -> bool:
    return reading.is_certain and all(fits(pattern, split(_followed(path))) for path in reading.paths)


def places(reading: Reading) -> Iterator[tuple[str, ...]]:
    """Yield where a path may lead, by name and through links. Raises ValueError if that is unknown."""
    for path in reading.paths:
        if len(path) > LONGEST_PATH:
            raise ValueError
        yield split(os.path.normpath(path))
        yield split(_followed(path))


def _followed(path: str) -> str:
    """Return where a path leads through links. Raises ValueError if that depends on the process that opens it."""
    waiting, current, links = path.split("/")[::-1], "", 0
    while waiting:
        name = waiting.pop()
        if name in ("", "."):
            continue
        above = current
        current = above.rpartition("/")[0] if name == ".." else f"{above}/{name}"
        if _OF_PROCESS.match(current):
            raise ValueError
        try:
            target = "" if name == ".." else os.readlink(current)
        except OSError:
            continue  # not a link
        if target:
            links += 1
            waiting += target.split("/")[::-1]
            current = "" if target.startswith("/") else above
        if links > _MOST_LINKS:
            raise ValueError
    return os.path.realpath(path)


def _touches(form: tuple[str, ...], parts: tuple[str, ...], *, looks_into: bool) -> bool:
    if _covers(form, parts, looks_into=looks_into):
        return True
    alike = tuple(map(look_alike, form)), tuple(map(look_alike, parts))
    if alike != (form, parts) and _covers(*alike, looks_into=looks_into):
        return True
    if _covers(*(tuple(map(str.casefold, each)) for each in alike), looks_into=looks_into) and folds_case(parts):
        return True
    return any(_covers(form, other_name, looks_into=looks_into) for other_name in _other_names(fixed(form), parts))


def _covers(form: tuple[str, ...], parts: tuple[str, ...], *, looks_into: bool) -> bool:
    return fits(form, parts) or (looks_into and fits(form, (*parts, ANYTHING)))


def look_alike(name: str) -> str:
    """Return a name with whitespace, quotes and accents each in one of their look-alike forms."""
    return unicodedata.normalize("NFC", UNICODE_BLANKS.sub(" ", name).translate(_LOOK_ALIKE))


def folds_case(parts: Sequence[str]) -> bool:
    """Return whether a directory on the way to a file ignores case."""
    for end in range(len(parts), 0, -1):
        parent, name = joined(parts[: end - 1]), parts[end - 1]
        try:
            if name.swapcase() != name and os.path.samestat(
                os.lstat(os.path.join(parent, name)), os.lstat(os.path.join(parent, name.swapcase()))
            ):
                return True
        except (OSError, ValueError):
            continue
    return False


def _other_names(known: tuple[str, ...], parts: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    """Yield a file's names below a known directory, or as a known file, that is reached by another path."""
    try:
        there = os.stat(joined(known))
    except (OSError, ValueError):
        return
    for end in range(len(parts), 0, -1):
        try:
            is_same = parts[:end] != known and os.path.samestat(there, os.stat(joined(parts[:end])))
        except (OSError, ValueError):
            continue
        if is_same:
            yield (*known, *parts[end:])


def segments(pattern: str, base: str) -> tuple[str, ...]:
    """Return a pattern's parts as an absolute path, with `**` as a separate star."""
    path = os.path.expanduser(pattern) if pattern.startswith("~") else pattern
    parts = [part for part in path.split("/") if part not in ("", ".")]
    if path.endswith("/"):
        parts.append("**")
    marked = (ACTIVE_STAR if part == "**" else _within(part) for part in parts)
    return (*(() if os.path.isabs(path) else split(base)), *marked)


def _within(part: str) -> str:
    """Mark the stars of one part: a star alone is exactly one name."""
    return part.replace("*", ACTIVE_STAR) + ("" if part.strip("*") else ACTIVE_STAR)


def forms_of(pattern: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    """Yield a pattern unchanged, and with links followed before its first star."""
    yield pattern
    start = fixed(pattern)
    yield (*split(os.path.realpath(joined(start))), *pattern[len(start) :])


def fixed(pattern: Sequence[str]) -> tuple[str, ...]:
    """Return the parts of a pattern before its first star."""
    first = next((at for at, part in enumerate(pattern) if ACTIVE_STAR in part), len(pattern))
    return tuple(pattern[:first])


def split(path: str) -> tuple[str, ...]:
    return tuple(filter(None, path.split("/")))


def joined(parts: Iterable[str]) -> str:
    return "/" + "/".join(parts)


# --- words against a pattern of words --------------------------------------------------------------------------------

_LONGEST_WORD = 512
"""Most characters of a word with holes that is compared with a pattern; longer words count as matching."""


def fits(pattern: Sequence[str], words: Sequence[str]) -> bool:
    """Return whether the words may match a pattern; without ANYTHING and HOLE in them the answer is certain.

    A star that is a separate word matches any words, a star within a word any text. The words are read once, with all
    possible positions in the pattern.
    """
    positions = _with_empty(pattern, {0}, ACTIVE_STAR)
    for word in words:
        ahead = [position for position in positions if position < len(pattern)]
        if ANYTHING in word:
            before = word[: word.index(ANYTHING)]
            return not before or any(_fits_word(pattern[position], before + HOLE) for position in ahead)
        after = {
            position if pattern[position] == ACTIVE_STAR else position + 1
            for position in ahead
            if _fits_word(pattern[position], word)
        }
        positions = _with_empty(pattern, after, ACTIVE_STAR)
        if not positions:
            return False
    return len(pattern) in positions


def _fits_word(pattern: str, word: str) -> bool:
    if pattern == ACTIVE_STAR:
        return True
    if HOLE in word:
        return _overlap(pattern, word)
    if ACTIVE_STAR not in pattern:
        return pattern == word
    first, *middle, last = pattern.split(ACTIVE_STAR)
    if len(word) < len(first) + len(last) or not (word.startswith(first) and word.endswith(last)):
        return False
    at, end = len(first), len(word) - len(last)
    for part in middle:
        at = word.find(part, at, end)
        if at < 0:
            return False
        at += len(part)
    return True


def _overlap(pattern: str, word: str) -> bool:
    """Return whether some text matches both: the pattern's stars and the word's holes match anything."""
    if len(word) > _LONGEST_WORD:
        return True
    positions = _with_empty(word, {0}, HOLE)
    for character in pattern:
        if character == ACTIVE_STAR:
            positions = set(range(min(positions, default=len(word) + 1), len(word) + 1))
            continue
        ahead = [position for position in positions if position < len(word) and word[position] in (character, HOLE)]
        positions = _with_empty(
            word, {position if word[position] == HOLE else position + 1 for position in ahead}, HOLE
        )
    return len(word) in positions


def _with_empty(parts: Sequence[str], positions: Iterable[int], mark: str) -> set[int]:
    """Add the positions after parts that may be empty."""
    all_positions = set(positions)
    for position in sorted(all_positions):
        while position < len(parts) and parts[position] == mark:
            position += 1
            all_positions.add(position)
    return all_positions


# --- the working trees of one repository -----------------------------------------------------------------------------


def same_in_others(directory: str, paths: Iterable[Sequence[str]]) -> Iterator[str]:
    """Yield a directory's path in each other working tree of its repository that contains one of the paths."""
    here = tuple(filter(None, os.path.realpath(directory).split("/")))
    own_tree = _tree_around(here)
    if own_tree is None:
        return
    root, repository = own_tree
    for parts in paths:
        tree = _tree_around(parts)
        if tree is not None and tree[0] != root and tree[1] == repository:
            yield "/" + "/".join((*tree[0], *here[len(root) :]))


def _tree_around(parts: Sequence[str]) -> tuple[tuple[str, ...], str] | None:
    """Return the root of the innermost working tree around a path, and the directory of its repository."""
    for end in range(len(parts), 0, -1):
        root = "/" + "/".join(parts[:end])
        dot_git = f"{root}/.git"
        try:
            is_there = os.path.lexists(dot_git)
        except ValueError:
            continue
        if is_there:
            return tuple(parts[:end]), os.path.realpath(directories_of(root, dot_git)[1])
    return None
