"""The actions on the list of runs itself; pure."""

from __future__ import annotations

from .model import Action, Place, at
from .needs import needs_run, needs_unseen

RUN_LIST = (
    Action(
        "open",
        at(Place.RUNS, "enter"),
        "open",
        "Go to the transcript of the highlighted run.",
        needs_run,
        footer=6,
    ),
    Action("next_unseen", at(Place.DECK, "]"), "next ✗", "Go to the next run that needs you.", needs_unseen, footer=7),
    Action(
        "previous_unseen", at(Place.DECK, "["), "previous ✗", "Go to the previous run that needs you.", needs_unseen
    ),
)
