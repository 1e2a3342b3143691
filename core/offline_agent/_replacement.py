"""One exact replacement in a file: the task that requests it, the new bytes, and its diffs in pi's forms; pure."""

from __future__ import annotations

import re
from typing import Any, NamedTuple

HOW = 'replace "A" with "B" in FILE'
"""The only form of task that changes a file."""

_QUOTED = r"""("(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*'|`(?:[^`\\]|\\.)*`)"""
_TASK = re.compile(
    rf"""(?:please\s+)?replace\s+{_QUOTED}\s+with\s+{_QUOTED}\s+in\s+(?:{_QUOTED}|(\S(?:[^\n]*[^\s.])?))\.?""",
    re.IGNORECASE | re.DOTALL,
)
_ESCAPE = re.compile(r"""\\([\\"'`nt])""")
_ESCAPED = {"n": "\n", "t": "\t"}
_CONTEXT = 4
"""Unchanged lines around a change, as many as pi shows."""
_PLACES = 5
"""Maximum occurrences to count of a text that must be unique."""


class ToolError(Exception):
    """A tool failed; the text is the tool's result."""


class Replacement(NamedTuple):
    """The replacement that a task requests."""

    path: str
    old: str
    new: str

    @property
    def args(self) -> dict[str, Any]:
        """The arguments of pi's `edit`."""
        return {"path": self.path, "edits": [{"oldText": self.old, "newText": self.new}]}


class Edited(NamedTuple):
    """A file's new bytes, with the structured details of pi's `edit`."""

    data: bytes
    line: int
    """The first changed line, from 1."""
    details: dict[str, Any]


def replacement_of(task: str) -> Replacement | None:
    r"""Parse a replacement task; in its quotes, `\n`, `\t`, `\\` and backslash-quote are escapes."""
    match = _TASK.fullmatch(task.strip())
    if match is None:
        return None
    old, new, quoted, bare = match.groups()
    return Replacement(_unquoted(quoted) if quoted else bare, _unquoted(old), _unquoted(new))


def edited(data: bytes, replacement: Replacement) -> Edited:
    """Replace a text that occurs exactly once. Raises ToolError otherwise, and for data that is not text.

    All other bytes stay. The new text gets the newline style of the file's first line.
    """
    path = replacement.path
    if b"\0" in data:
        raise ToolError(f"{path}: a binary file")
    end = b"\r\n" if data.partition(b"\n")[0].endswith(b"\r") else b"\n"
    old, new = (
        text.replace("\r\n", "\n").encode("utf-8", "replace").replace(b"\n", end)
        for text in (replacement.old, replacement.new)
    )
    if not old:
        raise ToolError(f"{path}: the text to replace is empty")
    if old == new:
        raise ToolError(f"{path}: the new text equals the old one")
    lines = _line_numbers(data, old)
    if not lines:
        raise ToolError(f"{path}: does not contain this text")
    if len(lines) > 1:
        times = f"{len(lines)} times" if len(lines) <= _PLACES else f"more than {_PLACES} times"
        numbers = [*dict.fromkeys(map(str, lines[:_PLACES]))]
        where = f"line{'s' if len(numbers) > 1 else ''} {', '.join(numbers)}"
        raise ToolError(f"{path}: contains this text {times} ({where}); quote more of the text around it")
    changed = data.replace(old, new, 1)
    return Edited(changed, lines[0], _details(path, _lines(data), _lines(changed), lines[0], old.count(b"\n") + 1))


def _line_numbers(data: bytes, old: bytes) -> list[int]:
    """Return the line numbers where a text begins, at most one more than `_PLACES`."""
    lines: list[int] = []
    at = data.find(old)
    while at >= 0 and len(lines) <= _PLACES:
        lines.append(data.count(b"\n", 0, at) + 1)
        at = data.find(old, at + 1)
    return lines


def _details(path: str, before: list[str], after: list[str], line: int, olds: int) -> dict[str, Any]:
    """Return the diff around the changed lines, in the form of pi since 1.0 and in the older form.

    `olds`: number of old lines that the replaced text spans.
    """
    kept = len(before) - min(len(before), line - 1 + olds)
    removed, added = before[line - 1 : len(before) - kept], after[line - 1 : len(after) - kept]
    while len(removed) + len(added) > 2 and removed and added and removed[0] == added[0]:
        line += 1
        removed, added = removed[1:], added[1:]
    while len(removed) + len(added) > 2 and removed and added and removed[-1] == added[-1]:
        removed, added = removed[:-1], added[:-1]
    begin, end = max(0, line - 1 - _CONTEXT), line - 1 + len(removed)
    rows = [(" ", text) for text in before[begin : line - 1]]
    rows += [*(("-", text) for text in removed), *(("+", text) for text in added)]
    rows += [(" ", text) for text in before[end : end + _CONTEXT]]

    olds, news = (sum(sign in (side, " ") for sign, _ in rows) for side in "-+")
    hunk = f"@@ -{begin + bool(olds)},{olds} +{begin + bool(news)},{news} @@"
    name = path.replace("\n", " ")
    patch = "\n".join([f"--- {name}", f"+++ {name}", hunk, *map("".join, rows), ""])

    numbers = {"-": begin + 1, "+": begin + 1}
    width = len(str(max(len(before), len(after))))
    shown: list[str] = []
    for sign, text in rows:
        shown.append(f"{sign}{numbers[sign.strip() or '+']:>{width}} {text}")
        for side in sign.strip() or "-+":
            numbers[side] += 1
    return {"diff": "\n".join(shown), "patch": patch, "firstChangedLine": line}


def _lines(data: bytes) -> list[str]:
    text = data.decode("utf-8", "replace").replace("\r\n", "\n")
    return text.removesuffix("\n").split("\n") if text else []


def _unquoted(quoted: str) -> str:
    return _ESCAPE.sub(lambda match: _ESCAPED.get(match[1], match[1]), quoted[1:-1])
