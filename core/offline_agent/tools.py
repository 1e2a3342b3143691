"""The four read-only tools, with pi's names, arguments and way of writing results."""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Any, NamedTuple

from ..text.plain import plain
from .directory import Directory, ToolError

TOOL_NAMES = ("read", "grep", "find", "ls")
FINALIZE_TOOL = "subagent_finalize"
"""Not one of them: what a result is handed over to, where an extension of pi offers it."""

MAX_RESULT = 24 * 1024
"""Characters of a result."""
MAX_SHOWN = 200
"""Lines of a result."""
MAX_HITS = 20_000
"""Lines that a search finds; what comes later is not searched."""
MAX_LINE = 400
"""Characters of a line."""
_WORD_START = r"(?:(?<![^\W\d_])|(?<=[a-z])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z]))"


class Call(NamedTuple):
    name: str
    args: dict[str, Any]


class Hit(NamedTuple):
    """A line that was read or that matches; number and text are empty where only the path is known."""

    path: str
    number: int = 0
    line: str = ""


class Outcome(NamedTuple):
    """What a tool returns: a text as pi would write it, and the same as values for what follows."""

    text: str
    is_error: bool = False
    hits: tuple[Hit, ...] = ()


class Toolbox:
    """Carries out calls on one directory."""

    def __init__(self, directory: Directory, names: tuple[str, ...]) -> None:
        self.directory = directory
        self.names = names

    def carry_out(self, call: Call) -> Outcome:
        """Return what a call gives; a tool that cannot do it says why, with `is_error`."""
        try:
            return {"ls": self._ls, "find": self._find, "grep": self._grep, "read": self._read}[call.name](**call.args)
        except ToolError as error:
            return Outcome(str(error), is_error=True)

    def _ls(self, path: str) -> Outcome:
        return _paths([name for name, _ in self.directory.entries(path)], "(empty directory)")

    def _find(self, pattern: str, path: str = ".") -> Outcome:
        """Match file names, or whole paths when the pattern has a slash; case does not matter."""
        wanted = re.compile(fnmatch.translate(pattern if "/" in pattern else f"*/{pattern}"), re.IGNORECASE)
        files = self.directory.files_below(path)
        return _paths([file for file in files if wanted.match(file) or wanted.match(f"/{file}")], "No files found")

    def _grep(self, pattern: str, path: str = ".", wordStart: bool = False) -> Outcome:
        """Find lines with a literal text; case does not matter.

        `wordStart`: only where a word, or a part of a compound name, begins; a very short one has to end there too.
        """
        literal = f"(?i:{re.escape(pattern)})"
        if wordStart:  # the literal comes first, too, because it is found ten times as fast
            literal = f"(?={literal}){_WORD_START}{literal}" + ("(?![a-z])" if len(pattern) < 3 else "")
        wanted = re.compile(literal)
        matching = (hit for file in self.directory.files_below(path) for hit in self._matching(file, wanted))
        hits = tuple(islice(matching, MAX_HITS))
        if len(hits) == MAX_HITS:
            self.directory.is_cut()
        shown = (f"{visible_name(hit.path)}:{hit.number}: {hit.line}" for hit in hits)
        return Outcome(_shown(shown, len(hits)) or "No matches found", hits=hits)

    def _matching(self, path: str, wanted: re.Pattern[str]) -> Iterator[Hit]:
        """Iterate over the lines of a file that match, each once."""
        text = self.directory.searched_text(path)
        number, counted_to, position = 1, 0, 0
        while match := wanted.search(text, position):
            start = text.rfind("\n", 0, match.start()) + 1
            end = text.find("\n", match.start())
            end = len(text) if end < 0 else end
            number += text.count("\n", counted_to, start)
            yield Hit(path, number, text[start : min(end, start + MAX_LINE)].removesuffix("\r"))
            counted_to, position = start, end + 1

    def _read(self, path: str, offset: int = 1, limit: int = MAX_SHOWN) -> Outcome:
        """Return lines, split at newlines only, as editors and grep count them."""
        lines = self.directory.read(path).removesuffix("\n").split("\n")
        first = max(1, min(offset, len(lines)))
        numbered = enumerate(lines[first - 1 : first - 1 + limit], first)
        hits = tuple(Hit(path, number, line[:MAX_LINE].removesuffix("\r")) for number, line in numbered)
        return Outcome(_shown((hit.line for hit in hits), len(lines) - first + 1), hits=hits)


def visible_name(path: str) -> str:
    """Write a path on one line: what would not show as itself is escaped."""
    shown = path.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")
    return shown if plain(shown) == shown and "\n" not in shown else shown.encode("unicode_escape").decode("ascii")


def _paths(paths: list[str], nothing: str) -> Outcome:
    return Outcome(_shown(map(visible_name, paths), len(paths)) or nothing, hits=tuple(map(Hit, paths)))


def _shown(lines: Iterable[str], total: int) -> str:
    """Put the first lines below one another, and say how many of all are left out."""
    shown = list(islice(lines, MAX_SHOWN))
    text = "\n".join(shown)[:MAX_RESULT]
    return text if len(shown) == total else f"{text}\n[{total - len(shown)} more not shown]"
