"""Going on with a run by hand: its agent's own program, in a window of the tmux around the app, or in its terminal."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from ...core.errors import reason
from ..terminal.handover import NO_TERMINAL, hand_over
from .base import Commands, name_of

if TYPE_CHECKING:
    from ...core.run.snapshot import RunSnapshot
    from ..deck.screen import MainScreen

TMUX_SECONDS = 5.0
"""How long tmux may take to open a window."""
_OURS = ("HOME", "PATH")
_OURS_BEGIN = ("XDG_", "SUBDECK_", "LC_", "LANG")
"""Variables by which what runs in the window knows this user's files; a window gets those of its server. No key is
among them."""


class TakeOverCommands(Commands):
    def __init__(self, deck: MainScreen) -> None:
        super().__init__(deck)
        self._is_explained = False
        """Whether the operator has seen what it means."""

    async def take_over(self, run: RunSnapshot) -> None:
        """Open the agent's program on the conversation of a run; what would fail is found out before."""
        if not self._is_explained:
            if not await self._confirmed(f"Open {name_of(run)} in the agent?", _note(run), "Open", harmless=True):
                return
            self._is_explained = True
        argv = await self._bridge.call(self._bridge.engine.take_over, run.run_id)
        if os.environ.get("TMUX"):
            name = f"by-hand-{run.meta.short_id}"
            problem = await self._bridge.call(_open_window, window_command(name, argv, os.environ))
        else:
            problem = hand_over(self.app, argv)
        if problem == NO_TERMINAL:
            problem = f"{NO_TERMINAL} In a shell: subdeck take-over {run.meta.short_id}"
        if problem:
            self._say(problem, error=True)


def _note(run: RunSnapshot) -> str:
    begins = "A new run continues its conversation" if run.has_ended else "Its current turn ends"
    return (
        f"{begins}. The agent's own UI opens with the same model, tools and directory.\n"
        "Exit the agent to return the run. Then choose whether it finishes or continues."
    )


def window_command(name: str, argv: Sequence[str], environment: Mapping[str, str]) -> tuple[str, ...]:
    """Return what opens a window beside that of the app; as argv, for tmux runs `#(…)` in a line for the shell."""
    socket = environment["TMUX"].partition(",")[0]
    ours = {key: value for key, value in environment.items() if key in _OURS or key.startswith(_OURS_BEGIN)}
    given = [f"{key}={value}" for key, value in ours.items()]
    tmux = (shutil.which("tmux") or "tmux", "-S", socket, "new-window", "-n", name)
    return (*tmux, "--", "env", *given, *argv)


def _open_window(argv: Sequence[str]) -> str:
    """Return what went wrong, or an empty string."""
    try:
        done = subprocess.run(
            argv, check=False, capture_output=True, text=True, timeout=TMUX_SECONDS, stdin=subprocess.DEVNULL
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return f"tmux failed: {reason(error)}"
    return f"tmux could not open a window: {done.stderr.strip()}" if done.returncode else ""
