"""The working directory as the tools see it: bounded, sorted, never outside itself.

Bounds are counts, not clocks, so that the same directory always gives the same answer.
"""

from __future__ import annotations

import os
import stat
from functools import cached_property
from itertools import islice
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathspec import GitIgnoreSpec

    Rules = tuple[tuple[str, GitIgnoreSpec], ...]
    """Of the `.gitignore` files from the root down, each with the directory it is about: `a/b/`."""

MAX_FILES = 20_000
MAX_ENTRIES = 20_000
"""Of one directory."""
MAX_FILE_BYTES = 1024 * 1024
MAX_SEARCHED = 32 * 1024 * 1024
"""Characters of all files together; what lies deeper is not searched."""
_BINARY_HEAD = 8192
"""Bytes: a NUL in them makes a file binary, as for git."""
_SKIPPED_NAMES = """
    .git .hg .svn .jj node_modules bower_components .venv venv __pycache__ .tox .nox .eggs .cache .mypy_cache
    .ruff_cache .pytest_cache .gradle .terraform .direnv .next .nuxt .idea
"""
_SKIPPED = frozenset(_SKIPPED_NAMES.split())
"""Directories of version control, of installed packages and of caches."""
_RUN_STORAGE = "/.pi/subagents/"
"""Directories below it hold runs: their prompts repeat the very words that are looked for."""
_MAX_STARS = 3
"""Of one part of an ignore rule: the time of a match grows with the length of a name to that power."""


class ToolError(Exception):
    """A tool cannot do what was asked; the text is the tool's result."""


class Directory:
    """The files below one directory."""

    def __init__(self, root: str) -> None:
        self._root = os.path.realpath(root)
        self._texts: dict[str, str] = {}
        self._searched = 0
        self.troubles: dict[str, None] = {}
        """What a search could not see, in words and in order."""

    def kind(self, path: str) -> str:
        """Return `file`, `directory` or `` for what a path, with all its links followed, is below the root."""
        try:
            return "directory" if os.path.isdir(self._locate(path)) else "file"
        except ToolError:
            return ""

    def entries(self, path: str) -> list[tuple[str, bool]]:
        """Return sorted names, directories with a slash, and whether each is a regular file; raises ToolError."""
        try:
            with os.scandir(self._locate(path)) as entries:
                return sorted(
                    (entry.name + "/" * entry.is_dir(follow_symlinks=False), entry.is_file(follow_symlinks=False))
                    for entry in islice(entries, MAX_ENTRIES)
                )
        except OSError as error:
            raise ToolError(f"{path}: {error.strerror}") from error

    def read(self, path: str) -> str:
        """Return the text of a file; raises ToolError when it is no text, too big or cannot be read."""
        try:
            data = _read_regular(self._locate(path))
        except OSError as error:
            raise ToolError(f"{path}: {error.strerror}") from error
        if data is None or len(data) > MAX_FILE_BYTES:
            raise ToolError(f"{path}: not a regular file of at most {MAX_FILE_BYTES // 1024} KB")
        if b"\0" in data[:_BINARY_HEAD]:
            raise ToolError(f"{path}: a binary file")
        return data.decode("utf-8", "replace")

    def searched_text(self, path: str) -> str:
        """Return the text of a file, which is read once; empty where `read` raises or beyond the bound of a search."""
        if path not in self._texts:
            self._texts[path] = ""
            if self._searched > MAX_SEARCHED:
                self.is_cut()
                return ""
            try:
                self._texts[path] = self.read(path)
            except ToolError as error:
                if error.__cause__:  # binary and big files are left out of a search without a word
                    self.troubles[str(error)] = None
            self._searched += len(self._texts[path])
        return self._texts[path]

    def is_cut(self) -> None:
        """Note that a bound stopped the search."""
        self.troubles["The directory is larger than one search covers; what lies deepest was left out."] = None

    def files_below(self, path: str) -> list[str]:
        """Return the files below a directory, by their path from the root; raises ToolError."""
        located = os.path.join(self._locate(path), "")
        return [file for file in self._files if os.path.join(self._root, file).startswith(located)]

    @cached_property
    def _files(self) -> list[str]:
        """Regular files that are not ignored, the ones near the root first; links are not followed."""
        found: list[str] = []
        directories: list[tuple[str, Rules]] = [("", ())]
        for directory, rules in directories:
            if len(found) + len(directories) > MAX_FILES:
                self.is_cut()
                break
            try:
                entries = self.entries(directory or ".")
            except ToolError as error:
                self.troubles[str(error)] = None
                continue
            if (".gitignore", True) in entries:
                rules = (*rules, (directory, _ignore_rules(self.searched_text(f"{directory}.gitignore"))))
            for name, is_file in entries:
                path = directory + name
                if _is_ignored(path, rules):
                    continue
                if is_file:
                    found.append(path)
                elif name.endswith("/") and name[:-1] not in _SKIPPED and not f"/{directory}".endswith(_RUN_STORAGE):
                    directories.append((path, rules))
        return found[:MAX_FILES]

    def _locate(self, path: str) -> str:
        """Return the real path of something below the root; raises ToolError for anything else."""
        located = os.path.realpath(os.path.join(self._root, path.replace("\0", "?")))
        if os.path.commonpath((located, self._root)) != self._root:
            raise ToolError(f"{path} is outside the working directory and was not read")
        if not os.path.exists(located):
            raise ToolError(f"{path}: no such file or directory")
        return located


def _ignore_rules(text: str) -> GitIgnoreSpec:
    """Read a `.gitignore`; a line that is not a rule is left out, and so is a rule that takes long."""
    from pathspec import GitIgnoreSpec  # half of the start-up time, and not every directory needs it

    rules = GitIgnoreSpec.from_lines([])
    for line in text.splitlines():
        parts = line.split("/")
        if parts.count("**") <= _MAX_STARS and all(part.count("*") <= _MAX_STARS for part in parts):
            try:
                rules += GitIgnoreSpec.from_lines([line])
            except ValueError:
                continue
    return rules


def _is_ignored(path: str, rules: Rules) -> bool:
    """Return what the innermost rule that fits says; without one nothing is ignored."""
    verdicts = (spec.check_file(path.removeprefix(base)).include for base, spec in reversed(rules))
    return next((verdict for verdict in verdicts if verdict is not None), False)


def _read_regular(path: str) -> bytes | None:
    """Read a regular file, but not much more than the bound; None for a pipe, a device or the like."""
    if not stat.S_ISREG(os.lstat(path).st_mode):
        return None
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOFOLLOW)
    try:
        return os.read(descriptor, MAX_FILE_BYTES + 1) if stat.S_ISREG(os.fstat(descriptor).st_mode) else None
    finally:
        os.close(descriptor)
