"""Files that new rules ignore in a working tree: no snapshot or list has them."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator

from .names import worded
from .program import Git, failure

_RULES = b".gitignore"
MOST = 100
"""Paths returned at most."""


def newly_ignored(git: Git, root: str, before: str, after: str, since_ns: int) -> tuple[str, ...]:
    """Return paths ignored by `.gitignore` files written since `since_ns`, or by new lines in them; a directory stands
    for its contents. Raises GitError and OSError.

    `git` belongs to the store that has both trees.
    """
    listed = git.lines("ls-files", "--others", "--ignored", "--exclude-standard", "--directory", "-z")
    paths = b"".join(b"./%b\0" % path for path in _outermost(listed))
    if not paths:
        return ()
    answer = git.ask("--no-literal-pathspecs", "check-ignore", "-v", "-z", "--stdin", input=paths)
    if answer.code not in (0, 1):
        raise failure(("check-ignore",), answer, root)
    lines = _Lines(git, root, before, after, since_ns)
    ignored = (worded(path) for source, pattern, path in _rules(answer.output) if lines.is_new(source, pattern))
    return tuple(ignored)[:MOST]


class _Lines:
    """The lines of the effective ignore files."""

    def __init__(self, git: Git, root: str, before: str, after: str, since_ns: int) -> None:
        self._git = git
        self._root = os.fsencode(root)
        self._trees = (before, after)
        self._since_ns = since_ns
        self._old: dict[bytes, frozenset[bytes] | None] = {}
        """Each file's earlier lines; None if all its lines are old."""

    def is_new(self, source: bytes, pattern: bytes) -> bool:
        """Whether a line of an ignore file is new."""
        if os.path.isabs(source) or os.path.basename(source) != _RULES:
            return False
        if source not in self._old:
            self._old[source] = self._before(source)
        old = self._old[source]
        return old is not None and pattern not in old

    def _before(self, source: bytes) -> frozenset[bytes] | None:
        first, last = (self._git.lines("ls-tree", "-z", "--full-tree", tree, "--", source) for tree in self._trees)
        if not first and not last:  # the file itself is ignored
            written_ns = os.lstat(os.path.join(self._root, source)).st_ctime_ns  # cannot be set by a program
            return frozenset() if written_ns >= self._since_ns else None
        if first == last:
            return None
        if not first:
            return frozenset()
        content = self._git.run("cat-file", "blob", first[0].split(b"\t")[0].split(b" ")[2])
        return frozenset(line.rstrip() for line in content.split(b"\n"))


def _outermost(paths: Iterable[bytes]) -> Iterator[bytes]:
    """Yield the paths that are not below another one."""
    above = b"\0"
    for path in sorted(paths):
        if not path.startswith(above):
            yield path
            above = path if path.endswith(b"/") else b"\0"


def _rules(output: bytes) -> Iterator[tuple[bytes, bytes, bytes]]:
    """Yield file, line and path from output fields: source, line number, pattern, path."""
    fields = iter(output.split(b"\0"))
    for source, _, pattern, path in zip(fields, fields, fields, fields, strict=False):
        yield source, pattern.rstrip(), path.removeprefix(b"./")
