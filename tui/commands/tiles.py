"""The commands of the tiles: which runs they show, and what is done from there."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ...core.run.model import RunStatus
from ..actions import KeyContext
from ..actions.model import READONLY
from ..deck.screen import MainScreen
from ..dialogs.reader import HelpScreen
from ..text.format import farewell
from .base import Commands

if TYPE_CHECKING:
    from .runs import RunCommands


class TileCommands(Commands):
    def __init__(self, deck: MainScreen, runs: RunCommands) -> None:
        super().__init__(deck)
        self._runs = runs

    def open(self) -> None:
        """Show the marked runs side by side, else those that run."""
        from ..tiles.screen import MOST

        deck = self._deck
        marked = deck.run_store.marked
        chosen = [
            run.run_id
            for run in deck.run_store.runs
            if (run.run_id in marked if marked else run.status is RunStatus.RUNNING)
        ]
        ordered = sorted(chosen, key=deck.runs.listing.key_of)
        if not ordered:
            self._say(f"No run is running. Select two to six runs ({self._key('mark')}) to see them in the grid.")
            return
        if len(ordered) > MOST:
            which = "selected" if marked else "running"
            self._say(f"Showing the first {MOST} of {len(ordered)} {which} runs.")
        self._show(ordered[:MOST])

    def watch(self) -> None:
        """Show the runs that the app is for."""
        self._show(self._deck.watched)

    def _show(self, run_ids: Sequence[str]) -> None:
        from ..tiles.screen import TilesScreen

        deck = self._deck
        known = [(run_id, deck.run_store.get(run_id)) for run_id in run_ids]
        deck.show_tiles(TilesScreen(known, deck.actions, self._act))

    def _act(self, what: str, run_id: str) -> None:
        """Do what a key of the tiles asks for."""
        deck, run = self._deck, self._deck.run_store.get(run_id)
        match what:
            case "read":
                deck.read_tiles()
            case "read on":
                self._bridge.read_on()
            case "close":
                deck.show_tiles(None)
                if deck.watched:
                    self.app.exit(farewell(deck.counts))
            case "help":
                self.app.push_screen(HelpScreen(deck.actions, deck.action_context))
            case _ if run is None:
                self._say("This run no longer exists.")
            case "stop" if self._bridge.readonly:
                self._say(READONLY)
            case "stop":
                self.spawn(self._runs.stop, (run,))
            case _:
                deck.show_tiles(None)
                self._mark_seen((run,))
                deck.runs.select(run_id)
                deck.show_highlighted()
                deck.panes.go_to(KeyContext.TRANSCRIPT)
