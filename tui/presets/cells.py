"""A row of the presets in columns, as far as there is room; pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...core.text.plain import one_line
from ..text.format import fit
from .facts_part import BROKEN, MUTED, reason, tools_cell

if TYPE_CHECKING:
    from ...core.presets.catalog import Preset, PresetProblem

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
    """Answer what fits beside the origin; `longest` is the length of the longest name in the list."""
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
