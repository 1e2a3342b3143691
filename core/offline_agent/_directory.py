"""The working directory as the tools see it: bounded, sorted, never outside itself; one tool changes a file in it.

Bounds are counts, not times, so that the same directory always gives the same answer.
"""

from __future__ import annotations

import os
import re
from fnmatch import fnmatchcase
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from ..text.plain import plain
from ._replacement import Replacement, ToolError, edited

if TYPE_CHECKING:
    from pathspec import GitIgnoreSpec

READING = ("read", "grep", "find", "ls")
TOOL_NAMES = (*READING, "edit")
MAX_FILES = 20_000
MAX_FILE_BYTES = 1024 * 1024
MAX_SEARCHED = 32 * 1024 * 1024
"""Maximum characters that one search reads, over all files."""
MAX_HITS = 20_000
"""Maximum lines that one search finds."""
MAX_SHOWN = 200
"""Maximum lines of a result."""
MAX_LINE = 400
"""Characters of a line that are searched and shown."""
_SKIPPED = (".git", ".hg", ".svn", ".jj", "node_modules", ".venv", "venv", "__pycache__", ".cache", ".tox")
_RUNS = re.compile(r"(^|/)\.pi/subagents/(runs|sessions|active|trash)/$")
"""subdeck's run data: earlier agents' answers about the files, not the files themselves."""
_CUT = "The directory is larger than one search covers, and a part was left out."
_MAX_STARS = 3
"""In an ignore rule: matching time grows with the name's length to that power."""

Rules: TypeAlias = "tuple[tuple[str, GitIgnoreSpec], ...]"
"""Rules of the `.gitignore` files, from the root down, each with its directory: `a/b/`."""


class Call(NamedTuple):
    name: str
    args: dict[str, Any]


class Hit(NamedTuple):
    """A line that was read or matches; number and text are empty if only the path is known."""

    path: str
    number: int = 0
    line: str = ""


class Outcome(NamedTuple):
    text: str
    is_error: bool = False
    hits: tuple[Hit, ...] = ()
    details: dict[str, Any] | None = None
    """Structured details of the tool; None stands for the call's arguments."""


