"""The actions on the transcript; pure."""

from __future__ import annotations

from .model import Action, Place, at
from .needs_part import needs_run

TRANSCRIPT = (
    Action(
        "open_entry",
        at(Place.TRANSCRIPT, "enter", "space"),
        "open",
        "Open what is folded at the cursor, arguments and results of a tool call or thinking; again folds it.",
        needs_run,
        footer=6,
    ),
    Action(
        "open_all",
        at(Place.TRANSCRIPT, "O"),
        "open all",
        "Open all tool calls and thinking; again folds all.",
        needs_run,
    ),
    Action(
        "view",
        at(Place.DECK, "t"),
        "view",
        "Show the transcript readable, as raw events, or what the agent wrote to stderr.",
        needs_run,
    ),
    Action("follow", at(Place.DECK, "f"), "follow", "Follow the end of the transcript, or let go of it.", needs_run),
    Action("wrap", at(Place.DECK, "w"), "wrap", "Wrap long lines of the transcript, or cut them."),
    Action("left", at(Place.TRANSCRIPT, "left"), "left", "Scroll left in long lines.", do="move('left')"),
    Action("right", at(Place.TRANSCRIPT, "right"), "right", "Scroll right in long lines.", do="move('right')"),
)
