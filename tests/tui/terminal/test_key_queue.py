"""Keys that wait for their turn."""

from __future__ import annotations

import asyncio
from typing import ClassVar

import pytest
from subdeck.tui.terminal import key_queue
from subdeck.tui.terminal.key_queue import LOADING, KeyQueueApp
from textual.binding import Binding, BindingType
from textual.events import Key
from textual.screen import ModalScreen


class _Counting(ModalScreen[None]):
    """Counts a key."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("x", "count", priority=True)]
    count = 0

    def action_count(self) -> None:
        self.count += 1


class _SlowToEnd(KeyQueueApp, inherit_bindings=False):
    """Has no screen any more while keys wait."""

    async def _close_all(self) -> None:
        await super()._close_all()
        async with asyncio.timeout(10):
            while self.has_keys_waiting:
                await asyncio.sleep(0)


async def test_keys_that_wait_do_not_disturb_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    """The patience with a screen that takes no keys may end when there is no screen any more."""
    monkeypatch.setattr(key_queue, "PATIENCE_S", 0.3)
    app, screen = _SlowToEnd(), _Counting(classes=LOADING)
    async with app.run_test() as pilot:
        await app.push_screen(screen)
        await pilot.press("x")
        assert app.has_keys_waiting
    assert not app.has_keys_waiting


async def test_keys_after_the_end_was_requested() -> None:
    """They are not for the app any more."""
    app, screen = KeyQueueApp(), _Counting()
    async with app.run_test() as pilot:
        await app.push_screen(screen)
        await pilot.press("x")
        app.exit()
        app.post_message(Key("x", "x"))
    assert 1 == screen.count
