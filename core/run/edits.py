"""File changes of an agent as diff lines: from the arguments of a call, or from its result; pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from typing import Any, NamedTuple, cast

from ..text.plain import one_line, plain
from ..text.visible import visible, visible_line
from .events import Event, ToolCall, ToolResult, line_prefix

CONTEXT = 3
"""Unchanged lines shown before and after a change."""

EFFORT = 1_000_000
"""Pairs of old and new lines compared at most: about a second at worst. For a larger edit all old lines are shown, then
all new ones.
"""

GAP = "⋯"
"""Stands for omitted unchanged lines."""
EVERYWHERE = "(replaced everywhere)"
EMPTY = "(empty)"
SAME = "(no difference)"

_PAIRS = (("oldText", "newText"), ("old_string", "new_string"), ("old_text", "new_text"), ("old_str", "new_str"))
"""Agents' names for the replaced text, and for its replacement."""
_NO_FILE = "/dev/null"
_PATHS = ("path", "file_path", "filePath", "notebook_path")
_WRITTEN = ("content", "file_text", "new_source")
_WRITERS = frozenset({"write", "write_file", "create_file", "notebookedit"})
"""Tools, in lower case, whose content argument becomes a file's content."""
_PATCH = "*** Begin Patch"
_CALL, _RESULT = line_prefix(ToolCall), line_prefix(ToolResult)
_MARKS = (_PATCH.encode(), *(f'"{name}"'.encode() for name in (*(old for old, _ in _PAIRS), *_WRITTEN, "changes")))

_HUNK = r"@@ -(\d{1,9})(?:,(\d{1,9}))? \+(\d{1,9})(?:,(\d{1,9}))? @@"
_NUMBERED = r"([ +-]) *(\d{1,9}) (.*)"
"""A line in the format of pi before 1.0, with the number after the sign."""
_SKIPPED = r" +\.\.\."


class DiffLine(NamedTuple):
    """A line of a diff, safe to show."""

    text: str
    sign: str = ""
    """`+`, `-`, or a space for an unchanged line; empty for a line between those: a path, a gap."""
    number: int | None = None
    """In the old file for a removed line, otherwise in the new one; None if unknown."""


class _Change(NamedTuple):
    """One change: its old and new lines, or lines that are already a diff."""

    old: list[str]
    new: list[str]
    path: str = ""
    begins: int | None = None
    """Number of the first line, if known."""
    lines: tuple[DiffLine, ...] = ()

    @property
    def effort(self) -> int:
        return len(self.old) * len(self.new)


def may_be_edit(line: bytes) -> bool:
    """Return False if a line of a run's events certainly reports no edit."""
    if line.startswith(_RESULT):
        return b'"diff":"' in line
    return line.startswith(_CALL) and any(mark in line for mark in _MARKS)


def is_edit(event: Event) -> bool:
    """Return whether an event reports a change of a file."""
    return next(_changes(event), None) is not None


def paths_of(call: ToolCall) -> list[tuple[str, str]]:
    """Return the files that a call writes, as it names them, each with `add`, `delete` or `update` if given; empty for
    a call that writes none, or does not name one.
    """
    args = call.args
    patch = next((text for text in args.values() if isinstance(text, str) and text.lstrip().startswith(_PATCH)), None)
    if patch is not None:
        heads = (line[4:].partition(" File: ") for line in patch.split("\n") if line.startswith("*** "))
        return [(named, what.lower()) for what, _, named in heads if named]
    if changes := _mappings(args.get("changes")):
        named = ((_string(change, _PATHS), _string(change, ("kind",))) for change in changes)
        return [(path, kind) for path, kind in named if path]
    path = _string(args, _PATHS)
    return [(path, "update")] if path and (call.tool_name.lower() in _WRITERS or is_edit(call)) else []


def effort(event: Event) -> int:
    """Return how many pairs of lines its diff has to compare, at most `EFFORT`."""
    return min(EFFORT, sum(_between(change).effort for change in _changes(event)))


