"""The action that shows one run in detail."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...core.run.snapshot import RunSnapshot
from ..actions import KeyContext
from ..deck.protocol import DeckView
from .base import Commands

if TYPE_CHECKING:
    from ...core.run.snapshot import RunSnapshot


class DetailCommands(Commands):
    """Opens the detail screen."""

    def __init__(self, deck: DeckView) -> None:
        super().__init__(deck)
        self.table = {"detail": lambda: self._with_run(self._open)}

    async def _open(self, run: RunSnapshot) -> None:
        from ..detail.screen import RunDetailScreen

        deck = self._deck
        screen = RunDetailScreen(self._bridge, run, lambda: deck.run_store.get(run.run_id), deck.actions)
        if await self._app.push_screen_wait(screen):
            deck.runs.select(run.run_id)
            deck.panes.zoom(KeyContext.TRANSCRIPT)
