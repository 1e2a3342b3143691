"""What is ignored in a working tree by rules that were not there before: no snapshot has it, and no list names it."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator

from .names import worded
from .program import Git, failure

_RULES = b".gitignore"
MOST = 100
"""Paths that are named."""


def newly_ignored(git: Git, root: str, before: str, after: str, since_ns: int) -> tuple[str, ...]:
    """Return what `.gitignore` files hide that were written since then, or by lines of them that are new; a directory
    stands for all in it. Raises GitError and OSError.

    `git` is that of the store which has both trees.
    """
    listed = git.lines("ls-files", "--others", "--ignored", "--exclude-standard", "--directory", "-z")
    given = b"".join(b"./%b\0" % path for path in _outermost(listed))
    if not given:
        return ()
    answer = git.ask("--no-literal-pathspecs", "check-ignore", "-v", "-z", "--stdin", input=given)
    if answer.code not in (0, 1):
        raise failure(("check-ignore",), answer, root)
    lines = _Lines(git, root, before, after, since_ns)
    found = (worded(path) for source, pattern, path in _rules(answer.output) if lines.is_new(source, pattern))
    return tuple(found)[:MOST]


class _Lines:
    """The lines of the ignore files that are in use."""

    def __init__(self, git: Git, root: str, before: str, after: str, since_ns: int) -> None:
        self._git = git
        self._root = os.fsencode(root)
        self._trees = (before, after)
        self._since_ns = since_ns
        self._old: dict[bytes, frozenset[bytes] | None] = {}
        """The lines that each had before; None for all that it has."""

    def is_new(self, source: bytes, pattern: bytes) -> bool:
        """Return whether a line of an ignore file was not there before."""
        if os.path.isabs(source) or os.path.basename(source) != _RULES:
            return False
        if source not in self._old:
            self._old[source] = self._before(source)
        old = self._old[source]
        return old is not None and pattern not in old

    def _before(self, source: bytes) -> frozenset[bytes] | None:
        first, last = (self._git.lines("ls-tree", "-z", "--full-tree", tree, "--", source) for tree in self._trees)
        if not first and not last:  # it is ignored itself
            written_ns = os.lstat(os.path.join(self._root, source)).st_ctime_ns  # which nobody can set
            return frozenset() if written_ns >= self._since_ns else None
        if first == last:
            return None
        if not first:
            return frozenset()
        content = self._git.run("cat-file", "blob", first[0].split(b"\t")[0].split(b" ")[2])
        return frozenset(line.rstrip() for line in content.split(b"\n"))


def _outermost(paths: Iterable[bytes]) -> Iterator[bytes]:
    """Yield the paths that are below no other one."""
    above = b"\0"
    for path in sorted(paths):
        if not path.startswith(above):
            yield path
            above = path if path.endswith(b"/") else b"\0"


def _rules(output: bytes) -> Iterator[tuple[bytes, bytes, bytes]]:
    """Yield the file, the line and the path of each answer: source, line number, pattern, path."""
    fields = iter(output.split(b"\0"))
    for source, _, pattern, path in zip(fields, fields, fields, fields, strict=False):
        yield source, pattern.rstrip(), path.removeprefix(b"./")
