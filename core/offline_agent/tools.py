"""The four read-only tools, with pi's names, arguments and way of writing results."""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

from ..text.plain import plain
from .tree import ToolError, Tree

MAX_RESULT = 24 * 1024
"""Characters of a result."""
MAX_FOUND = 200
"""Paths a `find` names."""
MAX_HITS_SHOWN = 100
MAX_HITS = 20_000
MAX_HITS_PER_FILE = 40
"""Lines, of one file and of all, that are remembered; more are only counted."""
DEFAULT_LINES = 200
"""Lines a `read` shows when no limit is given."""
_MAX_LINE = 400
_MAX_KEPT = 2000
"""Characters of a matching line that are remembered."""

_WORD_START = r"(?:(?<![^\W\d_])|(?<=[a-z])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z]))"
_WORD_END = r"(?![a-z])"


class Call(NamedTuple):
    name: str
    args: dict[str, Any]


class Hit(NamedTuple):
    """One line that matches."""

    path: str
    number: int
    line: str


class Outcome(NamedTuple):
    """What a tool answers: the text for the reader, and the same as values for what follows."""

    text: str
    is_error: bool = False
    paths: tuple[str, ...] = ()
    hits: tuple[Hit, ...] = ()
    counts: Mapping[str, int] = MappingProxyType({})
    """Matching lines by path."""
    lines: tuple[str, ...] = ()
    first_line: int = 1
    total_lines: int = 0


class Toolbox:
    """Carries out calls on one tree."""

    def __init__(self, tree: Tree, names: tuple[str, ...]) -> None:
        self._tree = tree
        self.names = names

    def __contains__(self, name: str) -> bool:
        return name in self.names

    def carry_out(self, call: Call) -> Outcome:
        """Return a call; a tool that cannot do it answers with `is_error`."""
        if call.name not in self.names:
            return Outcome(f"Tool {call.name} not found", is_error=True)
        try:
            return {"ls": self._ls, "find": self._find, "grep": self._grep, "read": self._read}[call.name](**call.args)
        except ToolError as error:
            return Outcome(str(error), is_error=True)

    def _ls(self, path: str) -> Outcome:
        names = self._tree.listing(path)
        shown = [visible_name(name) for name in names[:MAX_FOUND]]
        return Outcome(
            _bounded([*shown, *_more(len(names) - MAX_FOUND, "entries")]) or "(empty directory)", paths=names
        )

    def _find(self, pattern: str, path: str = ".") -> Outcome:
        """Match file names, or whole paths when the pattern has a slash; case does not matter."""
        whole = "/" in pattern
        wanted = re.compile(fnmatch.translate(pattern.lower()))
        found = tuple(
            file for file in self._below(path) if wanted.match((file if whole else file.rpartition("/")[2]).lower())
        )
        shown = [visible_name(file) for file in found[:MAX_FOUND]]
        lines = _bounded([*shown, *_more(len(found) - MAX_FOUND, "files")])
        return Outcome(lines or "No files found matching pattern", paths=found)

    def _grep(self, pattern: str, path: str = ".", wordStart: bool = False, wholeWord: bool = False) -> Outcome:
        """Find lines with a literal text; case does not matter.

        `wordStart`: only where a word, or a part of a compound name, begins; `wholeWord`: and it ends there too.
        """
        wanted = re.compile(
            (_WORD_START if wordStart or wholeWord else "")
            + f"(?i:{re.escape(pattern)})"
            + (_WORD_END if wholeWord else "")
        )
        hint = pattern.lower()
        hits: list[Hit] = []
        counts: dict[str, int] = {}
        for file in self._below(path):
            text = self._tree.text(file)
            if not text or hint not in text.lower():
                continue
            matching = _matching_lines(text, wanted)
            if matching:
                counts[file] = len(matching)
                kept = min(MAX_HITS_PER_FILE, MAX_HITS - len(hits))
                hits += (Hit(file, number, line) for number, line in matching[:kept])
        shown = [f"{visible_name(hit.path)}:{hit.number}: {hit.line[:_MAX_LINE]}" for hit in hits[:MAX_HITS_SHOWN]]
        lines = _bounded([*shown, *_more(sum(counts.values()) - len(shown), "matches")])
        return Outcome(lines or "No matches found", hits=tuple(hits), counts=counts)

    def _below(self, path: str) -> tuple[str, ...]:
        prefix = self._tree.relative(path)
        return tuple(file for file in self._tree.files if file.startswith(prefix)) if prefix else self._tree.files

    def _read(self, path: str, offset: int = 1, limit: int = DEFAULT_LINES) -> Outcome:
        lines = split_lines(self._tree.read(path))
        first = max(1, min(offset, len(lines)))
        shown = lines[first - 1 : first - 1 + limit]
        left = len(lines) - (first - 1 + len(shown))
        text = _bounded([*(line[: _MAX_LINE * 4] for line in shown), *_more(left, "lines in file")])
        return Outcome(text, lines=tuple(shown), first_line=first, total_lines=len(lines))


def split_lines(text: str) -> list[str]:
    """Split at newlines only, as editors and grep count them."""
    lines = [line.removesuffix("\r") for line in text.split("\n")]
    return lines[:-1] if lines[-1] == "" else lines


def visible_name(path: str) -> str:
    """Write a path on one line: what would not show as itself is escaped."""
    shown = path.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")
    return shown if plain(shown) == shown and "\n" not in shown else shown.encode("unicode_escape").decode("ascii")


def _matching_lines(text: str, wanted: re.Pattern[str]) -> list[tuple[int, str]]:
    """Return number and text of each line that matches, once."""
    matching: list[tuple[int, str]] = []
    number, counted_to, position = 1, 0, 0
    while match := wanted.search(text, position):
        start = text.rfind("\n", 0, match.start()) + 1
        end = text.find("\n", match.start())
        end = len(text) if end < 0 else end
        number += text.count("\n", counted_to, start)
        counted_to = start
        matching.append((number, text[start : min(end, start + _MAX_KEPT)].removesuffix("\r")))
        position = end + 1
    return matching


def _more(left: int, what: str) -> tuple[str, ...]:
    return (f"[{left} more {what} not shown]",) if left > 0 else ()


def _bounded(lines: list[str]) -> str:
    text = "\n".join(lines)
    return text if len(text) <= MAX_RESULT else text[:MAX_RESULT] + "\n[cut here]"
