"""The actions on runs that are there; pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .model import Action, Place, at, at_a_run
from .needs_part import TMUX, needs_active, needs_run, needs_terminal, needs_undoable

if TYPE_CHECKING:
    from .model import Situation


def _way_in(situation: Situation) -> str:
    if situation.run and situation.run.meta.runner == TMUX:
        return "attach"
    return "" if situation.zoomed and situation.place is Place.TRANSCRIPT else "full"


ACTING = (
    Action(
        "attach",
        at(Place.DECK, "a"),
        "attach",
        "Go into the tmux pane of the run; a run without one opens its transcript in full.",
        needs_terminal,
        footer=4,
        name_here=_way_in,
    ),
    Action(
        "stop",
        at(Place.DECK, "x"),
        "stop",
        "Stop the run, or all marked ones, softly; each keeps what it has.",
        needs_active,
        footer=5,
        changes=True,
    ),
    Action(
        "kill",
        at(Place.DECK, "X"),
        "kill",
        "Kill the run, or all marked ones, with all processes, after asking.",
        needs_active,
        changes=True,
    ),
    Action(
        "delete",
        at_a_run("d"),
        "delete",
        "Delete the run, or all marked ones, with all files, after asking; undo brings them back.",
        needs_run,
        changes=True,
    ),
    Action("undo", at(Place.DECK, "u"), "undo", "Bring back what was deleted last.", needs_undoable, changes=True),
    Action(
        "copy_id",
        at(Place.RUNS, "y"),
        "copy id",
        "Copy the run id, or those of all marked ones, to the clipboard.",
        needs_run,
    ),
    Action("messages", at(Place.DECK, "M"), "messages", "Show all messages since the app was opened."),
)