def diff_of(event: Event, most: int = EFFORT) -> list[DiffLine]:
    """Return an event's file changes, comparing at most `most` pairs of lines; empty if it reports no edit."""
    return [_cleaned(line) for line in _diff(event, most)]


def diff_to_decide(diff: str) -> list[DiffLine]:
    """Return all lines of the diff that the user decides on, with every character visible."""
    return [
        line._replace(text=visible(line.text) if line.sign else visible_line(line.text))
        for line in (_parsed(diff, is_whole=True) if diff else ())
    ]


def margins(diff: Sequence[DiffLine]) -> list[str]:
    """Return what stands before each line of a diff: its number, if known, and its sign."""
    width = max((len(str(line.number)) for line in diff if line.number is not None), default=0)
    return [_margin(line, width) for line in diff]


def _margin(line: DiffLine, width: int) -> str:
    if not line.sign:
        return ""
    number = "" if line.number is None else str(line.number)
    return f"{number:>{width}} {line.sign} " if width else f"{line.sign} "


def exact_diff(edit: dict[str, str], most: int) -> list[DiffLine]:
    """Return the diff of an edit's old and new text, with every character as it is."""
    change = next(_replaced("", edit), _Change([], []))
    return list(_compared(change, exact=_between(change).effort <= most))


def _diff(event: Event, most: int) -> list[DiffLine]:
    lines: list[DiffLine] = []
    effort_left, path = most, ""
    for change in _changes(event):
        if change.path and change.path != path:
            path = change.path
            lines.append(DiffLine(path))
        elif lines:
            lines.append(DiffLine(GAP))
        if change.lines:
            lines += change.lines
        else:
            needed = _between(change).effort
            effort_left -= needed if (is_affordable := needed <= effort_left) else 0
            lines += _compared(change, exact=is_affordable)
    if lines and isinstance(event, ToolCall) and event.args.get("replace_all") is True:
        lines.append(DiffLine(EVERYWHERE))
    return lines


def diff_of_call(call: ToolCall, result: ToolResult | None) -> list[DiffLine]:
    """Return the diff of a call: from its result, which has line numbers, otherwise from its arguments."""
    if result is None or not (lines := diff_of(result)):
        return diff_of(call)
    path = _string(call.args, _PATHS)
    return [DiffLine(one_line(path)), *lines] if path and lines[0].sign else lines


def diff_text(lines: Iterable[DiffLine]) -> str:
    """Return a diff as plain text."""
    return "\n".join(f"{line.sign}{line.text}" for line in lines)


# --- the changes of an event ----------------------------------------------------------------------------------------


def _changes(event: Event) -> Iterator[_Change]:
    match event:
        case ToolResult(diff=diff) if diff:
            yield _Change([], [], lines=tuple(_parsed(diff)))
        case ToolCall(tool_name=name, args=args):
            yield from _called(name, args)
        case _:
            return


def _called(name: str, args: dict[str, Any]) -> Iterator[_Change]:
    path = _string(args, _PATHS)
    patch = next((text for text in args.values() if isinstance(text, str) and text.lstrip().startswith(_PATCH)), None)
    if patch is not None:
        yield from _patched(patch)
    elif edits := _mappings(args.get("edits")):
        for edit in edits:
            yield from _replaced(path, edit)
    elif changes := _mappings(args.get("changes")):
        for change in changes:
            yield from _codex_change(change)
    else:
        yield from _replaced(path, args)
        if name.lower() in _WRITERS and (written := _string(args, _WRITTEN, None)) is not None:
            yield _Change([], _lines(written), path, begins=None if "new_source" in args else 1)


def _replaced(path: str, args: dict[str, Any]) -> Iterator[_Change]:
    for old_name, new_name in _PAIRS:
        old, new = args.get(old_name), args.get(new_name)
        if isinstance(old, str) and isinstance(new, str):
            yield _Change(*_line_pairs(old, new), path)


