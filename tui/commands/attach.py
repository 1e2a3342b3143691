"""The action that attaches to a run's tmux pane."""

from __future__ import annotations

import subprocess
from typing import TYPE_CHECKING

from ...core.run.model import RunnerKind
from ..actions import KeyContext
from ..deck.protocol import DeckView
from ..terminal.handover import NO_TERMINAL, hand_over
from .base import Commands, name_of

if TYPE_CHECKING:
    from ...core.run.snapshot import RunSnapshot
    from ...core.runners.base import AttachInfo

SWITCH_SECONDS = 5.0
"""How long tmux may take to show another pane."""


class AttachCommands(Commands):
    """Lends the terminal to the run's pane; what would fail is found out before, and the way back is told."""

    def __init__(self, deck: DeckView) -> None:
        super().__init__(deck)
        self._is_explained = False
        """Whether the operator has been told the keys that lead back."""
        self.table = {"attach": self._attach_or_zoom}

    def _attach_or_zoom(self) -> None:
        """Attach to a run in a pane; show any other alone, from its end on."""
        if (run := self._deck.run) and run.meta.runner != RunnerKind.TMUX:
            self._deck.panes.zoom(KeyContext.TRANSCRIPT)
            self._deck.transcript.follow(True)
        else:
            self._with_run(self._attach)

    async def _attach(self, run: RunSnapshot) -> None:
        async def find() -> AttachInfo:
            return await self._bridge.call(self._bridge.engine.attach_command, run.run_id)

        if self._is_explained:
            attach = await find()
        else:
            question = f"Attach to {name_of(run)}"
            attach = await self._confirmed_data(question, find, attach_note, "Attach", harmless=True)
            if attach is None:
                return
            self._is_explained = True
        if attach.switches:
            problem = await self._bridge.call(_switch, attach)
        else:
            problem = hand_over(self._app, attach.argv)
        if problem == NO_TERMINAL:
            problem = f"{NO_TERMINAL} In a shell: subdeck attach {run.meta.short_id}"
        if problem:
            self._say(problem, error=True)


def attach_note(attach: AttachInfo) -> str:
    """Say what attaching does and how one comes back."""
    keys = ", then ".join(attach.leave)
    if attach.switches:
        what = "This tmux shows the run's pane instead of the app; both keep running."
        return f"{what}\nTo come back here, press {keys}."
    return f"The terminal shows the run's tmux pane; the run is not disturbed.\nTo come back here, press {keys}."


def _switch(attach: AttachInfo) -> str:
    """Show the pane in the tmux that this app runs in; return what went wrong, or an empty string."""
    try:
        done = subprocess.run(
            attach.argv,
            check=False,
            capture_output=True,
            text=True,
            timeout=SWITCH_SECONDS,
            stdin=subprocess.DEVNULL,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return f"tmux could not be asked: {error}"
    return f"tmux did not switch: {done.stderr.strip()}" if done.returncode else ""
