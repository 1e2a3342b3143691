"""What the app does by itself, once at its start: empty the trash of old runs, and apply the rules of retention."""

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


async def clean_up_at_start(deck: DeckView) -> None:
    """Remove what has been in the trash for a day, move what the settings' rules take there, and say so in one line."""
    bridge, screen = deck.bridge, deck.screen
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
        deck.undo.push(deletion_of(bridge, deck.runs.select, runs_word(len(cleaned.moved)), cleaned.moved[::-1]))
        screen.notify(cleanup_report(selection, cleaned, key_of("undo", deck.actions)), markup=False)


def cleanup_report(selection: Selection, cleaned: Cleaned, undo_key: str) -> str:
    """Return `12 old runs (340 MB) went to the trash, by the setting retention; u brings them back.`"""
    moved = set(cleaned.moved)
    size = size_text(sum(run.size for run in selection.going if run.run_id in moved))
    what = "1 old run" if len(moved) == 1 else f"{len(moved)} old runs"
    return f"{what} ({size}) went to the trash, by the setting retention; {undo_key} brings them back."
