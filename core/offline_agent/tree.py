"""The working directory as the tools see it: bounded, sorted, never outside itself, read at most once.

Bounds are counts, not clocks, so that the same tree always gives the same answer.
"""

from __future__ import annotations

import os
import stat
from functools import cached_property
from itertools import islice

from .ignored import IgnoreRule, is_ignored, is_skipped, parse_rules

MAX_FILES = 20_000
MAX_DIRECTORIES = 5_000
MAX_ENTRIES = 20_000
"""Of one directory."""
MAX_FILE_BYTES = 1024 * 1024
MAX_SEARCHED_BYTES = 32 * 1024 * 1024
"""Of all files together; what comes later in the tree is not searched."""
_BINARY_HEAD = 8192
"""Bytes: a NUL in them makes a file binary, as for git."""


class ToolError(Exception):
    """A tool cannot do what was asked; the text is the tool's result."""


class Tree:
    """The files below one directory."""

    def __init__(self, root: str) -> None:
        self.root = os.path.realpath(root)
        self._texts: dict[str, str | None] = {}
        self._searched_bytes = 0
        self.unreadable: list[str] = []
        """Directories and files that could not be opened, by their path from the root, as they are met."""
        self.cut = False
        """True when a bound stopped the walk or the search."""

    def locate(self, path: str) -> str:
        """Return the real path of something below the root; raises ToolError for anything else."""
        try:
            located = os.path.realpath(os.path.join(self.root, path))
        except ValueError as error:
            raise ToolError(f"{path}: no such file or directory") from error
        if located != self.root and not located.startswith(self.root.rstrip("/") + "/"):
            raise ToolError(f"{path} is outside the working directory and was not read")
        if not os.path.exists(located):
            raise ToolError(f"{path}: no such file or directory")
        return located

    def relative(self, directory: str) -> str:
        """Return what the paths of files below a directory begin with; empty for the root. Raises ToolError."""
        located = self.locate(directory)
        return "" if located == self.root else f"{os.path.relpath(located, self.root)}/"

    def kind(self, path: str) -> str:
        """Return `file`, `directory` or `` for what a path, with all its links followed, is below the root."""
        try:
            located = self.locate(path)
        except ToolError:
            return ""
        return "directory" if os.path.isdir(located) else "file"

    def listing(self, path: str) -> tuple[str, ...]:
        """Return the sorted names in a directory, directories with a slash; raises ToolError."""
        return tuple(name for name, _ in self._entries(path))

    @cached_property
    def files(self) -> tuple[str, ...]:
        """Regular files that a search looks at, the ones near the root first; links are not followed."""
        found: list[str] = []
        directories: list[tuple[str, tuple[IgnoreRule, ...]]] = [("", ())]
        for number, (directory, outer_rules) in enumerate(directories):
            if len(found) >= MAX_FILES or number >= MAX_DIRECTORIES:
                self.cut = True
                break
            try:
                entries = self._entries(directory)
            except ToolError:
                self.unreadable.append(directory)
                continue
            self.cut = self.cut or len(entries) == MAX_ENTRIES
            rules = outer_rules
            if (".gitignore", True) in entries:
                rules += parse_rules(self.text(_join(directory, ".gitignore")) or "", directory)
            for name, is_file in entries:
                path = _join(directory, name.rstrip("/"))
                is_directory = name.endswith("/")
                if is_ignored(path, is_directory, rules):
                    continue
                if is_file:
                    found.append(path)
                elif is_directory and not is_skipped(path):
                    directories.append((path, rules))
        return tuple(found[:MAX_FILES])

    def text(self, path: str) -> str | None:
        """Return what a file of `files` says; None for what is no text, too big, or beyond the bounds of a search."""
        if path not in self._texts:
            self._texts[path] = self._search_text(path)
        return self._texts[path]

    def read(self, path: str) -> str:
        """Return what one named file says; raises ToolError when it is no text, too big or cannot be read."""
        located = self.locate(path)
        try:
            data = _read_regular(located, follow=True)
        except OSError as error:
            raise ToolError(f"{path}: {error.strerror}") from error
        if data is None:
            raise ToolError(f"{path}: not a regular file of at most {MAX_FILE_BYTES // 1024} KB")
        if b"\0" in data[:_BINARY_HEAD]:
            raise ToolError(f"{path}: a binary file")
        return data.decode("utf-8", "replace")

    def _entries(self, path: str) -> list[tuple[str, bool]]:
        """Return names and whether each is a regular file; links are neither file nor directory."""
        try:
            with os.scandir(self.locate(path)) as entries:
                return sorted(
                    (f"{entry.name}/", False)
                    if entry.is_dir(follow_symlinks=False)
                    else (entry.name, entry.is_file(follow_symlinks=False))
                    for entry in islice(entries, MAX_ENTRIES)
                )
        except OSError as error:
            raise ToolError(f"{path}: {error.strerror}") from error

    def _search_text(self, path: str) -> str | None:
        if self._searched_bytes >= MAX_SEARCHED_BYTES:
            self.cut = True
            return None
        try:
            data = _read_regular(os.path.join(self.root, path), follow=False)
        except OSError:
            self.unreadable.append(path)
            return None
        if data is None or b"\0" in data[:_BINARY_HEAD]:
            return None
        self._searched_bytes += len(data)
        return data.decode("utf-8", "replace")


def _join(directory: str, name: str) -> str:
    return f"{directory}/{name}" if directory else name


def _read_regular(path: str, *, follow: bool) -> bytes | None:
    """Read a regular file whole; None when it is something else (a pipe or a device) or too big."""
    if not stat.S_ISREG((os.stat if follow else os.lstat)(path).st_mode):
        return None
    flags = os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | (0 if follow else os.O_NOFOLLOW)
    descriptor = os.open(path, flags)
    try:
        facts = os.fstat(descriptor)
        if not stat.S_ISREG(facts.st_mode) or facts.st_size > MAX_FILE_BYTES:
            return None
        chunks: list[bytes] = []
        size = 0
        while size <= MAX_FILE_BYTES and (chunk := os.read(descriptor, MAX_FILE_BYTES)):
            chunks.append(chunk)
            size += len(chunk)
        return b"".join(chunks) if size <= MAX_FILE_BYTES else None
    finally:
        os.close(descriptor)
