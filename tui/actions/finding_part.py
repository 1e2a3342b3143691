"""The actions that find something in the transcript and take it out; pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .model import Action, Place, at
from .needs_part import NO_RUN, needs_run

if TYPE_CHECKING:
    from .model import Situation


def _needs_paging(situation: Situation) -> str:
    return needs_run(situation) or ("" if situation.can_suspend else "There is no terminal to lend to a pager.")


def _needs_shown_run(situation: Situation) -> str:
    return "" if situation.run else f"{NO_RUN} There is nothing to search."


FINDING = (
    Action(
        "search",
        at(Place.TRANSCRIPT, "/"),
        "search",
        "Search the transcript, folded text included; a capital letter makes case count.",
        _needs_shown_run,
        footer=5,
    ),
    Action("next_match", at(Place.SEARCH, "n"), "next", "Go to the next match.", footer=1),
    Action("previous_match", at(Place.SEARCH, "N"), "previous", "Go to the previous match.", footer=1),
    Action("end_search", at(Place.SEARCH, "escape"), "end", "End the search and take its marks away.", footer=1),
    Action(
        "keep", at(Place.FILTER, "enter"), "keep", "Keep it, and give the keys back to the pane.", do="keep", footer=1
    ),
    Action("drop", at(Place.FILTER, "escape"), "end", "Take it back: all is as before.", do="drop", footer=2),
    Action("next_error", at(Place.TRANSCRIPT, "e"), "next error", "Go to the next error in the transcript.", needs_run),
    Action(
        "previous_error",
        at(Place.TRANSCRIPT, "E"),
        "previous error",
        "Go to the previous error in the transcript.",
        needs_run,
    ),
    Action(
        "go_to_time",
        at(Place.TRANSCRIPT, "@"),
        "go to time",
        "Go to a time in the transcript: 20:12, -5m from the end, +90s from the start, 50%.",
        needs_run,
    ),
    Action("copy_entry", at(Place.TRANSCRIPT, "y"), "copy", "Copy the whole text under the cursor.", needs_run),
    Action("copy_answer", at(Place.DECK, "Y"), "copy answer", "Copy the answer of the run.", needs_run),
    Action(
        "page_transcript",
        at(Place.DECK, "v"),
        "pager",
        "Open the transcript in $PAGER, all of it unfolded.",
        _needs_paging,
    ),
    Action(
        "save_run",
        at(Place.DECK, "S"),
        "save",
        "Save the run as a markdown file, after asking where.",
        needs_run,
        changes=True,
    ),
)
