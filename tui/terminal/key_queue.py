"""Deliver keys one by one, each after the effects of the one before it.

Keys in one packet, over a slow line or by paste, would otherwise all go to the field that is focused when they arrive:
past the dialog that the first of them opens, past the Tab between two fields, and behind the launch key, which is
handled before all fields.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Awaitable
from typing import Any, NamedTuple, TypeAlias

from textual.app import App
from textual.events import Event, Key, Paste
from textual.screen import ModalScreen
from textual.widget import Widget

from .textual_internals import ToastPressApp, is_leaving

LOADING = "-loading"
"""The class of a screen that takes no keys yet."""
PATIENCE_S = 2.0
"""Seconds after which the next key is delivered in any case."""
POLL_S = 0.005
"""Between two checks whether a screen takes keys."""
ROUNDS = 2
"""Passes over each node: a message that a field posts to itself for a key comes after the key's follower."""

Typed: TypeAlias = Key | Paste


class KeyTime(NamedTuple):
    """When the terminal sent a key, even if it was held back; by the app's clock."""

    at: float
    before: float
    """When the key before it came, even if it was dropped."""


class KeyQueueApp(ToastPressApp, inherit_bindings=False):
    """An app that keeps keys in order until their target is ready."""

    def __init__(self) -> None:
        super().__init__()
        self.last_key_at = float("-inf")
        """When the last key came, delivered or not."""
        self.key_time = KeyTime(self.last_key_at, self.last_key_at)
        """Of the key that is being handled."""
        self._typed: deque[tuple[Typed, KeyTime]] = deque()
        self._is_emptying = False
        self._written_at = 0.0
        """When the last character was delivered."""
        self._pause = float("inf")
        """Seconds between the last delivered key and the character before it; infinite if it is not a character."""

    async def on_event(self, event: Event) -> None:
        if not isinstance(event, Key | Paste) or event.is_forwarded:
            await super().on_event(event)
            return
        if is_leaving(self):
            return  # meant for the screen that is closing, or for the shell
        came = self.clock() - (time.monotonic() - event.time)  # the loop may have been busy since
        self._typed.append((event, KeyTime(came, self.last_key_at)))
        self.last_key_at = came
        if not self._is_emptying:
            self._is_emptying = True
            start = await self._hand_on() if self._takes_keys else self
            self.run_worker(self._empty(start), group="keys")

    def forget_typed(self) -> None:
        """Drop typed keys: they were meant for a dialog that does not open."""
        self._typed.clear()

    @property
    def has_keys_waiting(self) -> bool:
        """Whether a key is still being handled."""
        return self._is_emptying

    def was_typing(self, seconds: float) -> bool:
        """Return whether the current character follows another so closely that it may be part of a text."""
        return self._pause < seconds

    async def _empty(self, start: Widget | App[Any]) -> None:
        try:
            while True:
                await self._until(self._follow(start))
                await self._until(self._screen_ready())
                if not self._typed or is_leaving(self):
                    return
                start = await self._hand_on()
        finally:
            self._is_emptying = False

    async def _hand_on(self) -> Widget:
        """Deliver the next key, and after a letter the letters behind it; return the widget that got them."""
        start = self.focused or self.screen
        typed, key_time = self._typed.popleft()
        await self._deliver(typed, key_time)
        while _is_written(typed, start) and self._typed and _is_written(self._typed[0][0], start):
            typed, key_time = self._typed.popleft()
            await self._deliver(typed, key_time)
        return start

    async def _deliver(self, typed: Typed, key_time: KeyTime) -> None:
        self.key_time = key_time
        is_written, now = isinstance(typed, Paste) or typed.is_printable, time.monotonic()
        self._pause = now - self._written_at if is_written else float("inf")
        if is_written:
            self._written_at = now
        await super().on_event(typed)

    async def _until(self, done: Awaitable[None]) -> None:
        try:
            async with asyncio.timeout(PATIENCE_S):  # wait_for may swallow the cancellation of a closing app
                await done
        except TimeoutError:
            return  # any cause may hold keys back, but you have to get through

    async def _follow(self, start: Widget | App[Any]) -> None:
        """Follow a key's path, from the field up to the app: after it the key's effects are done."""
        for node in start.ancestors_with_self:
            for _ in range(ROUNDS):
                passed = asyncio.Event()
                if node.call_later(passed.set):
                    await passed.wait()

    async def _screen_ready(self) -> None:
        while not self._takes_keys:
            await asyncio.sleep(POLL_S)

    @property
    def _takes_keys(self) -> bool:
        """Whether the present screen takes keys: a dialog once it is loaded and, if it has fields, one is focused."""
        if not self.screen_stack:
            return False
        screen = self.screen
        if not isinstance(screen, ModalScreen):
            return True
        if screen.has_class(LOADING) or not screen.is_mounted:
            return False
        return screen.focused is not None or not screen.focus_chain


def _is_written(typed: Typed, field: Widget) -> bool:
    return isinstance(typed, Key) and field.check_consume_key(typed.key, typed.character)
