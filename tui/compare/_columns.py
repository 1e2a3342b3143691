"""Runs side by side as lines: one column each, as many as fit; pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime
from itertools import islice

from textual.content import Content

from ...core.run.comparison import BEST, ROWS, Side, answer, best, facts, files, is_one_task
from ...core.text import markdown
from ...core.text.markdown import Look
from ...core.text.plain import one_line
from ..text.cells import cells, fit, wrap_line
from ..text.format import short_path

LABEL = 9
"""Cells of the row names."""
GAP = 2
NARROWEST = 32
"""Cells of a column before others fit beside it."""
ANSWER_ROWS = 40
_LOOKS = {
    Look.CODE: "$text-secondary",
    Look.EMPHASIS: "italic",
    Look.FAINT: "$text-muted",
    Look.STRONG: "bold",
    Look.TITLE: "bold underline",
}
_STYLES = {"✓": "$text-success", "✗": "$text-error", "●": "$text-accent", "⊘": "$text-warning"}


def shown_columns(count: int, current: int, width: int) -> range:
    """Return the columns that fit, including the current one."""
    room = min(count, max(1, (width - LABEL) // (NARROWEST + GAP)))
    first = min(max(0, current - room + 1), count - room)
    return range(first, first + room)


def title_of(sides: Sequence[Side]) -> str:
    """`fix the flaky test ×3`, `3 runs with different tasks`"""
    if not is_one_task(sides):
        return f"{len(sides)} runs with different tasks"
    return f"{one_line(sides[0].run.meta.task, 300)} ×{len(sides)}"


def lines(sides: Sequence[Side], current: int, width: int, now: datetime) -> list[Content]:
    """Lay out the runs, and highlight the title of the current one."""
    shown = shown_columns(len(sides), current, width)
    some = [sides[number] for number in shown]
    room = max(1, (width - LABEL) // len(some) - GAP)
    laid_out = [_line("", [_head(number, sides[number], current, room) for number in shown])]
    if not is_one_task(sides):
        laid_out.append(_line("task", [_cell(one_line(side.run.meta.task, 300), room) for side in some]))
    facts_by_number = {number: facts(sides[number], now) for number in shown}
    best_ones = best(sides)
    for row in ROWS:
        ones = best_ones.get(row, frozenset())
        laid_out.append(
            _line(row, [_fact(row, facts_by_number[at][row], sides[at], room, is_best=at in ones) for at in shown])
        )
    laid_out += _block("files", [[Content(row) for row in _files(side, room)] for side in some], room)
    laid_out += _block("answer", [[*islice(_answer(side, room), ANSWER_ROWS)] for side in some], room)
    return laid_out


def _head(number: int, side: Side, current: int, room: int) -> Content:
    text = f" {number + 1} {one_line(side.run.meta.title, 40)} {side.run.meta.short_id} "
    return Content.styled(fit(text, room), "reverse bold" if number == current else "bold")


def _fact(row: str, text: str, side: Side, room: int, *, is_best: bool) -> Content:
    """Return a fact; the best one and a failed check have a colour, and a word or a glyph that says the same."""
    if is_best:
        return Content.styled(fit(f"{text}  {BEST[row]}", room), "bold $text-success")
    if row == "check" and side.run.check and side.run.check.failed:
        return Content.styled(fit(text, room), "bold $text-error")
    return _cell(text, room)


def _cell(text: str, room: int) -> Content:
    """Return a text in `room` cells; the first state glyph in it has its colour."""
    cut = fit(one_line(text, 600), room)
    at = next((index for index, char in enumerate(cut) if char in _STYLES), None)
    if at is None:
        return Content(cut)
    return Content.assemble(cut[:at], (cut[at], _STYLES[cut[at]]), cut[at + 1 :])


def _files(side: Side, room: int) -> list[str]:
    rows: list[str] = []
    for path, counts in files(side):
        path_room = room - cells(counts) - 1 if counts else room
        rows.append(f"{fit(short_path(path, max(1, path_room)), path_room)} {counts}" if counts else fit(path, room))
    return rows


def _answer(side: Side, room: int) -> Iterator[Content]:
    """Yield the rows of an answer, with its markdown."""
    for line in markdown.lines(answer(side)):
        position = 0
        for row in wrap_line(line.text, max(1, room - len(line.prefix))):
            position = line.text.find(row, position)
            shown = markdown.part(line, position, position + len(row))
            position += len(row)
            content = Content(shown.text)
            for start, end, look in shown.spans:
                content = content.stylize(_LOOKS[look], start, end)
            yield Content(line.prefix) + content


def _block(label: str, rows: Sequence[Sequence[Content]], room: int) -> Iterator[Content]:
    """Yield lines of columns with different numbers of rows; none if all are empty."""
    for number in range(max(map(len, rows))):
        parts = [(some[number] if number < len(some) else Content("")) for some in rows]
        parts = [part.truncate(room, ellipsis=True, pad=True) for part in parts]
        yield _line(label if number == 0 else "", parts)


def _line(label: str, parts: Sequence[Content]) -> Content:
    gap = " " * GAP
    spaced = [piece for part in parts for piece in (part, gap)]
    return Content.assemble((fit(label, LABEL), "$text-muted"), *spaced[:-1])
