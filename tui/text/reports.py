"""Reports laid out as lines: the costs of runs, the checks of doctor; pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from textual.content import Content

from ...core.run.cost_sheet import HEADINGS, CostSheet, sections, total_row
from ...core.text.plain import one_line
from .cells import fit, wrap

if TYPE_CHECKING:
    from ...core.doctor import Check

STATE_WIDTH = 10
NAME_WIDTH = 12
DETAIL_WIDTH = 70 - STATE_WIDTH - NAME_WIDTH
"""The rest of the dialog's width."""
FIX_WIDTH = 64
COST_WIDTH, COST_NAME_WIDTH = 10, 21
"""Of a figure, and of its name: six columns fit into the dialog."""
COLOURS = {"problem": "$text-error", "warn": "$text-warning", "ok": "$text-success"}
"""By the state of a check, the worst first."""


def cost_lines(sheet: CostSheet) -> list[Content]:
    """Lay out the total, then a part for presets, models and agents."""
    lines = [_cost_line(("", *HEADINGS), "$text-muted"), _cost_line(total_row(sheet), "bold")]
    for title, rows in sections(sheet):
        lines += [Content(""), Content.styled(f"by {title}", "bold $text-muted"), *map(_cost_line, rows)]
    return lines


def _cost_line(row: Sequence[str], style: str = "") -> Content:
    name, *figures = row
    cells = [fit(name, COST_NAME_WIDTH), *(fit(figure, COST_WIDTH, right=True) for figure in figures)]
    return Content.styled("".join(cells), style)


def summary(checks: Sequence[Check]) -> str:
    """Return `1 problem, 2 warnings`, or that there are no problems."""
    counts = ((sum(check.state == state for check in checks), word) for state, word in _COUNTED)
    named = ", ".join(f"{count} {word}{'' if count == 1 else 's'}" for count, word in counts if count)
    return f"{named or 'no problems'}   esc closes"


_COUNTED = (("problem", "problem"), ("warn", "warning"))


def check_lines(check: Check) -> Content:
    """Lay out glyph, word, subject and result; below it the command that fixes it."""
    from ...core.doctor import SYMBOLS

    first, *more = wrap(one_line(check.detail), DETAIL_WIDTH)
    colour = COLOURS[check.state]
    state = f"{SYMBOLS[check.state]} {check.state}".ljust(STATE_WIDTH)
    lines = [Content.assemble((state, colour), (check.name.ljust(NAME_WIDTH), "bold"), first)]
    lines += [Content(" " * (STATE_WIDTH + NAME_WIDTH) + row) for row in more]
    if check.fix:
        mending = wrap(one_line(check.fix), FIX_WIDTH)
        lines += [Content.styled(f"{'    ' if n else '  → '}{row}", colour) for n, row in enumerate(mending)]
    return Content("\n").join(lines)
