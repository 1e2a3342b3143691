"""Hand the terminal to the tmux pane of a run and take it back."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence

from textual.app import App, SuspendNotSupported

ATTACH_NOTE = (
    "The terminal goes to the run's tmux pane; the run does not notice.\n"
    "To come back here press ctrl+b, then d (tmux's detach key, unless your tmux.conf names another)."
)


def hand_over(app: App[str], argv: Sequence[str]) -> str:
    """Give the terminal to a program until it ends; answer what went wrong, or an empty string.

    An exception or an await inside `suspend()` would leave the app without its terminal for good.
    """
    problem = ""
    try:
        with app.suspend():
            try:
                code = subprocess.run(list(argv), check=False).returncode
                problem = f"{argv[0]} ended with exit code {code}" if code else ""
            except (OSError, ValueError) as error:
                problem = f"{argv[0]} could not be started: {error}"
    except SuspendNotSupported:
        return "This terminal cannot be handed over: attach from a shell with `subdeck attach`."
    app.refresh(layout=True)
    return problem
