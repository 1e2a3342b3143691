"""Files from which git and agents start programs: a rule allows changing them only if it names them.

They are recognized by name, in any spelling that a file system may treat as the same; a git directory by its content;
and settings behind a link by the targets of links in the run's directory.
"""

from __future__ import annotations

import os
import stat
import unicodedata
from collections.abc import Iterable, Iterator, Sequence

from msgspec import Struct

from ..text.plain import one_line
from .path_patterns import fixed, forms_of, joined, places, segments, split
from .path_readings import Reading
from .shell_words import ACTIVE_STAR

GIT = (".git", ".gitconfig", ".gitmodules")
_SHORT = {"git~1": ".git", "gitmod~1": ".gitmodules"}
"""Alternative names that some file systems give to files."""
_LARGE = frozenset({"objects", "refs", "logs", "lfs", "subagents", "node_modules"})
"""Directories of git and agents without settings."""
_MOST_ENTRIES = 500


class Root(Struct, frozen=True):
    """A protected file or directory."""

    parts: tuple[str, ...]
    """Parts of its absolute path."""
    named: int = 0
    """Number of last parts that are its name; 0 if it is recognized otherwise."""
    is_linked: bool = False
    """Whether settings reach it through a link: no rule can name it as such."""

    @property
    def name(self) -> str:
        return "/".join(self.parts[-self.named :]) if self.named else joined(self.parts)


class Guard(Struct, frozen=True):
    """Why a call needs approval although no user rule asks for it."""

    why: str = ""
    """Shown in place of a rule; empty if an allow rule may apply."""
    roots: tuple[Root, ...] = ()

    def lets(self, pattern: str | None, cwd: str) -> bool:
        """Return whether an allow rule with this pattern applies to the call."""
        return not self.why or (pattern is not None and bool(self.roots) and names_all(pattern, self.roots, cwd))


UNCLEAR = Guard("unclear path")
"""It may lead to several files, to a directory, or to a file with a second name."""


def guard_of_change(readings: Sequence[Reading], cwd: str, names: Iterable[str]) -> Guard:
    """Return the guard of the files that a call would change."""
    if not readings or not all(map(is_clear, readings)):
        return UNCLEAR
    names = tuple(names)
    try:
        roots = tuple(dict.fromkeys(root for each in readings for root in protected_roots(each, cwd, names)))
    except (OSError, ValueError):
        return UNCLEAR
    return Guard(f"protected path {one_line(roots[0].name, 80)}", roots) if roots else Guard()


def protected_roots(reading: Reading, cwd: str, names: Iterable[str]) -> tuple[Root, ...]:
    """Return the protected files and directories that opening a path may change.

    Protection above the run's directory does not apply to files in it, because a run's worktree is in `.pi`. Raises
    OSError or ValueError if the path cannot be checked.
    """
    protected = tuple(tuple(name.split("/")) for name in dict.fromkeys((*GIT, *names)))
    homes = {split(cwd), split(os.path.realpath(cwd))}
    linked = tuple(_linked(cwd, protected))
    found: dict[Root, None] = {}
    for parts in dict.fromkeys(places(reading)):
        homes_around = [home for home in homes if parts[: len(home)] == home]
        roots = [root for root in _named(parts, protected) if not _is_above(root, homes_around)]
        if not any(_folded(root.parts[-1]) == GIT[0] for root in roots):
            roots += [root for root in _git_directory(parts) if not _is_above(root, homes_around)]
        roots += [root for root in linked if parts[: len(root.parts)] == root.parts]
        found |= dict.fromkeys(roots)
    return tuple(found)


def _is_above(root: Root, homes: Iterable[tuple[str, ...]]) -> bool:
    return any(home[: len(root.parts)] == root.parts for home in homes)


def is_clear(reading: Reading) -> bool:
    """Return whether a change affects a single file with a single name."""
    if not reading.is_certain:
        return False
    for path in reading.paths:
        try:
            status = os.stat(path)
        except FileNotFoundError:
            continue
        except (OSError, ValueError):
            return False
        if not stat.S_ISREG(status.st_mode) or status.st_nlink > 1:
            return False
    return True


def names_all(pattern: str, roots: Iterable[Root], cwd: str) -> bool:
    """Return whether a pattern names each of the protected files, without a star in its name."""
    bases = dict.fromkeys((cwd, os.path.realpath(cwd)))
    forms = [form for base in bases for form in forms_of(segments(pattern, base))]
    parts = segments(pattern, "/")
    return all(_is_named(root, parts, forms) for root in roots)


def _is_named(root: Root, pattern: Sequence[str], forms: Iterable[Sequence[str]]) -> bool:
    if root.is_linked:
        return False
    if any(fixed(form)[: len(root.parts)] == root.parts for form in forms):
        return True
    size = root.named
    slices = (tuple(pattern[at : at + size]) for at in range(len(pattern) - size + 1)) if size else ()
    return any(part == root.parts[-size:] and not any(ACTIVE_STAR in name for name in part) for part in slices)


def _named(parts: tuple[str, ...], names: Iterable[tuple[str, ...]]) -> Iterator[Root]:
    folded = tuple(map(_folded, parts))
    for name in names:
        for at in range(len(folded) - len(name) + 1):
            if folded[at : at + len(name)] == name:
                yield Root(parts[: at + len(name)], len(name))


def _folded(name: str) -> str:
    """Return a name as any machine's file system may treat it: without case, invisible characters and endings."""
    seen = "".join(each for each in unicodedata.normalize("NFKC", name) if unicodedata.category(each) != "Cf")
    folded = seen.casefold().partition(":")[0].rstrip(" .")
    return _SHORT.get(folded, folded)


def _git_directory(parts: tuple[str, ...]) -> Iterator[Root]:
    """Yield the outermost directory on the way to a file that is a git directory under any name, or becomes one with
    it.
    """
    for end in range(1, len(parts) + 1):
        path, made = joined(parts[:end]), parts[end : end + 1]
        has_store = any(name in made or os.path.lexists(f"{path}/{name}") for name in ("objects", "commondir"))
        if has_store and ("HEAD" in made or os.path.lexists(f"{path}/HEAD")):
            yield Root(parts[:end])
            return


def _linked(cwd: str, names: Iterable[tuple[str, ...]]) -> Iterator[Root]:
    """Yield the targets of links from settings in the run's directory and above it."""
    above = split(os.path.realpath(cwd))
    for name in names:
        for end in range(len(above), 0, -1):
            path = os.path.join(joined(above[:end]), *name)
            if not os.path.lexists(path):
                continue
            if os.path.realpath(path) != path:
                yield Root(split(os.path.realpath(path)), is_linked=True)
            yield from _links_in(path)


def _links_in(directory: str) -> Iterator[Root]:
    """Yield the targets of links in a directory and its subdirectories."""
    budget, waiting = _MOST_ENTRIES, [(directory, 0)]
    while waiting:
        current, depth = waiting.pop(0)
        try:
            with os.scandir(current) as entries:
                for entry in entries:
                    budget -= 1
                    if budget < 0:
                        return
                    if entry.is_symlink():
                        yield Root(split(os.path.realpath(entry.path)), is_linked=True)
                    elif depth < 1 and entry.name not in _LARGE and entry.is_dir(follow_symlinks=False):
                        waiting.append((entry.path, depth + 1))
        except OSError:
            continue
