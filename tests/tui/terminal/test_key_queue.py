"""Keys that wait for their turn."""

from __future__ import annotations

import asyncio
from typing import ClassVar

import pytest
from subdeck.tui.terminal import key_queue
from subdeck.tui.terminal.key_queue import KeyQueueApp
from textual.binding import Binding, BindingType
from textual.events import Key
from textual.screen import ModalScreen


class _Counting(ModalScreen[None]):
    """Counts a key."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("x", "count", priority=True)]
    count = 0

    def action_count(self) -> None:
        self.count += 1


class _WaitingForKeys(KeyQueueApp, inherit_bindings=False):
    """Takes no key while it has a screen, and ends once none waits any more."""

    looks = 0
    """How often it was asked whether it takes keys."""
    _has_screens = True

    @property
    def _takes_keys(self) -> bool:
        self.looks += 1
        return not self._has_screens

    async def _close_all(self) -> None:
        await super()._close_all()
        self._has_screens = False
        while self.has_keys_waiting:
            await asyncio.sleep(0)


@pytest.mark.timeout(60)
async def test_a_waiting_key_does_not_disturb_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    """A key whose turn comes when all screens have gone is dropped."""
    monkeypatch.setattr(key_queue, "PATIENCE_S", 100.0)
    app = _WaitingForKeys()
    async with app.run_test():
        app.post_message(Key("x", "x"))
        while app.looks < 2:  # at its arrival, and as it waits
            await asyncio.sleep(0)
    assert not app.has_keys_waiting


async def test_a_key_after_the_request_to_end() -> None:
    """It has no effect."""
    app, screen = KeyQueueApp(), _Counting()
    async with app.run_test() as pilot:
        await app.push_screen(screen)
        await pilot.press("x")
        app.exit()
        app.post_message(Key("x", "x"))
    assert 1 == screen.count
