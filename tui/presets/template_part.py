"""What a copy of a preset begins with, and how it is written; each function here reads or writes files."""

from __future__ import annotations

from collections.abc import Container
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ...core.run.model import PresetSource
from .draft import PROJECT, USER, place_of

if TYPE_CHECKING:
    from ...core.engine import Engine
    from ...core.presets.catalog import Preset


@dataclass(frozen=True, slots=True)
class Template:
    """What comes along."""

    name: str
    description: str
    source: PresetSource
    model: str
    proposed: str
    """The name of the copy."""
    own: Preset | None = None
    """The preset that is copied; None for one that comes with subdeck, whose copy keeps its name."""
    needs_model: bool = False
    """Its own is a role that is not set."""
    models: tuple[str, ...] = ()
    """Those that are known, where the copy may get another."""

    @property
    def where(self) -> str:
        """What the copy is for unless another place is chosen."""
        return USER if self.source is PresetSource.GLOBAL else PROJECT


def read_template(engine: Engine, preset: Preset | None, taken: Container[str]) -> Template:
    """Answer a preset as a template, the first bundled one where there is none; `taken` are names in use."""
    from ...core.launch.model_choices import model_choices
    from ...core.presets.preset_copy import bundled_presets, free_name, needs_model

    if preset is not None and preset.source is not PresetSource.BUNDLED:
        proposed = free_name(preset.name, taken)
        return Template(preset.name, preset.description, preset.source, preset.model or "", proposed, preset)
    found = bundled_presets()
    bundled = next((one for one in found if preset is not None and one.name == preset.name), found[0])
    return Template(
        bundled.name,
        bundled.description,
        bundled.source,
        bundled.model or "",
        bundled.name,
        needs_model=needs_model(bundled, engine.settings),
        models=model_choices(bundled.agent, engine.settings),
    )


def write_copy(engine: Engine, template: Template, name: str, where: str, model: str) -> str:
    """Write the copy and answer its path; blank `model` keeps the preset's own. Raises SubdeckError."""
    from ...core.presets.preset_copy import copy_bundled, duplicate

    directory = place_of(engine, where)
    if template.own is not None:
        return duplicate(template.own, name, directory)
    return copy_bundled(template.name, directory, engine.settings, model.strip() or None)