class Directory:
    """The files below one directory."""

    def __init__(self, root: str) -> None:
        self._root = os.path.realpath(root)
        self.problems: dict[str, None] = {}
        """Failures of tools and limits of searches, in order."""

    def kind(self, path: str) -> str:
        """Return `file`, `directory` or an empty text for a path below the root, with links followed."""
        try:
            return "directory" if os.path.isdir(self._locate(path)) else "file"
        except ToolError:
            return ""

    def carry_out(self, call: Call) -> Outcome:
        """Return a call's result; for a failed tool, the reason with `is_error`."""
        tools = {"read": self._read, "grep": self._grep, "find": self._find, "ls": self._ls}
        try:
            if call.name == "edit":
                return self._edit(**call.args)
            hits = tuple(tools[call.name](**call.args))
        except ToolError as error:
            self.problems[str(error)] = None
            return Outcome(str(error), is_error=True)
        is_read = call.name == "read"
        rows = [hit.line if is_read else f"{place(hit)}: {hit.line}".removesuffix(": ") for hit in hits[:MAX_SHOWN]]
        if len(hits) > MAX_SHOWN:
            rows.append(f"[{len(hits) - MAX_SHOWN} more not shown]")
        return Outcome("\n".join(rows) if hits else "Nothing found", hits=hits)

    def _ls(self, path: str) -> list[Hit]:
        try:
            with os.scandir(self._locate(path)) as entries:
                return [Hit(name) for name in sorted(entry.name + "/" * entry.is_dir() for entry in entries)]
        except OSError as error:
            raise ToolError(f"{path}: {error.strerror}") from error

    def _find(self, pattern: str, path: str) -> list[Hit]:
        """Match file names, or ends of paths if the pattern has a slash; ignores case."""
        name_pattern = f"*/{pattern.lower()}"
        return [Hit(file) for file in self._files_below(path) if fnmatchcase(f"/{file.lower()}", name_pattern)]

    def _grep(self, pattern: str, path: str) -> list[Hit]:
        """Find the lines that match a regular expression; ignores case."""
        expression = re.compile(pattern, re.IGNORECASE)
        hits: list[Hit] = []
        searched = 0
        for file in self._files_below(path):
            if searched > MAX_SEARCHED or len(hits) > MAX_HITS:
                self.problems[_CUT] = None
                break
            lines = self._lines_or_none(file)
            searched += sum(map(len, lines))
            hits += [Hit(file, number, line) for number, line in enumerate(lines, 1) if expression.search(line)]
        return hits

    def _read(self, path: str, offset: int, limit: int) -> list[Hit]:
        lines = self._lines(path)
        first = max(1, min(offset, len(lines)))
        return [Hit(path, number, line) for number, line in enumerate(lines[first - 1 : first - 1 + limit], first)]

    def _edit(self, path: str, edits: list[dict[str, str]]) -> Outcome:
        """Replace a text in place, so that the file keeps its owner, mode and hard links."""
        (edit,) = edits
        if os.path.islink(os.path.join(self._root, path.replace("\0", "?"))):
            raise ToolError(f"{path}: a link; name the file that it leads to")
        located = self._locate_text(path)
        try:
            with open(os.open(located, os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC), "r+b", buffering=0) as file:
                changed = edited(file.read(), Replacement(path, edit["oldText"], edit["newText"]))
                file.seek(0)
                unwritten = memoryview(changed.data)
                while unwritten:
                    unwritten = unwritten[file.write(unwritten) or 0 :]
                file.truncate()
        except OSError as error:
            raise ToolError(f"{path}: {error.strerror}") from error
        hits = (Hit(path, changed.line),)
        return Outcome(f"Successfully replaced 1 block(s) in {path}.", hits=hits, details=changed.details)

    def _lines(self, path: str) -> list[str]:
        """Read a file, split at newlines only, like line numbers in editors and grep."""
        located = self._locate_text(path)
        try:
            with open(located, encoding="utf-8", errors="replace", newline="\n") as file:
                text = file.read()
        except OSError as error:
            raise ToolError(f"{path}: {error.strerror}") from error
        if "\0" in text:
            raise ToolError(f"{path}: a binary file")
        return [line[:MAX_LINE].removesuffix("\r") for line in text.removesuffix("\n").split("\n")]

    def _locate_text(self, path: str) -> str:
        """Return the real path of a file that is small enough to read whole."""
        located = self._locate(path)
        if not os.path.isfile(located) or os.path.getsize(located) > MAX_FILE_BYTES:
            raise ToolError(f"{path}: not a regular file of at most {MAX_FILE_BYTES // 1024} KB")
        return located

    def _lines_or_none(self, path: str) -> list[str]:
        """Read a file for a search; silently skips binary and big files."""
        try:
            return self._lines(path)
        except ToolError as error:
            if error.__cause__:
                self.problems[str(error)] = None
            return []

    def _files_below(self, path: str) -> list[str]:
        located = os.path.join(self._locate(path), "")
        return [file for file in self._files if os.path.join(self._root, file).startswith(located)]

    @cached_property
    def _files(self) -> list[str]:
        """Files that are not ignored, the ones near the root first; links are not followed."""
        paths: list[str] = []
        rules: dict[str, Rules] = {}
        for path, directories, names in os.walk(self._root, onerror=self._note):
            base = os.path.join(os.path.relpath(path, self._root), "").removeprefix("./")
            own_rules = rules.get(os.path.dirname(path), ())
            if ".gitignore" in names:
                own_rules = (*own_rules, (base, _ignore_rules(self._lines_or_none(f"{base}.gitignore"))))
            rules[path] = own_rules
            directories[:] = [name for name in sorted(directories) if not _is_left_out(f"{base}{name}/", own_rules)]
            paths += [base + name for name in names if not _is_ignored(base + name, own_rules)]
            if len(paths) > MAX_FILES:
                self.problems[_CUT] = None
                break
        files = (file for file in paths[:MAX_FILES] if not os.path.islink(os.path.join(self._root, file)))
        return sorted(files, key=lambda file: (file.count("/"), file))

    def _note(self, error: OSError) -> None:
        self.problems[f"{os.path.relpath(error.filename, self._root)}/: {error.strerror}"] = None

    def _locate(self, path: str) -> str:
        """Return the real path of a path below the root, or raise ToolError."""
        located = os.path.realpath(os.path.join(self._root, path.replace("\0", "?")))
        if os.path.commonpath((located, self._root)) != self._root:
            raise ToolError(f"{path} is outside the working directory")
        if not os.path.exists(located):
            raise ToolError(f"{path}: no such file or directory")
        return located


def visible_name(path: str) -> str:
    """Write a path on one line, with unprintable characters escaped."""
    shown = path.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")
    return shown if plain(shown) == shown and "\n" not in shown else shown.encode("unicode_escape").decode("ascii")


def place(hit: Hit) -> str:
    return f"{visible_name(hit.path)}:{hit.number}" if hit.number else visible_name(hit.path)


def _ignore_rules(lines: list[str]) -> GitIgnoreSpec:
    """Parse a `.gitignore`; skips invalid rules, and rules that would match slowly."""
    from pathspec import GitIgnoreSpec  # loading it takes as long as the rest of the start

    rules = GitIgnoreSpec.from_lines([])
    for line in lines:
        if line.replace("**", "*").count("*") <= _MAX_STARS:
            try:
                rules += GitIgnoreSpec.from_lines([line])
            except ValueError:
                continue
    return rules


def _is_left_out(directory: str, rules: Rules) -> bool:
    is_skipped = os.path.basename(directory[:-1]) in _SKIPPED or _RUNS.search(directory) is not None
    return is_skipped or _is_ignored(directory, rules)


def _is_ignored(path: str, rules: Rules) -> bool:
    """Whether the innermost matching rule ignores the path; false if none matches."""
    verdicts = (spec.check_file(path.removeprefix(base)).include for base, spec in reversed(rules))
    return next((verdict for verdict in verdicts if verdict is not None), False)
