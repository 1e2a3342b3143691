"""What the block of a request says, row by row: exactly what is asked, and no more than that; pure."""

from __future__ import annotations

from collections.abc import Iterator
from enum import StrEnum
from typing import NamedTuple

from ...core.run.events import CUT, Field, Request
from ...core.run.model import RequestKind
from ...core.run.requests import place_in_worktree, run_rule_line, shown_path
from ...core.text.plain import one_line, plain
from ..feed.lines import diff_body
from ..text.cells import wrap_line
from ..text.format import short_path

MOST_ROWS = 5_000
"""Rows that are laid out; of what is longer the transcript has the rest."""
LONGEST = 300_000
"""Characters of one text that are laid out."""
PATH_WIDTH = 100


class Tone(StrEnum):
    """How a row is coloured; the value is the end of its component class."""

    TEXT = "text"
    COMMAND = "command"
    MUTED = "muted"
    ADDED = "added"
    REMOVED = "removed"
    WARNING = "warning"


class BlockRow(NamedTuple):
    text: str
    tone: Tone = Tone.TEXT


_TONES = {"+": Tone.ADDED, "-": Tone.REMOVED}


def request_rows(request: Request, cwd: str, width: int) -> list[BlockRow]:
    """Lay out a request at a width; `cwd` is where the run works."""
    rows: list[BlockRow] = []
    for row in _lines(request, cwd):
        indent = len(row.text) - len(row.text.lstrip(" ")) if row.tone is Tone.MUTED else 0
        first, *more = wrap_line(row.text[:LONGEST], max(10, width))
        rows += [BlockRow(text, row.tone) for text in (first, *(" " * indent + part for part in more))]
        if len(rows) > MOST_ROWS:
            left = BlockRow("… there is more of it than can be shown here: the transcript has it all", Tone.WARNING)
            return [*rows[:MOST_ROWS], left]
    return rows


def _lines(request: Request, cwd: str) -> Iterator[BlockRow]:
    if request.text.strip():
        yield from _several(request.text, Tone.TEXT)
    if request.command:
        yield from _several(request.command, Tone.COMMAND)
    for path in request.paths:
        yield BlockRow(shown_path(path, cwd), Tone.COMMAND)
    for number, choice in enumerate(request.choices, 1):
        yield BlockRow(f"{number}  {one_line(choice)}", Tone.COMMAND)
    for field in request.fields:
        yield BlockRow(field_line(field), Tone.COMMAND)
    if any(CUT in text for text in (request.text, request.command, request.diff, *request.paths)):
        yield BlockRow("! it is longer than what is kept of it: this is its beginning", Tone.WARNING)
    if request.kind is RequestKind.PERMISSION:
        place = place_in_worktree(request, cwd) or short_path(request.cwd or cwd, PATH_WIDTH)
        yield BlockRow(f"in {place}", Tone.MUTED)
        rule = f"by the rule {one_line(request.rule, 200)}" if request.rule else "the agent asks by itself"
        yield BlockRow(f"{rule}; nothing of it has run, and limits stand still", Tone.MUTED)
        if request.run_rule:
            yield BlockRow(f"to allow it in this run adds the rule {run_rule_line(request)}", Tone.MUTED)
    else:
        yield BlockRow("limits stand still until you reply", Tone.MUTED)
    if request.diff:  # the longest comes last
        yield from _diff(request, cwd)


def _several(text: str, tone: Tone) -> Iterator[BlockRow]:
    return (BlockRow(line, tone) for line in plain(text[:LONGEST]).strip("\n").split("\n"))


def _diff(request: Request, cwd: str) -> Iterator[BlockRow]:
    is_named = len(request.paths) == 1
    for line in diff_body(request.diff):
        text = line.text
        if not line.sign:
            if is_named and text == one_line(request.paths[0]):
                continue
            text = shown_path(text, cwd)
        yield BlockRow(line.margin + text, _TONES.get(line.sign, Tone.TEXT if line.sign else Tone.MUTED))


def field_line(field: Field) -> str:
    """Return `title*: what it is for (one / two)`."""
    name = (one_line(field.title) or one_line(field.name)) + "*" * field.required
    about = one_line(field.text)
    choices = f"({' / '.join(one_line(choice) for choice in field.choices)})" if field.choices else ""
    return " ".join(filter(None, (f"{name}:" if about else name, about, choices)))
