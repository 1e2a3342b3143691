"""What the list says of a preset or a broken file: the columns of its row, and the facts below the rows; pure."""

from __future__ import annotations

from collections.abc import Sequence

from ...core.presets.file import Preset, PresetProblem
from ...core.text.plain import one_line
from ..text.cells import fit, wrap

BADGE_WIDTH = 8
WIDE = 56
"""From this many cells on a row has model and tools too."""
ROOMY = 100
"""From this many on, the description."""
MARGIN = 3
"""Cells beside the facts below the rows."""
NAME_WIDTH = 28
"""At most, where there are columns beside it."""

MUTED, WARNED, BROKEN = "row-list--muted", "row-list--aborted", "row-list--failed"

Cells = list[tuple[str, str]]
"""Texts, each with the component class that colours it."""


def summary(found: Preset | PresetProblem) -> str:
    """Return what is worth knowing where there is a single line."""
    if isinstance(found, PresetProblem):
        return _reason(found)
    model = found.model or "no model"
    return " · ".join(filter(None, (*found.warnings, found.description, model, _tools(found))))


def fact_lines(found: Preset | PresetProblem, width: int, warnings: Sequence[str]) -> Cells:
    """Return in full, a line each, what the columns of its row leave out; `warnings` are about a run of it here."""
    if isinstance(found, PresetProblem):
        return [(row, BROKEN) for row in wrap(f"✗ {one_line(_reason(found))}", width - MARGIN)]
    columns = () if width >= WIDE else (f"model: {found.model or 'none'}", f"tools: {_tools(found)}")
    texts = [
        *((f"! {warning}", WARNED) for warning in dict.fromkeys((*found.warnings, *warnings))),
        (found.description, ""),
        *((text, MUTED) for text in columns),
    ]
    return [(row, colour) for text, colour in texts if text for row in wrap(one_line(text), width - MARGIN)]


def row_cells(found: Preset | PresetProblem, width: int, longest: int) -> Cells:
    """Return the cells of a row; `longest` is the length of the longest name in the list."""
    badge = (fit(str(found.source), BADGE_WIDTH, right=True), MUTED)
    room = width - BADGE_WIDTH - 1
    name, colour = one_line(found.name, 200), BROKEN
    if isinstance(found, Preset):
        colour = WARNED if found.warnings else ""
    mark = ("!" if colour else " ", colour)
    if room < WIDE - BADGE_WIDTH:
        return [mark, (fit(name, room), colour), badge]
    name_width = max(8, min(longest + 1, NAME_WIDTH, room // 3))
    cells = [mark, (fit(name, name_width), colour)]
    rest = room - name_width
    if isinstance(found, PresetProblem):
        return [*cells, (" " + fit(one_line(_reason(found), 300), rest - 1), BROKEN), badge]
    texts = [one_line(found.model or "no model", 200), one_line(_tools(found), 300)]
    widths = [rest // 2, rest - rest // 2]
    if room >= ROOMY - BADGE_WIDTH:
        texts.append(one_line(found.description, 300))
        widths = [rest // 4, rest // 4, rest - 2 * (rest // 4)]
    columns = [(" " + fit(text, size - 1), MUTED) for text, size in zip(texts, widths, strict=True)]
    return [*cells, *columns, badge]


def _tools(preset: Preset) -> str:
    """Return the tools as written, on one line."""
    if preset.denied_tools:
        return "all but " + ", ".join(preset.denied_tools)
    return "the agent's own" if preset.tools is None else ", ".join(preset.tools) or "none"


def _reason(problem: PresetProblem) -> str:
    """Return why a file cannot be used, with its line, and what to do."""
    return problem.message if problem.line is None else f"line {problem.line}: {problem.message}"
