"""Some of the files, or hunks, of what differs between two trees, as a tree of its own."""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Iterable, Mapping

from .diff import PLAIN, changed_files
from .names import name_of
from .program import Git, GitError

_HUNK = re.compile(rb"@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@")
_NO_MODE = b"000000"


def chosen(
    git: Git,
    before: str,
    after: str,
    names: Iterable[str],
    hunks: Mapping[str, Collection[int]] | None = None,
) -> str:
    """Return a tree that is `before` with some of the files as they are in `after`; of a renamed one both names count.

    Of the files in `hunks` only those are taken, counted from 1 as they stand in the patch. The index of `git` is used
    for it, and is its own: `Store.scratch` gives one. Raises GitError.
    """
    hunks = hunks or {}
    git.run("read-tree", before)
    if lines := _entries(git, before, after, set(map(name_of, names))):
        git.run("update-index", "-z", "--index-info", input=lines)
    parts = [_patch(git, before, after, path, numbers) for path, numbers in hunks.items()]
    if patch := b"".join(parts):
        git.run("apply", "--cached", "--whitespace=nowarn", "-", input=patch)
    return os.fsdecode(git.run("write-tree", "--missing-ok")).strip()


def _entries(git: Git, before: str, after: str, wanted: Collection[bytes]) -> bytes:
    """Return lines for the index: what goes first, as a file may stand where a directory is to be."""
    fields = iter(git.run("diff-tree", "-r", "-z", "--no-renames", "--no-abbrev", before, after, "--").split(b"\0"))
    going: list[bytes] = []
    coming: list[bytes] = []
    for head in fields:
        if not head:
            continue
        path = next(fields)
        if path in wanted:
            _, mode, _, new_id, _ = head[1:].split(b" ")
            lines = going if mode == _NO_MODE else coming
            lines.append(b"%b %b\t%b\0" % (mode.removeprefix(_NO_MODE) or b"0", new_id, path))
    return b"".join((*going, *coming))


def _patch(git: Git, before: str, after: str, path: str, numbers: Collection[int]) -> bytes:
    """Return the patch of one file with some of its hunks. Raises GitError where there are none of those."""
    output = git.run(
        *("diff-tree", "-r", "-p", "--binary", "--full-index", "--src-prefix=a/", "--dst-prefix=b/"),
        *(*PLAIN, before, after, "--", *_pathspecs(git, before, after, path)),
    )
    head, *parts = re.split(rb"(?m)^(?=@@ -)", output)
    if unknown := sorted(number for number in numbers if not 1 <= number <= len(parts)):
        had = "no hunks" if not parts else "1 hunk" if len(parts) == 1 else f"{len(parts)} hunks"
        raise GitError(f"no hunk {unknown[0]}: the file has {had}", where=path)
    if not numbers:
        return b""
    taken: list[bytes] = []
    shift = 0
    for number, part in enumerate(parts, 1):
        found = _HUNK.match(part)
        if found is None:
            raise GitError("cannot read its patch", where=path)
        old_count, new_count = (1 if count is None else int(count) for count in (found[2], found[4]))
        if number not in numbers:
            shift += new_count - old_count
            continue
        begin = b"@@ -%b,%d +%d,%d @@" % (found[1], old_count, int(found[3]) - shift, new_count)
        taken.append(begin + part[found.end() :])
    return head + b"".join(taken)


def _pathspecs(git: Git, before: str, after: str, path: str) -> list[bytes]:
    """Return the names of a changed file, with the old one where it was renamed. Raises GitError."""
    for file in changed_files(git, before, after):
        if file.path == path:
            return [name_of(name) for name in (file.path, file.old_path) if name]
    raise GitError("the file was not changed", where=path)
