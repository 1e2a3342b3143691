"""The operator's own commands as actions: their keys, names and sentences come from the settings; pure."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING

from ...core.text.plain import one_line
from .model import Action, ActionContext, KeyContext, needs_own

if TYPE_CHECKING:
    from ...core.config.settings import OwnCommand

PREFIX = "own_"
"""Begins the ids of these actions."""

PLACES = {
    "deck": KeyContext.DECK,
    "presets": KeyContext.PRESETS,
    "runs": KeyContext.RUNS,
    "transcript": KeyContext.TRANSCRIPT,
}
RUN_ID, CWD, ANSWER_FILE, PATCH_FILE = "{run_id}", "{cwd}", "{answer_file}", "{patch_file}"
PLACEHOLDERS = (RUN_ID, CWD, ANSWER_FILE, PATCH_FILE)

_NAME, _HELP = 20, 200
"""Characters of a title in the footer, and of what the help says."""
_RANK = 15
"""In the footer, after ours."""


def own_actions(commands: Mapping[str, OwnCommand]) -> tuple[Action, ...]:
    """Return an action for each command; their keys are as they were written."""
    return tuple(_action(name, command) for name, command in commands.items())


def is_about_run(command: OwnCommand) -> bool:
    """Return whether a command is told about the highlighted run."""
    return any(mark in word for word in command.argv for mark in PLACEHOLDERS)


def _action(name: str, command: OwnCommand) -> Action:
    title = one_line(command.title, _HELP) or name
    shown = one_line(" ".join(command.argv), _HELP)
    return Action(
        f"{PREFIX}{name}",
        tuple((PLACES[command.where], key.strip()) for key in command.key.split(",")),
        one_line(title, _NAME),
        f"{title} (your command: {shown})",
        needs=partial(_needs, command),
        footer=_RANK,
        changes=True,
    )


def _needs(command: OwnCommand, context: ActionContext) -> str:
    if command.terminal and not context.can_suspend:
        return "No terminal is available for another program."
    return needs_own(context) if is_about_run(command) else ""
