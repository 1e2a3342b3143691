"""The action that looks at what is missing on this machine; pure."""

from __future__ import annotations

from .model import Action, Place, at

DOCTOR = (
    Action("doctor", at(Place.DECK, "!"), "doctor", "Look at what is missing here, and at the command that mends it."),
)
