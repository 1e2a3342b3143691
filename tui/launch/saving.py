"""Make a preset of what an ad hoc run was asked for; looks at files."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...core.errors import PresetError
from ...core.text.plain import one_line
from ..presets.draft import place_of
from .values import Filled, tool_names

if TYPE_CHECKING:
    from ...core.engine import Engine

PLACE = "save"
"""What an error calls the fields of the preset to be saved."""


def refuse_name(engine: Engine, filled: Filled) -> None:
    """Raise PresetError for a preset that cannot be saved under its name, as far as that is told by the files."""
    from ...core.presets.preset_tiers import tiers

    save_as = filled.save_as
    if save_as is None:
        return
    name = save_as.name.strip()
    taken = tiers(name, project=engine.project, cwd=engine.cwd, settings=engine.settings)
    if taken:
        where = "is broken" if not taken[0].usable else str(taken[0].source)
        what = f'there is a preset "{one_line(name, 60)}" already ({where})'
        raise PresetError(what, where=PLACE, hint="choose another name")
    if not save_as.description.strip():
        raise PresetError("the preset needs a description", where=PLACE, hint="say in one sentence what it is for")


def save(engine: Engine, filled: Filled) -> str:
    """Save the preset and answer its path. Raises SubdeckError; never replaces a file."""
    from ...core.presets.write import save_preset

    refuse_name(engine, filled)
    save_as = filled.save_as
    assert save_as is not None
    directory = place_of(engine, save_as.where)
    tools = tool_names(filled.tools)
    try:
        return save_preset(directory, save_as.name, save_as.description, filled.model, tools, filled.prompt)
    except PresetError as error:
        raise PresetError(error.what, where=PLACE, hint=error.hint) from error
