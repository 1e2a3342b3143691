"""The actions that clean up; pure."""

from __future__ import annotations

from .model import Action, Place, at

CLEANING = (
    Action(
        "clean_up",
        at(Place.DECK, "D"),
        "clean up",
        "Delete old runs by age, number or size; shows what that frees, and asks.",
        changes=True,
    ),
    Action(
        "clean",
        at(Place.CLEAN_UP, "ctrl+s"),
        "clean up",
        "Delete what the rules take, after asking.",
        do="screen.start",
        footer=1,
        changes=True,
    ),
)