def _codex_change(change: dict[str, Any]) -> Iterator[_Change]:
    """Read a change by Codex: the whole text of a file it adds or deletes, and a diff of one it changes."""
    path, kind, diff = _string(change, _PATHS), change.get("kind"), change.get("diff")
    if not path or not isinstance(kind, str):
        return
    if not isinstance(diff, str):
        yield _Change([], [], path, lines=(DiffLine(f"({kind})"),))
    elif kind == "add":
        yield _Change([], _lines(diff), path, begins=1)
    elif kind == "delete":
        yield _Change(_lines(diff), [], path, begins=1)
    else:
        yield _Change([], [], path, lines=tuple(_parsed(diff)))


def _patched(patch: str) -> Iterator[_Change]:
    """Read a patch in the format that Codex has its models write: signs, but no numbers."""
    path = ""
    lines: list[DiffLine] = []
    for line in patch.split("\n"):
        if line.startswith("*** "):
            if path and lines:
                yield _Change([], [], path, lines=tuple(lines))
            what, _, named = line[4:].partition(" File: ")
            path, lines = (named, []) if named else (path, [])
            if named and what == "Delete":
                lines.append(DiffLine("(delete)"))
        elif line.startswith("@@"):
            lines += [DiffLine(GAP)] if lines else []
        elif path:
            lines.append(_signed(line))


def _parsed(diff: str, *, is_whole: bool = False) -> list[DiffLine]:
    """Read a unified diff of one or several files, or one in the format of pi before 1.0.

    In a unified diff only the counts of a hunk tell a removed `-- x` from the name of the next file. Other lines
    between the hunks are dropped, unless `is_whole`.
    """
    lines = diff.rstrip("\n").split("\n")
    if not any(line.startswith("@@") for line in lines):
        return [_numbered(line) if re.fullmatch(_NUMBERED, lines[0]) else _signed(line) for line in lines]
    read: list[DiffLine] = []
    hunk: _Hunk | None = None
    removed_from = ""
    for at, line in enumerate(lines):
        if hunk is None or hunk.is_over:
            if line.startswith("@@"):
                hunk = _Hunk(line)
                read += [DiffLine(GAP)] if read and read[-1].sign else []
            elif line.startswith("--- ") and not (is_whole and not "".join(lines[at + 1 : at + 2]).startswith("+++ ")):
                removed_from = line[4:]
            elif line.startswith("+++ "):
                read.append(DiffLine(_file_of(removed_from, line[4:])))
            elif line.startswith("\\") or is_whole:
                read.append(_signed(line))
        elif hunk.is_open and line.startswith("@@"):
            hunk = _Hunk(line)
            read.append(DiffLine(GAP))
        else:
            read.append(hunk.take(_signed(line)))
    return read


def _file_of(old: str, new: str) -> str:
    """Return the file that a diff is about, without git's prefixes for the two sides."""
    is_of_git = old.startswith(("a/", _NO_FILE)) and new.startswith(("b/", _NO_FILE))
    name = old if new == _NO_FILE else new
    return name[2:] if is_of_git else name


class _Hunk:
    """A part of a diff, with the numbers of its next lines; 0 if unknown."""

    def __init__(self, header: str) -> None:
        match = re.match(_HUNK, header)
        old, olds, new, news = (int(part or 1) for part in match.groups()) if match else (0, 0, 0, 0)
        self.is_open = match is None
        """Whether only the next hunk ends it."""
        self._next = {"-": old, "+": new}
        self._left = {"-": olds, "+": news}

    @property
    def is_over(self) -> bool:
        return not self.is_open and max(self._left.values()) <= 0

    def take(self, line: DiffLine) -> DiffLine:
        """Return its next line with the line's number."""
        if not line.sign:
            return line
        number = self._next["-" if line.sign == "-" else "+"]
        for side in "-+" if line.sign == " " else line.sign:
            self._next[side] += self._next[side] > 0
            self._left[side] -= 1
        return line._replace(number=number or None)


def _cleaned(line: DiffLine) -> DiffLine:
    return line._replace(text=plain(line.text) if line.sign else one_line(line.text))


def _signed(line: str) -> DiffLine:
    if line.startswith("\\"):
        return DiffLine(line.lstrip("\\ "))
    sign = line[:1]
    return DiffLine(line[1:], sign) if sign in ("+", "-", " ") and sign else DiffLine(line, " ")


