"""What the app has told, to be read again."""

from __future__ import annotations

from ..dialogs.reading import ReadingScreen
from .base import Commands, Deck


class TellingCommands(Commands):
    """List the messages of this session of the app."""

    def __init__(self, deck: Deck) -> None:
        super().__init__(deck)
        self.table = {"messages": self._list_messages}

    def _list_messages(self) -> None:
        entries = self._deck.notices.entries()
        self._app.push_screen(ReadingScreen("Messages", entries, empty="Nothing has been told yet.", filterable=True))
