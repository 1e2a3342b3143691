"""The launch dialog, opened and read by its tests."""

from __future__ import annotations

from subdeck.core.spec.request import RunRequest
from subdeck.tui.launch._screen import LaunchScreen

from .open_deck import Deck


async def dialog_of(deck: Deck, *keys: str) -> LaunchScreen:
    """Press keys that open the launch dialog, and return it once it is filled in."""
    await deck.press(*keys)
    await deck.until(lambda: isinstance(deck.app.screen, LaunchScreen), "the dialog")
    screen = deck.app.screen
    assert isinstance(screen, LaunchScreen)
    await deck.until(screen._ready.is_set, "what is remembered")
    return screen


def request_of(dialog: LaunchScreen) -> RunRequest:
    """Return the request that one run would be launched with now."""
    return dialog.form.request(dialog._fields.values)
