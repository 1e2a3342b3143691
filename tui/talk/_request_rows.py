"""The rows of a request's block: exactly the request, and nothing more; pure."""

from __future__ import annotations

from collections.abc import Iterator
from enum import StrEnum
from typing import NamedTuple

from ...core.paths import at_home
from ...core.run.edits import diff_to_decide
from ...core.run.events import Field, Request
from ...core.run.model import RequestKind
from ...core.run.requests import place_in_worktree, run_rule_line, shown_path, warnings
from ...core.text.visible import visible, visible_line, visible_name
from ..feed.lines import numbered
from ..text.cells import cells, wrap_line

MOST_ROWS = 20_000
"""Maximum number of rows; for a longer request the first row says how much is missing."""
TITLE = 80
"""Characters of a request's title in the border."""
AROUND_TITLE = 40
"""Cells of the border around it, with the times and the number of further requests."""
LEAST_TITLE = 30
"""Minimum cells of a title in the border: subdeck's own titles are shorter."""
CONTINUED = "↪ "
"""Before each further row of a line, which would otherwise look like a separate line."""


class Tone(StrEnum):
    """The colour of a row; the value is the end of its component class."""

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
    """Lay out a request at a width; `cwd` is the run's working directory."""
    rows: list[BlockRow] = []
    missing = characters = 0
    for row in _lines(request, cwd, width):
        if len(rows) >= MOST_ROWS:
            missing += 1
            characters += len(row.text)
            continue
        width = max(10, width)
        first, *more = wrap_line(row.text, width)
        if more and row.tone is not Tone.MUTED:
            rest = row.text[len(first) :].lstrip(" ")
            more = [CONTINUED + part for part in wrap_line(rest, width - len(CONTINUED))]
        rows += [BlockRow(text, row.tone) for text in (first, *more)]
    if missing:
        omission = (
            f"{missing:,} lines ({characters:,} characters) are not shown. subdeck requests shows the whole request"
        )
        return [BlockRow(f"! {omission}", Tone.WARNING), *rows, BlockRow(f"… {omission}", Tone.WARNING)]
    return rows


def _lines(request: Request, cwd: str, width: int) -> Iterator[BlockRow]:
    for warning in warnings(request):
        yield BlockRow(f"! {warning}", Tone.WARNING)
    if cells(title := visible_line(request.title)) > min(TITLE, max(LEAST_TITLE, width - AROUND_TITLE)):
        yield BlockRow(title)
    if request.command:
        yield from _several(request.command, Tone.COMMAND)
    for path in request.paths:
        yield BlockRow(shown_path(path, cwd), Tone.COMMAND)
    if request.kind is RequestKind.PERMISSION:
        directory = place_in_worktree(request, cwd) or at_home(visible_name(request.cwd or cwd))
        yield BlockRow(f"in {directory}", Tone.MUTED)
    if request.text.strip():
        yield from _several(request.text, Tone.TEXT)
    if request.diff:
        yield from _diff(request, cwd)
    for number, choice in enumerate(request.choices, 1):
        yield BlockRow(f"{number}  {visible_name(choice)}", Tone.COMMAND)
    for field in request.fields:
        yield BlockRow(field_line(field), Tone.COMMAND)
    yield from _rules(request)


def _rules(request: Request) -> Iterator[BlockRow]:
    """Yield why it is asked and the effect of allowing it: they matter less than the request itself."""
    if request.kind is not RequestKind.PERMISSION:
        yield BlockRow("timers paused until you reply", Tone.MUTED)
        return
    if request.run_rule:
        yield BlockRow(f"allowing it for this run adds the rule {run_rule_line(request)}", Tone.MUTED)
    rule = f"matched rule {visible_line(request.rule)}" if request.rule else "requested by the agent"
    yield BlockRow(f"{rule} · not run yet · timers paused", Tone.MUTED)


def _several(text: str, tone: Tone) -> Iterator[BlockRow]:
    return (BlockRow(line, tone) for line in visible(text).strip("\n").split("\n"))


def _diff(request: Request, cwd: str) -> Iterator[BlockRow]:
    is_named = len(request.paths) == 1
    for line in numbered(diff_to_decide(request.diff)):
        text = line.text
        if not line.sign:
            if is_named and text == visible_name(request.paths[0]):
                continue
            text = shown_path(text, cwd)
        yield BlockRow(line.margin + text, _TONES.get(line.sign, Tone.TEXT if line.sign else Tone.MUTED))


def field_line(field: Field) -> str:
    """Return `title*: description (one / two)`."""
    name = (visible_line(field.title) or visible_name(field.name)) + "*" * field.required
    description = visible_line(field.text)
    choices = f"({' / '.join(visible_name(choice) for choice in field.choices)})" if field.choices else ""
    return " ".join(filter(None, (f"{name}:" if description else name, description, choices)))
