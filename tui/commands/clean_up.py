"""The action that deletes old runs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...core.project.retention import Cleaned, clean
from ...core.run.describe import runs_word
from ...core.text.plain import one_line
from ..actions import KeyContext, keys_line
from ..deck.protocol import DeckView
from ..deck.undo import deletion_of
from .base import Commands

if TYPE_CHECKING:
    pass

BUSY = 2.0
"""Seconds from which on the operator is told that it goes on."""


class CleaningCommands(Commands):
    """Delete old runs, all in one deletion."""

    def __init__(self, deck: DeckView) -> None:
        super().__init__(deck)
        self.table = {"clean_up": lambda: self._spawn(self._clean_up)}

    async def _clean_up(self) -> None:
        from ..cleanup.screen import CleanUpScreen

        engine, deck = self._bridge.engine, self._deck
        screen = CleanUpScreen(
            self._bridge,
            engine.settings.retention,
            self._confirmed,
            needed=deck.run_store.unseen | deck.run_store.marked,
            unread=deck.run_store.unread,
            keys=keys_line(KeyContext.CLEAN_UP, deck.actions),
            undo_key=self._key("undo"),
        )
        wanted = await self._app.push_screen_wait(screen)
        if wanted is None:
            return
        busy = self._app.set_timer(BUSY, lambda: self._say(f"Deleting {runs_word(len(wanted.run_ids))}…"))
        try:
            cleaned = await self._bridge.call(clean, engine.project, wanted.run_ids, purge=wanted.purge)
        finally:
            busy.stop()
        self._tell(cleaned, purge=wanted.purge)

    def _tell(self, cleaned: Cleaned, *, purge: bool) -> None:
        what = runs_word(len(cleaned.moved))
        if cleaned.moved and purge:
            self._say(f"Removed {what} for good.")
        elif cleaned.moved:
            self._deck.undo.push(
                deletion_of(self._bridge, self._deck.runs.select, what, cleaned.moved[::-1])
            )  # the newest one first
            self._say(f"Moved {what} to the trash; {self._key('undo')} brings them back.")
        if cleaned.left:
            run_id, why = cleaned.left[0]
            others = f", and {len(cleaned.left) - 1} more" if len(cleaned.left) > 1 else ""
            self._say(f"{run_id[-6:]} stays{others}: {one_line(why, 200)}", error=True)
