"""What a row of the presets leaves unsaid, in lines; pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ...core.text.plain import one_line
from ..text.wrap import wrap

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
