"""Parse a git patch: its files, their hunks, and the kind of each line; pure."""

from __future__ import annotations

import os
import re

from msgspec import Struct

from .names import name_of, worded

_HUNK = re.compile(rb"@@ -(\d{1,9})(?:,(\d{1,9}))? \+(\d{1,9})(?:,(\d{1,9}))? @@ ?(.*)", re.DOTALL)
_FILE = b"diff --git "
_KINDS = {b"120000": "link", b"160000": "submodule"}
"""By file mode."""
NO_PAIR = -1


class Hunk(Struct):
    begin: int
    """Index of the line `@@ … @@`, from 0 in the patch."""
    end: int
    """Index after its last line."""
    heading: bytes
    """The location from git: a function, a section."""


class FilePatch(Struct):
    begin: int
    path: str
    end: int = 0
    old_path: str = ""
    """For a renamed or copied file."""
    what: str = "modified"
    """The change in words: `added`, `mode 100644 → 100755`."""
    kind: str = ""
    """`link` or `submodule`; empty for an ordinary file."""
    is_binary: bool = False
    added: int = 0
    removed: int = 0
    hunks: list[Hunk] = []

    @property
    def key(self) -> tuple[str, str]:
        """Identify the file: after a change of kind a path appears twice, as deleted and as added."""
        return self.path, self.what


class Patch(Struct):
    """`old` and `new` have each line's number in the file before and after, from 1, or 0. `pairs` has the matching line
    of each deleted or added line, or `NO_PAIR`.
    """

    lines: list[bytes]
    files: list[FilePatch]
    old: list[int]
    new: list[int]
    pairs: list[int]

    @property
    def added(self) -> int:
        return sum(file.added for file in self.files)

    @property
    def removed(self) -> int:
        return sum(file.removed for file in self.files)


def read_patch(content: bytes) -> Patch:
    """Parse a patch; skip text that is not from git."""
    lines = content.split(b"\n")
    if lines and not lines[-1]:
        lines.pop()
    count = len(lines)
    patch = Patch(lines, [], [0] * count, [0] * count, [NO_PAIR] * count)
    at = 0
    while at < count:
        if not lines[at].startswith(_FILE):
            at += 1
            continue
        file = FilePatch(begin=at, path=_named_twice(lines[at][len(_FILE) :]), hunks=[])
        patch.files.append(file)
        at = _read_head(lines, at + 1, file)
        while at < count and (match := _HUNK.match(lines[at])):
            at = _read_hunk(patch, file, at, match)
        file.end = at
    return patch


def _read_head(lines: list[bytes], at: int, file: FilePatch) -> int:
    """Read a file's header; return where its hunks, or the next file, begin."""
    modes: dict[bytes, bytes] = {}
    while at < len(lines) and not lines[at].startswith((b"@@ -", _FILE)):
        line = lines[at]
        at += 1
        word, _, rest = line.partition(b" ")
        match word:
            case b"---" | b"+++":
                if name := _name(rest.removesuffix(b"\t")):
                    file.path = name
            case b"index":
                file.kind = _KINDS.get(rest[-6:], "")
            case b"new" | b"deleted":
                file.kind = _KINDS.get(rest[-6:], "")
                file.what = "added" if word == b"new" else "deleted"
                if word == b"new" and not rest.startswith(b"file"):
                    modes[word] = rest.removeprefix(b"mode ")
                    file.what = "modified"
            case b"old":
                modes[word] = rest.removeprefix(b"mode ")
            case b"rename" | b"copy":
                file.what = "renamed" if word == b"rename" else "copied"
                side, _, name = rest.partition(b" ")
                if side == b"from":
                    file.old_path = _worded(name)
                else:
                    file.path = _worded(name)
            case b"Binary" | b"GIT":
                file.is_binary = True
            case _:
                pass
    if len(modes) == 2:
        change = f"mode {os.fsdecode(modes[b'old'])} → {os.fsdecode(modes[b'new'])}"
        file.what = change if file.what == "modified" else f"{file.what}, {change}"
    return at


def _read_hunk(patch: Patch, file: FilePatch, at: int, match: re.Match[bytes]) -> int:
    """Read the lines announced by a hunk; return the line after it."""
    lines, old_numbers, new_numbers, pairs = patch.lines, patch.old, patch.new, patch.pairs
    old, new = int(match[1]), int(match[3])
    old_end, new_end = (
        start + (1 if size is None else int(size)) for start, size in ((old, match[2]), (new, match[4]))
    )
    begin, count = at, len(lines)
    at += 1
    gone: list[int] = []
    matched = 0
    """How many deleted lines are paired with added ones."""
    while at < count and (old < old_end or new < new_end or lines[at].startswith(b"\\")):
        sign = lines[at][:1]
        if sign == b"-":
            if matched:
                gone, matched = [], 0
            old_numbers[at] = old
            old += 1
            file.removed += 1
            gone.append(at)
        elif sign == b"+":
            new_numbers[at] = new
            new += 1
            file.added += 1
            if matched < len(gone):
                pairs[at], pairs[gone[matched]] = gone[matched], at
                matched += 1
        elif sign == b"\\":
            pass
        elif sign in (b" ", b""):
            old_numbers[at], new_numbers[at] = old, new
            old, new = old + 1, new + 1
            gone, matched = [], 0
        else:
            break  # the hunk is shorter than announced
        at += 1
    file.hunks.append(Hunk(begin, at, match[5]))
    return at


def _name(written: bytes) -> str:
    """Return the file name after `---` or `+++`; empty for `/dev/null`."""
    name = name_of(os.fsdecode(written))
    return "" if name == b"/dev/null" else worded(name.partition(b"/")[2])


def _named_twice(written: bytes) -> str:
    """Return the name after `diff --git` if both sides have the same; otherwise empty."""
    if written.startswith(b'"'):
        first = re.match(rb'"(?:[^"\\]|\\.)*"', written)
        return worded(name_of(os.fsdecode(first[0])).partition(b"/")[2]) if first else ""
    half = len(written) // 2
    left, right = written[:half].partition(b"/")[2], written[half + 1 :].partition(b"/")[2]
    return worded(left) if left == right else ""


def _worded(written: bytes) -> str:
    return worded(name_of(os.fsdecode(written)))
