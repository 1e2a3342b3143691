"""A row of the presets in columns, as far as there is room; pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ...core.text.plain import one_line
from ..text.cells import fit, wrap

if TYPE_CHECKING:
    from ...core.presets.catalog import Preset, PresetProblem

OWN_TOOLS = "the agent's own"

MUTED, WARNED, BROKEN = "row-list--muted", "row-list--aborted", "row-list--failed"


def tools_cell(preset: Preset) -> str:
    """The tools as written, on one line."""
    if preset.denied_tools:
        return "all but " + ", ".join(preset.denied_tools)
    return OWN_TOOLS if preset.tools is None else ", ".join(preset.tools) or "none"


def note(preset: Preset | None, problem: PresetProblem | None) -> str:
    """What is worth knowing about one of them where there is a single line."""
    if problem:
        return reason(problem)
    if not preset:
        return ""
    model = preset.model or "no model"
    return " · ".join(filter(None, (*preset.warnings, preset.description, model, tools_cell(preset))))


def reason(problem: PresetProblem) -> str:
    """Why a file cannot be used, with its line, and what to do."""
    return problem.message if problem.line is None else f"line {problem.line}: {problem.message}"


def fact_lines(
    preset: Preset | None,
    problem: PresetProblem | None,
    width: int,
    *,
    resolved: Sequence[str] = (),
    in_columns: bool = False,
) -> list[tuple[str, str]]:
    """The same in full, each line with the component class that colours it.

    `resolved` is what was found out about a run of it here; `in_columns` leaves out what its row says already.
    """
    if problem:
        return [(row, BROKEN) for row in wrap(f"✗ {one_line(reason(problem))}", width)]
    if not preset:
        return []
    columns = () if in_columns else (f"model: {preset.model or 'none'}", f"tools: {tools_cell(preset)}")
    said = [
        *((f"! {warning}", WARNED) for warning in dict.fromkeys((*preset.warnings, *resolved))),
        (preset.description, ""),
        *((text, MUTED) for text in columns),
    ]
    return [(row, colour) for text, colour in said if text for row in wrap(one_line(text), width)]


BADGE_WIDTH = 8
WIDE = 56
"""From this many cells on a row has model and tools too."""
ROOMY = 100
"""From this many on, the description."""
NAME_WIDTH = 28
"""At most, where there are columns beside it."""

Cells = list[tuple[str, str]]
"""Texts, each with the component class that colours it."""


def preset_cells(preset: Preset, room: int, colour: str, *, longest: int) -> Cells:
    """Return what fits beside the origin; `longest` is the length of the longest name in the list."""
    if room < WIDE - BADGE_WIDTH:
        return [(fit(one_line(preset.name, 200), room), colour)]
    name = _name_width(room, longest)
    rest = room - name
    texts = [one_line(preset.model or "no model", 200), one_line(tools_cell(preset), 300)]
    widths = [rest // 2, rest - rest // 2]
    if room >= ROOMY - BADGE_WIDTH:
        widths = [rest // 4, rest // 4, rest - 2 * (rest // 4)]
        texts.append(one_line(preset.description, 300))
    cells = [(" " + fit(text, width - 1), MUTED) for text, width in zip(texts, widths, strict=True)]
    return [(fit(one_line(preset.name, 200), name), colour), *cells]


def problem_cells(problem: PresetProblem, room: int, *, longest: int) -> Cells:
    """The same for a file that cannot be used, with its reason in place of model and tools."""
    if room < WIDE - BADGE_WIDTH:
        return [(fit(one_line(problem.name, 200), room), BROKEN)]
    width = _name_width(room, longest)
    why = one_line(reason(problem), 300)
    return [(fit(one_line(problem.name, 200), width), BROKEN), (" " + fit(why, room - width - 1), BROKEN)]


def _name_width(room: int, longest: int) -> int:
    return max(8, min(longest + 1, NAME_WIDTH, room // 3))
