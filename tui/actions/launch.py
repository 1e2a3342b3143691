"""The actions that start runs; pure."""

from __future__ import annotations

from .model import Action, Place, at
from .needs_part import needs_conversation, needs_preset, needs_run, needs_session

LAUNCHING = (
    Action(
        "launch",
        (*at(Place.DECK, "n"), *at(Place.PRESETS, "enter")),
        "launch",
        "Launch the highlighted preset: asks for the task.",
        needs_preset,
        footer=2,
        changes=True,
    ),
    Action(
        "ad_hoc",
        at(Place.DECK, "N"),
        "ad hoc",
        "Run a task without a preset: model, tools and prompt as typed.",
        footer=10,
        changes=True,
    ),
    Action(
        "rerun",
        at(Place.DECK, "r"),
        "rerun",
        "Launch the same again; all marked runs, as a group, after asking.",
        needs_run,
        footer=11,
        changes=True,
    ),
    Action(
        "rerun_edited",
        at(Place.DECK, "R"),
        "rerun with edits",
        "Open the launch dialog with all that the run was asked for.",
        needs_run,
        changes=True,
    ),
    Action(
        "follow_up",
        at(Place.DECK, "s"),
        "follow up",
        "Go on with the conversation of a finished run: same preset and place, another task.",
        needs_session,
        footer=8,
        changes=True,
    ),
    Action(
        "with_context",
        at(Place.DECK, "C"),
        "with context",
        "Launch the highlighted preset with the conversation of the highlighted run as context.",
        needs_conversation,
        footer=9,
        changes=True,
    ),
    Action(
        "start",
        at(Place.LAUNCH, "ctrl+s"),
        "launch",
        "Launch what is filled in.",
        do="screen.start",
        footer=1,
        changes=True,
    ),
    Action(
        "edit_task",
        at(Place.LAUNCH, "ctrl+e"),
        "$EDITOR",
        "Write the task, or the prompt, in $EDITOR.",
        do="screen.edit_task",
        footer=3,
    ),
    Action(
        "load_task",
        at(Place.LAUNCH, "ctrl+o"),
        "file",
        "Load the task from a file.",
        do="screen.load_task",
        footer=4,
    ),
    Action(
        "earlier_tasks",
        at(Place.LAUNCH, "ctrl+r"),
        "earlier",
        "Choose a task from the earlier ones.",
        do="screen.earlier_tasks",
        footer=5,
    ),
)
