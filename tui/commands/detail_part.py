"""The action that opens one run in detail."""

from __future__ import annotations

from ...core.run.model import RunSnapshot
from ..actions import Place
from .base import Commands, Deck


class DetailCommands(Commands):
    """Opens the detail screen."""

    def __init__(self, deck: Deck) -> None:
        super().__init__(deck)
        self.table = {"detail": lambda: self._with_run(self._open)}

    async def _open(self, run: RunSnapshot) -> None:
        from ..detail.screen import RunDetailScreen

        deck = self._deck
        screen = RunDetailScreen(self._bridge, run, lambda: deck.board.get(run.run_id), deck.actions)
        if await self._app.push_screen_wait(screen):
            deck.runs.select(run.run_id)
            deck.panes.zoom(Place.TRANSCRIPT)
