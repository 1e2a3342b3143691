"""A patch as rows: unified or side by side, folded or not; pure."""

from __future__ import annotations

from collections.abc import Callable
from enum import IntEnum
from typing import NamedTuple

from ...core.git.patch import NO_PAIR, FilePatch, Patch

LONGEST_COMPARED = 10_000
"""Maximum bytes of a line to compare without whitespace."""
NONE = -1
"""Not a line of the patch."""


class Kind(IntEnum):
    FILE = 0
    NOTE = 1
    """Why a file has no lines to show."""
    HUNK = 2
    LINE = 3


class Row(NamedTuple):
    """`left` and `right` are lines of the patch; in a unified view they are the same."""

    kind: Kind
    file: int
    hunk: int = NONE
    left: int = NONE
    right: int = NONE


class Document:
    """The rows of a patch. Each change of the view computes all of them again: a fraction of a second for 50,000
    lines.
    """

    def __init__(self, patch: Patch) -> None:
        self.patch = patch
        self.folded: set[tuple[str, str]] = set()
        """Keys of the files that show only their name."""
        self.beside = False
        """Whether removed and added lines are side by side."""
        self.spaces = True
        """Whether lines that differ only in whitespace are shown as changed."""
        self.rows: list[Row] = []
        self.file_rows: list[int] = []
        """First row of each file."""
        self.hunk_rows: list[int] = []
        self.lay_out()

    def lay_out(self) -> None:
        self.rows, self.file_rows, self.hunk_rows = [], [], []
        for number, file in enumerate(self.patch.files):
            self.file_rows.append(len(self.rows))
            self.rows.append(Row(Kind.FILE, number))
            if file.key in self.folded:
                continue
            if not file.hunks:
                self.rows.append(Row(Kind.NOTE, number))
            for index, hunk in enumerate(file.hunks):
                self.hunk_rows.append(len(self.rows))
                self.rows.append(Row(Kind.HUNK, number, index, hunk.begin, hunk.begin))
                add = self._add_beside if self.beside else self._add_below
                add(number, index, hunk.begin + 1, hunk.end)

    def _add_below(self, file: int, hunk: int, begin: int, end: int) -> None:
        if self.spaces:
            self.rows += [Row(Kind.LINE, file, hunk, at, at) for at in range(begin, end)]
            return
        for at in range(begin, end):
            if self.patch.lines[at].startswith(b"-") and self.is_blank_change(at):
                continue  # the new line stands for both
            self.rows.append(Row(Kind.LINE, file, hunk, at, at))

    def _add_beside(self, file: int, hunk: int, begin: int, end: int) -> None:
        lines, pairs = self.patch.lines, self.patch.pairs
        for at in range(begin, end):
            sign = lines[at][:1]
            if sign == b"-":
                pair = pairs[at]
                self.rows.append(Row(Kind.LINE, file, hunk, at, NONE if pair == NO_PAIR else pair))
            elif sign == b"+":
                if pairs[at] == NO_PAIR:
                    self.rows.append(Row(Kind.LINE, file, hunk, NONE, at))
            else:
                self.rows.append(Row(Kind.LINE, file, hunk, at, at))

    def is_blank_change(self, line: int) -> bool:
        """Return whether a line differs from its counterpart only in whitespace; False for a very long line."""
        lines, pair = self.patch.lines, self.patch.pairs[line]
        if pair == NO_PAIR or max(len(lines[line]), len(lines[pair])) > LONGEST_COMPARED:
            return False
        return _without_blanks(lines[line]) == _without_blanks(lines[pair])

    # --- finding places --------------------------------------------------------------------------------------------

    def file_at(self, row: int) -> FilePatch | None:
        return self.patch.files[self.rows[row].file] if row < len(self.rows) else None

    def row_of(self, line: int) -> int:
        """Return the row of a line of the patch; its file's row if the file is folded."""
        if self.beside and (pair := self.patch.pairs[line]) != NO_PAIR:
            line = min(line, pair)
        low, high = 0, len(self.rows)
        while low < high:
            middle = (low + high) // 2
            if self._begin_of(middle) <= line:
                low = middle + 1
            else:
                high = middle
        return max(0, low - 1)

    def _begin_of(self, row: int) -> int:
        kind, file, _, left, right = self.rows[row]
        if kind is Kind.LINE or kind is Kind.HUNK:
            return right if left == NONE else left
        return self.patch.files[file].begin

    def line_at(self, row: int) -> int:
        """Return the first line of the patch in a row."""
        return self._begin_of(row) if row < len(self.rows) else 0

    def position_at(self, row: int) -> tuple[str, int] | None:
        """Return the file of a row, and the line number in it, from 1."""
        if row >= len(self.rows):
            return None
        here = self.rows[row]
        file = self.patch.files[here.file]
        if not file.hunks:
            return file.path, 1
        hunk = file.hunks[max(0, here.hunk)]
        begin = max(self.line_at(row), hunk.begin + 1)
        # A removed line leads to the line after it, otherwise to the one before.
        around = (*range(begin, hunk.end), *range(begin, hunk.begin, -1))
        return file.path, next((self.patch.new[at] for at in around if at < hunk.end and self.patch.new[at]), 1)

    def hunk_text(self, row: int) -> bytes:
        """Return the hunk of a row as in the patch, with its file's header; the whole file for its name."""
        if row >= len(self.rows):
            return b""
        here = self.rows[row]
        file = self.patch.files[here.file]
        lines = self.patch.lines
        if here.hunk == NONE:
            return b"\n".join(lines[file.begin : file.end]) + b"\n"
        hunk = file.hunks[here.hunk]
        return b"\n".join((*lines[file.begin : file.hunks[0].begin], *lines[hunk.begin : hunk.end])) + b"\n"

    def find(self, text: str, start: int, by: int) -> int | None:
        """Return the next line of the patch that contains a text, from `start` in a direction, wrapping around. A
        capital letter makes it case-sensitive.
        """
        lines, count = self.patch.lines, len(self.patch.lines)
        holds = _finder(text)
        for step in range(1, count + 1):
            at = (start + by * step) % count
            if holds(lines[at][1:]) and self._is_content(at):
                return at
        return None

    def hunk_lines(self, path: str, number: int) -> list[bytes] | None:
        """Return the lines of a hunk by its number in its file, from 1; None if there is none."""
        hunks = [hunk for file in self.patch.files if file.path == path for hunk in file.hunks]
        return self.patch.lines[hunks[number - 1].begin + 1 : hunks[number - 1].end] if number <= len(hunks) else None

    def find_hunk(self, path: str, lines: list[bytes]) -> int | None:
        """Return the number of the hunk of a file that has these lines; None if there is none."""
        hunks = [hunk for file in self.patch.files if file.path == path for hunk in file.hunks]
        numbers = (number for number, _ in enumerate(hunks, 1) if self.hunk_lines(path, number) == lines)
        return next(numbers, None)

    def _is_content(self, line: int) -> bool:
        return bool(self.patch.old[line] or self.patch.new[line])


def _finder(text: str) -> Callable[[bytes], bool]:
    """Return a function that checks whether a line contains a text."""
    is_folded = text == text.lower()
    if text.isascii():
        encoded = text.encode()
        return (lambda line: encoded in line.lower()) if is_folded else (lambda line: encoded in line)
    fold: Callable[[str], str] = str.lower if is_folded else str
    return lambda line: text in fold(line.decode("utf-8", "replace"))


def _without_blanks(line: bytes) -> bytes:
    return b"".join(line[1:].split())
