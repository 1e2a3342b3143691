"""The texts of the list: a row for a preset or a broken file, facts below the rows, first steps; pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ...core.presets.file import Preset, PresetProblem
from ...core.text.plain import one_line
from ..text.cells import fit, wrap
from ..text.format import short_path

if TYPE_CHECKING:
    from ...core.doctor import Check
    from ...core.presets.catalog import PresetCatalog
    from ..keys.command import Action

BADGE_WIDTH = 8
WIDE = 56
"""Cells from which a row also has model and tools, and the directories of presets are one sentence."""
ROOMY = 100
"""Cells from which it also has the description."""
MARGIN = 3
"""Cells beside the facts below the rows."""
NAME_WIDTH = 28
"""Maximum, if there are columns beside it."""

MUTED, WARNED, BROKEN = "row-list--muted", "row-list--aborted", "row-list--failed"

Cells = list[tuple[str, str]]
"""Texts, each with the component class of its colour."""


def summary(entry: Preset | PresetProblem) -> str:
    """Return the most important facts in a single line."""
    if isinstance(entry, PresetProblem):
        return _reason(entry)
    model = entry.model or "no model"
    return " · ".join(filter(None, (*entry.warnings, entry.description, model, entry.tools_words)))


def fact_lines(entry: Preset | PresetProblem, width: int, warnings: Sequence[str]) -> Cells:
    """Return the facts omitted from its row, a line each; `warnings` are about a run of it here."""
    if isinstance(entry, PresetProblem):
        return [(row, BROKEN) for row in wrap(f"✗ {one_line(_reason(entry))}", width - MARGIN)]
    columns = () if width >= WIDE else (f"model: {entry.model or 'none'}", f"tools: {entry.tools_words}")
    texts = [
        *((f"! {warning}", WARNED) for warning in dict.fromkeys((*entry.warnings, *warnings))),
        (entry.description, ""),
        *((text, MUTED) for text in columns),
        (f"agent file, {entry.form} format" if entry.form else "", MUTED),
    ]
    return [(row, colour) for text, colour in texts if text for row in wrap(one_line(text), width - MARGIN)]


def row_cells(entry: Preset | PresetProblem, width: int, longest: int) -> Cells:
    """Return the cells of a row; `longest` is the length of the longest name in the list."""
    badge = (fit(str(entry.source), BADGE_WIDTH, right=True), MUTED)
    room = width - BADGE_WIDTH - 1
    name, colour = one_line(entry.name, 200), BROKEN
    if isinstance(entry, Preset):
        colour = WARNED if entry.warnings else ""
    mark = ("!" if colour else " ", colour)
    if room < WIDE - BADGE_WIDTH:
        return [mark, (fit(name, room), colour), badge]
    name_width = max(8, min(longest + 1, NAME_WIDTH, room // 3))
    cells = [mark, (fit(name, name_width), colour)]
    columns_room = room - name_width
    if isinstance(entry, PresetProblem):
        return [*cells, (" " + fit(one_line(_reason(entry), 300), columns_room - 1), BROKEN), badge]
    texts = [one_line(entry.model or "no model", 200), one_line(entry.tools_words, 300)]
    widths = [columns_room // 2, columns_room - columns_room // 2]
    if room >= ROOMY - BADGE_WIDTH:
        texts.append(one_line(entry.description, 300))
        widths = [columns_room // 4, columns_room // 4, columns_room - 2 * (columns_room // 4)]
    columns = [(" " + fit(text, size - 1), MUTED) for text, size in zip(texts, widths, strict=True)]
    return [*cells, *columns, badge]


def _reason(problem: PresetProblem) -> str:
    """Return why a file cannot be used, with its line, and how to fix it."""
    return problem.message if problem.line is None else f"line {problem.line}: {problem.message}"


# --- no presets yet ---------------------------------------------------------------------------------------------------

HINTS = (
    ("launch", "run a task"),
    ("init_presets", "starter presets"),
    ("create_preset", "new preset"),
    ("copy_preset", "copy Explore"),
)


def first_steps(
    actions: Sequence[Action], catalog: PresetCatalog, missing: Sequence[Check], *, width: int, height: int
) -> list[str]:
    """Return the first steps without presets; `missing` are programs that have to be installed.

    With little room, omit blank lines, and name only the missing programs.
    """
    from ..keys.help import hint_lines
    from ..keys.keymap import key_of

    width = max(10, width)
    blocks = [["No presets yet."], hint_lines(actions, HINTS, width), _directory_lines(catalog, width)]
    if missing:
        room = height - sum(map(len, blocks))
        doctor = key_of("doctor", actions)
        texts = [f"! {check.name} is missing: {check.fix}   ({doctor} shows details)" for check in missing]
        lines = [row for line in texts for row in wrap(one_line(line), width)]
        names = " and ".join(check.name for check in missing)
        fits = len(lines) <= room - (0 if width >= WIDE else len(blocks))
        blocks.append(lines if fits else wrap(f"{doctor}  {names} missing", width))
    blank = [""] if sum(map(len, blocks)) + len(blocks) - 1 <= height else []
    return [line for number, block in enumerate(blocks) for line in ([*blank, *block] if number else block)]


def _directory_lines(catalog: PresetCatalog, width: int) -> list[str]:
    directories = catalog.directories
    if width < WIDE:
        return [
            *wrap(f"Searched for {catalog.patterns} in", width),
            *(f"  {short_path(path, width - 2)}" for path in directories),
        ]
    named = " or ".join(short_path(path, width // 2) for path in directories)
    return wrap(f"Presets are markdown files in {named}.", width)