def _numbered(line: str) -> DiffLine:
    if match := re.fullmatch(_NUMBERED, line):
        return DiffLine(match[3], match[1], int(match[2]))
    return DiffLine(GAP) if re.fullmatch(_SKIPPED, line) else _signed(line)


# --- two texts ------------------------------------------------------------------------------------------------------


def _between(change: _Change) -> _Change:
    """Return a change without the equal lines around it."""
    before, after = _equal_around(change.old, change.new)
    return change._replace(
        old=change.old[before : len(change.old) - after], new=change.new[before : len(change.new) - after]
    )


def _equal_around(old: list[str], new: list[str]) -> tuple[int, int]:
    """Return how many lines are equal at the beginning, and at the end."""
    most = min(len(old), len(new))
    before = next((index for index in range(most) if old[index] != new[index]), most)
    most -= before
    after = next((index for index in range(most) if old[-1 - index] != new[-1 - index]), most)
    return before, after


def _compared(change: _Change, *, exact: bool) -> Iterator[DiffLine]:
    """Compare old and new lines; unless `exact`, only equal lines around the change are recognized."""
    old, new = change.old, change.new
    if old == new:
        yield DiffLine(SAME if old else EMPTY)
        return
    before, after = _equal_around(old, new)
    blocks = [(0, 0, before), *(_equal_blocks(old, new, before, after) if exact else ())]
    blocks += [(len(old) - after, len(new) - after, after), (len(old), len(new), 0)]
    first = change.begins
    yield from _unchanged(new[:before], 0, first, head=0, tail=CONTEXT)
    for (old_at, new_at, size), (next_old, next_new, next_size) in pairwise(blocks):
        for index in range(old_at + size, next_old):
            yield DiffLine(old[index], "-", None if first is None else first + index)
        for index in range(new_at + size, next_new):
            yield DiffLine(new[index], "+", None if first is None else first + index)
        if next_size:
            tail = 0 if next_old + next_size == len(old) else CONTEXT
            yield from _unchanged(new[next_new : next_new + next_size], next_new, first, head=CONTEXT, tail=tail)


def _equal_blocks(old: list[str], new: list[str], before: int, after: int) -> Iterator[tuple[int, int, int]]:
    """Yield the runs of equal lines inside a change: their start in both, and their length."""
    from difflib import SequenceMatcher  # loaded late: only needed to show an edit

    inner_old, inner_new = old[before : len(old) - after], new[before : len(new) - after]
    for old_at, new_at, size in SequenceMatcher(None, inner_old, inner_new).get_matching_blocks():
        if size:
            yield before + old_at, before + new_at, size


def _unchanged(lines: list[str], begin: int, first: int | None, *, head: int, tail: int) -> Iterator[DiffLine]:
    """Show `head` unchanged lines after a change and `tail` before the next one, and omit the others."""

    def shown(index: int) -> DiffLine:
        return DiffLine(lines[index], " ", None if first is None else first + begin + index)

    if len(lines) <= head + tail:
        head, tail = len(lines), 0
    yield from map(shown, range(head))
    if head and tail:
        yield DiffLine(GAP)
    yield from map(shown, range(len(lines) - tail, len(lines)))


def _line_pairs(old: str, new: str) -> tuple[list[str], list[str]]:
    """Split both texts into lines; a newline that ends both, or the only one, does not count as a line."""
    if all(text.endswith("\n") or not text for text in (old, new)):
        return _lines(old), _lines(new)
    return old.split("\n") if old else [], new.split("\n") if new else []


def _lines(text: str) -> list[str]:
    return text.removesuffix("\n").split("\n") if text else []


def _string(fields: dict[str, Any], names: Iterable[str], default: Any = "") -> Any:
    return next((value for name in names if isinstance(value := fields.get(name), str)), default)


def _mappings(values: object) -> list[dict[str, Any]]:
    items = cast("list[object]", values) if isinstance(values, list) else []
    return [cast("dict[str, Any]", item) for item in items if isinstance(item, dict)]
