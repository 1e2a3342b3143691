"""The actions on the list of runs itself; pure."""

from __future__ import annotations

from .model import Action, Place, at
from .needs_part import needs_run, needs_unseen

RUN_LIST = (
    Action(
        "open",
        at(Place.RUNS, "enter"),
        "open",
        "Go to the transcript of the highlighted run; fold or unfold the highlighted group.",
        needs_run,
        footer=6,
    ),
    Action(
        "filter",
        at(Place.RUNS, "/"),
        "filter",
        "Show only some runs: words, status:failed, preset:x, is:unseen, -not; {back} shows all again.",
        footer=9,
    ),
    Action("sort", at(Place.RUNS, "o"), "sort", "Sort the runs by age, cost, tokens, elapsed or preset in turn."),
    Action(
        "mark",
        at(Place.RUNS, "space"),
        "mark",
        "Mark the run, or take its mark off, and go one down; actions are about the marked runs.",
        needs_run,
        footer=13,
    ),
    Action("mark_all", at(Place.RUNS, "*"), "mark all", "Mark all runs that are shown; again: none."),
    Action("fold", at(Place.RUNS, "left"), "fold", "Fold the group: show it as one row.", needs_run),
    Action("unfold", at(Place.RUNS, "right"), "unfold", "Unfold the group: show each of its runs.", needs_run),
    Action("next_unseen", at(Place.DECK, "]"), "next ✗", "Go to the next run that needs you.", needs_unseen, footer=7),
    Action(
        "previous_unseen", at(Place.DECK, "["), "previous ✗", "Go to the previous run that needs you.", needs_unseen
    ),
)
