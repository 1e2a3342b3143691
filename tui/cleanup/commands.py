"""The command that deletes old runs by rules, and the key of its dialog."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...core.run.describe import runs_word
from ...core.text.plain import one_line
from ..commands import Commands
from ..keys.command import DECK, Action, KeyContext, at, command, unbound
from ..terminal.textual_internals import set_timer

if TYPE_CHECKING:
    from ...core.work.deletion import Cleaned

CLEAN_UP = KeyContext.CLEAN_UP
BUSY_SECONDS = 2.0
"""A longer deletion is announced."""


class CleanUpCommands(Commands):
    @command("clean_up", unbound(DECK), "clean up", changes=True, writes=True)
    async def clean_up(self) -> None:
        """Delete old runs by age, number or size. Shows the space that it frees and asks first."""
        from ...core.work.deletion import clean
        from ._screen import CleanUpScreen

        engine, deck = self._bridge.engine, self._deck
        screen = CleanUpScreen(
            self._bridge,
            engine.settings.retention,
            needed=deck.run_store.unseen | deck.run_store.marked,
            unread=deck.run_store.unread,
            keys=self._keys_line(CLEAN_UP),
            undo_key=self._key("undo"),
        )
        choice = await self.app.push_screen_wait(screen)
        if choice is None:
            return
        busy = set_timer(self.app, BUSY_SECONDS, lambda: self._say(f"Deleting {runs_word(len(choice.run_ids))}…"))
        try:
            cleaned = await self._bridge.call(clean, engine.project, choice.run_ids, for_good=choice.purge)
        finally:
            busy.stop()
        await self._deck.undo.look()
        self._report(cleaned, purge=choice.purge)

    def _report(self, cleaned: Cleaned, *, purge: bool) -> None:
        what = runs_word(len(cleaned.moved))
        if cleaned.moved and purge:
            self._say(f"Deleted {what} permanently.")
        elif cleaned.moved:
            self._say(f"Moved {what} to the trash. {self._key('undo')} restores them.")
        if cleaned.left:
            run_id, why = cleaned.left[0]
            more = f", and {len(cleaned.left) - 1} more" if len(cleaned.left) > 1 else ""
            self._say(f"Not deleted: {run_id[-6:]}{more}: {one_line(why, 200)}", error=True)

    in_dialog = (
        Action("clean", at(CLEAN_UP, "ctrl+s"), "clean up", "Delete the runs that match the rules. Asks first.",
               do="screen.start", footer=1, changes=True, guarded=True),
    )  # fmt: skip
