"""Attaching to the pane of a run."""

from __future__ import annotations

import subprocess
from typing import TYPE_CHECKING

from ..actions import TMUX, Place
from ..terminal.handover import NO_TERMINAL, hand_over
from .base import Commands, Deck, name_of

if TYPE_CHECKING:
    from ...core.run.model import RunSnapshot
    from ...core.runners.base import WayIn

SWITCH_SECONDS = 5.0
"""How long tmux may take to show another pane."""


class AttachCommands(Commands):
    """Lends the terminal to the run's pane; what would fail is found out before, and the way back is told."""

    def __init__(self, deck: Deck) -> None:
        super().__init__(deck)
        self._explained: tuple[str, ...] = ()
        """The keys that lead back, as they were told last."""
        self.table = {"attach": self._attach_or_zoom}

    def _attach_or_zoom(self) -> None:
        """What is no pane is shown alone, from its end on."""
        if (run := self._deck.run) and run.meta.runner != TMUX:
            self._deck.panes.zoom(Place.TRANSCRIPT)
            self._deck.transcript.follow(True)
        else:
            self._with_run(self._attach, opens=True)

    async def _attach(self, run: RunSnapshot) -> None:
        way_in = await self._bridge.call(self._bridge.engine.way_in, run.run_id)
        if way_in.leave != self._explained:
            if not await self._confirmed(f"Attach to {name_of(run)}", attach_note(way_in), "Attach", harmless=True):
                return
            self._explained = way_in.leave
        if way_in.switches:
            problem = await self._bridge.call(_switch, way_in)
        else:
            problem = hand_over(self._app, way_in.argv)
        if problem == NO_TERMINAL:
            problem = f"{NO_TERMINAL} In a shell: subdeck attach {run.meta.short_id}"
        if problem:
            self._say(problem, error=True)


def attach_note(way_in: WayIn) -> str:
    """Say what attaching does and how one comes back."""
    keys = ", then ".join(way_in.leave)
    if way_in.switches:
        what = "This tmux shows the run's pane instead of the app; app and run go on."
        return f"{what}\nTo come back here press {keys}."
    return f"The terminal goes to the run's tmux pane; the run does not notice.\nTo come back here press {keys}."


def _switch(way_in: WayIn) -> str:
    """Show the pane in the tmux that this app runs in; answer what went wrong, or an empty string."""
    try:
        done = subprocess.run(
            way_in.argv, check=False, capture_output=True, text=True, timeout=SWITCH_SECONDS, stdin=subprocess.DEVNULL
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return f"tmux could not be asked: {error}"
    return f"tmux did not switch: {done.stderr.strip()}" if done.returncode else ""
