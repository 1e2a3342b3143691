"""The actions on presets; pure."""

from __future__ import annotations

from .model import Action, Place, at
from .needs import needs_bundled

PRESETS = (
    Action("presets", at(Place.DECK, "1"), "presets", "Go to the presets.", footer=1),
    Action(
        "copy_preset",
        at(Place.PRESETS, "b"),
        "copy",
        "Copy a preset that comes with subdeck into the project, or for all your projects.",
        needs_bundled,
        footer=3,
        changes=True,
    ),
    Action(
        "write_copy",
        at(Place.COPY, "ctrl+s"),
        "copy",
        "Write the copy.",
        do="screen.start",
        footer=1,
        changes=True,
    ),
)
