"""The actions on presets; pure."""

from __future__ import annotations

from .model import Action, Place, at
from .needs_part import needs_copyable, needs_own_preset, needs_preset_file

PRESETS = (
    Action("presets", at(Place.DECK, "1"), "presets", "Go to the presets.", footer=1),
    Action(
        "create_preset",
        at(Place.PRESETS, "c"),
        "create",
        "Write a new preset, for this project or for all your projects.",
        footer=6,
        changes=True,
    ),
    Action(
        "edit_preset",
        at(Place.PRESETS, "e"),
        "edit",
        "Edit the file of the highlighted preset, a broken one too.",
        needs_preset_file,
        footer=4,
        changes=True,
    ),
    Action(
        "edit_preset_outside",
        at(Place.PRESETS, "E"),
        "in $EDITOR",
        "Open the file of the highlighted preset in $EDITOR.",
        needs_preset_file,
        changes=True,
    ),
    Action(
        "copy_preset",
        at(Place.PRESETS, "b"),
        "copy",
        "Copy a preset under another name; one that comes with subdeck into the project or for all your projects.",
        needs_copyable,
        footer=5,
        changes=True,
    ),
    Action(
        "delete_preset",
        at(Place.PRESETS, "d"),
        "delete",
        "Delete the file of the highlighted preset, after asking; undo brings it back.",
        needs_own_preset,
        changes=True,
    ),
    Action(
        "save_preset",
        at(Place.EDIT, "ctrl+s"),
        "save",
        "Save the preset, once nothing is wrong with it.",
        do="screen.start",
        footer=1,
        changes=True,
    ),
    Action(
        "edit_outside",
        at(Place.EDIT, "ctrl+e"),
        "in $EDITOR",
        "Go on with the text in $EDITOR.",
        do="screen.edit_outside",
        footer=3,
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
