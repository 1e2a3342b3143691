"""The actions that go about on the deck."""

from __future__ import annotations

from ..actions import Place
from ..dialogs.help import HelpScreen
from ..text.format import farewell
from ..theme import next_theme
from .base import Commands, Deck
from .run_list_part import clear_filter


class DeckCommands(Commands):
    """Go to panes, zoom, help and quit."""

    def __init__(self, deck: Deck) -> None:
        super().__init__(deck)
        panes = deck.panes
        self.table = {
            "zoom": panes.toggle_zoom,
            "narrower": lambda: panes.widen_presets(-1),
            "wider": lambda: panes.widen_presets(1),
            "lower": lambda: panes.lower_transcript(1),
            "higher": lambda: panes.lower_transcript(-1),
            "as_at_first": panes.as_at_first,
            "theme": self._next_theme,
            "presets": lambda: panes.go_to(Place.PRESETS),
            "runs": lambda: panes.go_to(Place.RUNS),
            "transcript": lambda: panes.go_to(Place.TRANSCRIPT),
            "next_pane": lambda: panes.go_round(1),
            "previous_pane": lambda: panes.go_round(-1),
            "back": lambda: clear_filter(deck) or panes.go_back(),
            "help": lambda: self._app.push_screen(HelpScreen(deck.actions, deck.situation)),
            "quit": lambda: self._app.exit(farewell(deck.counts)),
        }

    def _next_theme(self) -> None:
        app = self._app
        if app.no_color:
            self._say("NO_COLOR is set: there are no colours to choose from.")
            return
        app.theme = next_theme(app.theme)
        self._say(f"Theme {app.theme}; the setting theme keeps it.")
