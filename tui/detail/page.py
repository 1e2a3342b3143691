"""The text of one tab: rows that fit the width, made in a thread; pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from textual.strip import Strip

from ...core.text.plain import plain
from ..text.wrap import wrap

Part = tuple[str, str]
"""A text and the name of its style: `muted`, `strong`, `warning`, or empty."""
Row = Strip | tuple[Part, ...]


class Tab(StrEnum):
    TRANSCRIPT = "transcript"
    ANSWER = "answer"
    PROMPT = "prompt"
    FACTS = "facts"
    USAGE = "usage"
    FILES = "files"
    EVENTS = "events"


@dataclass(frozen=True, slots=True)
class Page:
    rows: Sequence[Row] = ()
    follows: bool = False
    """Whether its end is what matters, as of a file that grows."""
    copy: str = ""
    """What copying takes."""
    path: str = ""
    """The file that opening shows."""
    more: bool = False
    """Whether it is not read to its end yet."""
    files: tuple[FileRow, ...] = field(default=())


@dataclass(frozen=True, slots=True)
class FileRow:
    name: str
    path: str
    size: int
    modified: float
    """Seconds since the epoch."""


def text_rows(text: str, width: int, style: str = "") -> list[Row]:
    """Wrap foreign text."""
    return [((row, style),) for row in wrap(plain(text).rstrip("\n"), max(1, width))]


def heading(title: str, remark: str = "") -> Row:
    return ((title, "strong"), (f"  {remark}" if remark else "", "muted"))


def joined(blocks: Iterable[Sequence[Row]]) -> list[Row]:
    """Put blocks below each other with a blank row between them."""
    rows: list[Row] = []
    for block in blocks:
        rows += [*([()] if rows else []), *block]
    return rows


def plain_text(rows: Iterable[Row]) -> str:
    """Return the rows as text, for copying."""
    return "\n".join(row.text if isinstance(row, Strip) else "".join(text for text, _ in row) for row in rows)
