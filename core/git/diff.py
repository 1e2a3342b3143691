"""The difference between two trees: the files with their lines, and the patch."""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import IO

from msgspec import Struct
from msgspec.structs import replace

from ..run.changes import ChangedFile, FileStatus
from .names import name_of, worded
from .program import Git, GitError, GitResult, failure

PLAIN = ("--no-ext-diff", "--no-textconv", "--no-color", "--find-renames", "-l1000", "--ignore-submodules=none")
_SUBMODULE = b"160000"
_CUT = b"# subdeck: cut here, the rest of the changes is longer than is kept\n"


class Patch(Struct, frozen=True):
    size: int
    is_whole: bool
    """Whether it is complete."""


def changed_files(git: Git, before: str, after: str) -> tuple[ChangedFile, ...]:
    """Return the files that differ between two trees or commits, by path; renames are detected. Raises GitError."""
    output = git.run("diff-tree", "-r", "-z", "--raw", "--numstat", "--no-abbrev", *PLAIN, before, after, "--")
    fields = iter(output.split(b"\0"))
    changed: dict[bytes, ChangedFile] = {}
    for field in fields:
        if field.startswith(b":"):
            path, file = _parsed(field, fields)
            changed[path] = file
        elif field:
            path, counts = _counted(field, fields)
            if changed[path].status is not FileStatus.SUBMODULE:
                changed[path] = _with_counts(changed[path], counts)
    return tuple(sorted(changed.values(), key=lambda file: file.path))


def _parsed(head: bytes, fields: Iterator[bytes]) -> tuple[bytes, ChangedFile]:
    """Parse `:100644 100755 1234 5678 M` and the one or two paths after it."""
    old_mode, new_mode, old_id, new_id, letter = head[1:].split(b" ")
    path = next(fields)
    old_path = b""
    if letter[:1] in b"RC":
        old_path, path = path, next(fields)
    if _SUBMODULE in (old_mode, new_mode):
        status = FileStatus.SUBMODULE
    elif old_path:
        status = FileStatus.RENAMED
    else:
        status = {b"A": FileStatus.ADDED, b"D": FileStatus.DELETED, b"T": FileStatus.TYPE}.get(
            letter[:1], FileStatus.MODE if old_id == new_id else FileStatus.MODIFIED
        )
    return path, ChangedFile(worded(path), status, old_path=worded(old_path) if old_path else "")


def _counted(field: bytes, fields: Iterator[bytes]) -> tuple[bytes, tuple[int, int] | None]:
    """Parse `12\t3\tpath`, or for a renamed file `12\t3\t` and the two paths after it."""
    added, removed, path = field.split(b"\t", 2)
    if not path:
        next(fields)
        path = next(fields)
    return path, None if added == b"-" else (int(added), int(removed))


def _with_counts(file: ChangedFile, counts: tuple[int, int] | None) -> ChangedFile:
    if counts is None:
        return replace(file, note="binary, or too large to compare by lines")
    return replace(file, added=counts[0], removed=counts[1])


def write_patch(git: Git, before: str, after: str, file: IO[bytes], limit: int) -> Patch:
    """Write the difference of two trees or commits to an empty file, in the format of `git apply`.

    Beyond `limit` bytes, whole files at the end are left out, or the rest of a single one; a line marks the cut. Raises
    GitError and OSError.
    """
    size = 0

    def take(part: bytes) -> bool:
        nonlocal size
        size += file.write(part)
        return size <= limit

    code, stderr = git.feed(
        *(take, "diff-tree", "-r", "-p", "--binary", "--full-index", "--src-prefix=a/", "--dst-prefix=b/"),
        *(*PLAIN, before, after, "--"),
    )
    if code:
        raise failure(("diff-tree",), GitResult(code, b"", stderr), git.directory)
    if size <= limit:
        return Patch(size, is_whole=True)
    file.flush()
    end = _end_before(file, limit)
    file.seek(end)
    file.truncate()
    return Patch(end + file.write(_CUT), is_whole=False)


def _end_before(file: IO[bytes], limit: int) -> int:
    """Return the end of the last file that fits within the limit; if none fits, of the last line."""
    position, window = limit, 1 << 20
    last_line = 0
    while position > 0:
        begin = max(0, position - window)
        file.seek(begin)
        part = file.read(min(limit, position + 16) - begin)
        if not last_line and (offset := part.rfind(b"\n")) >= 0:
            last_line = begin + offset + 1
        if (offset := part.rfind(b"\ndiff --git ")) > 0:
            return begin + offset + 1
        position = begin
    return last_line


# --- some of the files or hunks, as a tree ---------------------------------------------------------------------------

_HUNK = re.compile(rb"@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@")
_NO_MODE = b"000000"


def chosen(
    git: Git,
    before: str,
    after: str,
    names: Iterable[str],
    hunks: Mapping[str, Collection[int]] | None = None,
) -> str:
    """Return `before` with some files as they are in `after`; either name selects a renamed file.

    For files in `hunks` apply only these hunks, counted from 1 in the patch. This overwrites the index of `git`, so use
    `Store.scratch` for one. Raises GitError.
    """
    hunks = hunks or {}
    git.run("read-tree", before)
    if lines := _entries(git, before, after, set(map(name_of, names))):
        git.run("update-index", "-z", "--index-info", input=lines)
    parts = [_patch(git, before, after, path, numbers) for path, numbers in hunks.items()]
    if patch := b"".join(parts):
        git.run("apply", "--cached", "--whitespace=nowarn", "-", input=patch)
    return os.fsdecode(git.run("write-tree", "--missing-ok")).strip()


def _entries(git: Git, before: str, after: str, paths: Collection[bytes]) -> bytes:
    """Return lines for the index. Deletions come first, as a file may replace a directory."""
    fields = iter(git.run("diff-tree", "-r", "-z", "--no-renames", "--no-abbrev", before, after, "--").split(b"\0"))
    going: list[bytes] = []
    coming: list[bytes] = []
    for head in fields:
        if not head:
            continue
        path = next(fields)
        if path in paths:
            _, mode, _, new_id, _ = head[1:].split(b" ")
            lines = going if mode == _NO_MODE else coming
            lines.append(b"%b %b\t%b\0" % (mode.removeprefix(_NO_MODE) or b"0", new_id, path))
    return b"".join((*going, *coming))


def _patch(git: Git, before: str, after: str, path: str, numbers: Collection[int]) -> bytes:
    """Return the patch of one file with some of its hunks. Raises GitError if a hunk does not exist."""
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
        match = _HUNK.match(part)
        if match is None:
            raise GitError("cannot read its patch", where=path)
        old_count, new_count = (1 if count is None else int(count) for count in (match[2], match[4]))
        if number not in numbers:
            shift += new_count - old_count
            continue
        begin = b"@@ -%b,%d +%d,%d @@" % (match[1], old_count, int(match[3]) - shift, new_count)
        taken.append(begin + part[match.end() :])
    return head + b"".join(taken)


def _pathspecs(git: Git, before: str, after: str, path: str) -> list[bytes]:
    """Return the names of a changed file, including the old name of a renamed one. Raises GitError."""
    for file in changed_files(git, before, after):
        if file.path == path:
            return [name_of(name) for name in (file.path, file.old_path) if name]
    raise GitError("the file was not changed", where=path)
