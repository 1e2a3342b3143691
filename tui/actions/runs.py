"""The actions on runs that are there; pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...core.run.model import RunnerKind
from .model import (
    Action,
    KeyContext,
    at,
    at_a_run,
    needs_active,
    needs_run,
    needs_terminal,
    needs_undoable,
    needs_unseen,
)

if TYPE_CHECKING:
    from .model import ActionContext


def _way_in(context: ActionContext) -> str:
    if context.run and context.run.meta.runner == RunnerKind.TMUX:
        return "attach"
    return "" if context.zoomed and context.place is KeyContext.TRANSCRIPT else "full"


ACTING = (
    Action(
        "attach",
        at(KeyContext.DECK, "a"),
        "attach",
        "Attach to the run's tmux pane; a run without one shows its transcript full screen.",
        needs_terminal,
        footer=4,
        name_here=_way_in,
    ),
    Action(
        "stop",
        at(KeyContext.DECK, "x"),
        "stop",
        "Stop the run, or all marked ones, gracefully; each keeps what it has done.",
        needs_active,
        footer=5,
        changes=True,
    ),
    Action(
        "kill",
        at(KeyContext.DECK, "X"),
        "kill",
        "Kill the run, or all marked ones, and all their processes, after asking.",
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
    Action("undo", at(KeyContext.DECK, "u"), "undo", "Bring back what was deleted last.", needs_undoable, changes=True),
    Action(
        "copy_id",
        at(KeyContext.RUNS, "y"),
        "copy id",
        "Copy the run id, or those of all marked ones, to the clipboard.",
        needs_run,
    ),
    Action("messages", at(KeyContext.DECK, "M"), "messages", "Show all messages since the app was opened."),
)


RUN_LIST = (
    Action(
        "open",
        at(KeyContext.RUNS, "enter"),
        "open",
        "Go to the transcript of the highlighted run; fold or unfold the highlighted group.",
        needs_run,
        footer=6,
    ),
    Action(
        "filter",
        at(KeyContext.RUNS, "/"),
        "filter",
        "Show only some runs: words, status:failed, preset:x, is:unseen, -not; {back} shows all again.",
        footer=9,
    ),
    Action("sort", at(KeyContext.RUNS, "o"), "sort", "Sort the runs by age, cost, tokens, elapsed or preset in turn."),
    Action(
        "mark",
        at(KeyContext.RUNS, "space"),
        "mark",
        "Mark or unmark the run and go one down; actions then apply to the marked runs.",
        needs_run,
        footer=13,
    ),
    Action("mark_all", at(KeyContext.RUNS, "*"), "mark all", "Mark all shown runs, or unmark them."),
    Action("fold", at(KeyContext.RUNS, "left"), "fold", "Fold the group: show it as one row.", needs_run),
    Action("unfold", at(KeyContext.RUNS, "right"), "unfold", "Unfold the group: show each of its runs.", needs_run),
    Action(
        "next_unseen",
        at(KeyContext.DECK, "]"),
        "next ✗",
        "Go to the next run that needs your attention.",
        needs_unseen,
        footer=7,
    ),
    Action(
        "previous_unseen",
        at(KeyContext.DECK, "["),
        "previous ✗",
        "Go to the previous run that needs your attention.",
        needs_unseen,
    ),
)


CLEANING = (
    Action(
        "clean_up",
        at(KeyContext.DECK, "D"),
        "clean up",
        "Delete old runs by age, number or size; shows what that frees, and asks.",
        changes=True,
    ),
    Action(
        "clean",
        at(KeyContext.CLEAN_UP, "ctrl+s"),
        "clean up",
        "Delete what the rules select, after asking.",
        do="screen.start",
        footer=1,
        changes=True,
    ),
)
