"""The actions on the transcript; pure."""

from __future__ import annotations

from .model import Action, Place, at
from .needs import needs_run

TRANSCRIPT = (
    Action("follow", at(Place.DECK, "f"), "follow", "Follow the end of the transcript, or let go of it.", needs_run),
    Action("wrap", at(Place.DECK, "w"), "wrap", "Wrap long lines of the transcript, or cut them."),
    Action("left", at(Place.TRANSCRIPT, "left"), "left", "Scroll left in long lines.", do="move('left')"),
    Action("right", at(Place.TRANSCRIPT, "right"), "right", "Scroll right in long lines.", do="move('right')"),
)
