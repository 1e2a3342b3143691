"""The actions on the deck itself: panes, sizes, theme, messages, help and quit."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..actions import KeyContext
from ..deck.protocol import DeckView
from ..dialogs.help import HelpScreen
from ..dialogs.reading import ReadingScreen
from ..text.format import farewell
from ..theme import next_theme
from .base import Commands
from .run_list import clear_filter

if TYPE_CHECKING:
    pass


class DeckCommands(Commands):
    """Go to panes, change their sizes, list messages, help and quit."""

    def __init__(self, deck: DeckView) -> None:
        super().__init__(deck)
        panes = deck.panes
        self.table = {
            "zoom": panes.toggle_zoom,
            "narrower": lambda: panes.widen_presets(-1),
            "wider": lambda: panes.widen_presets(1),
            "lower": lambda: panes.lower_transcript(1),
            "higher": lambda: panes.lower_transcript(-1),
            "reset_layout": panes.reset_layout,
            "theme": self._next_theme,
            "presets": lambda: panes.go_to(KeyContext.PRESETS),
            "runs": lambda: panes.go_to(KeyContext.RUNS),
            "transcript": lambda: panes.go_to(KeyContext.TRANSCRIPT),
            "next_pane": lambda: panes.go_round(1),
            "previous_pane": lambda: panes.go_round(-1),
            "back": lambda: clear_filter(deck) or panes.go_back(),
            "help": lambda: self._app.push_screen(HelpScreen(deck.actions, deck.action_context)),
            "messages": self._list_messages,
            "quit": lambda: self._app.exit(farewell(deck.counts)),
        }

    def _next_theme(self) -> None:
        app = self._app
        if app.no_color:
            self._say("NO_COLOR is set: there are no colours to choose from.")
            return
        app.theme = next_theme(app.theme)
        self._say(f"Theme {app.theme}; set theme in the settings to keep it.")

    def _list_messages(self) -> None:
        entries = self._deck.notices.entries()
        self._app.push_screen(ReadingScreen("Messages", entries, empty="There are no messages yet.", filterable=True))
