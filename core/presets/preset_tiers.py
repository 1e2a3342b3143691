"""All the files that hold a preset of one name, nearest first: which one counts, and what it hides."""

from __future__ import annotations

from msgspec import Struct

from ..config.settings import Settings
from ..paths import Project
from ..run.model import PresetSource
from .catalog import preset_files, preset_places
from .file import Preset, read_preset


class Tier(Struct, frozen=True):
    rank: int
    """Of its directory, the nearest one 0."""
    source: PresetSource
    path: str
    usable: bool


def tiers(name: str, *, project: Project, cwd: str, settings: Settings) -> tuple[Tier, ...]:
    """Answer the files whose preset has this name, broken ones too, in the order in which they are looked for."""
    found: list[Tier] = []
    for rank, (source, directory) in enumerate(preset_places(project, cwd, settings)):
        try:
            paths = sorted(preset_files(directory))
        except OSError:
            continue
        for path in paths:
            preset = read_preset(path, source)
            if preset is not None and preset.name == name:
                found.append(Tier(rank, source, path, isinstance(preset, Preset)))
    return tuple(found)


def next_after(path: str, name: str, *, project: Project, cwd: str, settings: Settings) -> Tier | None:
    """Answer the preset that counts once this file is gone; None where there is none of its name."""
    others = (tier for tier in tiers(name, project=project, cwd=cwd, settings=settings) if tier.path != path)
    return next((tier for tier in others if tier.usable), None)
