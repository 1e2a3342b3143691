"""The actions that go about on the deck."""

from __future__ import annotations

from ..actions import Place
from ..present import farewell
from ..screens.help import HelpScreen
from .base import Commands, Deck


class DeckCommands(Commands):
    """Go to panes, zoom, help and quit."""

    def __init__(self, deck: Deck) -> None:
        super().__init__(deck)
        panes = deck.panes
        self.table = {
            "zoom": panes.toggle_zoom,
            "presets": lambda: panes.go_to(Place.PRESETS),
            "runs": lambda: panes.go_to(Place.RUNS),
            "transcript": lambda: panes.go_to(Place.TRANSCRIPT),
            "next_pane": lambda: panes.go_round(1),
            "previous_pane": lambda: panes.go_round(-1),
            "back": panes.go_back,
            "help": lambda: self._app.push_screen(HelpScreen(deck.actions)),
            "quit": lambda: self._app.exit(farewell(deck.counts)),
        }
