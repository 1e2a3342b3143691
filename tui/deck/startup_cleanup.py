"""What the app does by itself, once at its start: give up what is a day in the trash, and keep the settings' rules."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from ...core.errors import SubdeckError
from ...core.run.describe import runs_word, size_text
from ..actions import key_of
from .undo import deletion_of

if TYPE_CHECKING:
    from ...core.project.retention import Cleaned, Selection
    from .protocol import DeckView

AFTER = 3.0
"""Seconds from the start on: the screen and the runs come first."""


class StartupCleanup:
    """Works in a thread, and says in one line what it moved."""

    def __init__(self, deck: DeckView) -> None:
        self._deck = deck

    def begin_soon(self, *, readonly: bool) -> None:
        """Plan it, unless nothing may be changed from here."""
        if not readonly:
            self._deck.screen.set_timer(AFTER, lambda: self._deck.bridge.spawn(self._tidy))

    async def _tidy(self) -> None:
        bridge, screen = self._deck.bridge, self._deck.screen
        try:
            await bridge.call(bridge.engine.purge)
            rule = bridge.engine.settings.retention
            if not rule.is_set:
                return
            from ...core.project.retention import tidy

            selection, cleaned = await bridge.call(tidy, bridge.engine.project, rule, time.time())
        except (SubdeckError, OSError) as error:
            screen.notify(f"Old runs could not be cleaned up: {error}", severity="warning", markup=False)
            return
        if cleaned.moved:
            self._deck.undo.push(
                deletion_of(bridge, self._deck.runs.select, runs_word(len(cleaned.moved)), cleaned.moved[::-1])
            )
            screen.notify(told(selection, cleaned, key_of("undo", self._deck.actions)), markup=False)


def told(selection: Selection, cleaned: Cleaned, undo_key: str) -> str:
    """`12 old runs (340 MB) went to the trash, by the setting retention; u brings them back.`"""
    moved = set(cleaned.moved)
    size = size_text(sum(run.size for run in selection.going if run.run_id in moved))
    what = "1 old run" if len(moved) == 1 else f"{len(moved)} old runs"
    return f"{what} ({size}) went to the trash, by the setting retention; {undo_key} brings them back."
