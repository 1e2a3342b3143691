"""Hand on what is typed one key after the other, each when all that the one before it asked for is done.

Keys that come in one packet, over a slow line or by paste, would all be handed to the field that has the focus when
they come: past the dialog that the first of them opens, past the Tab between two fields, and behind the key that
launches, which is looked at before all fields.
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

from .textual_internals import ToastPressApp

LOADING = "-loading"
"""The class of a screen that takes no keys yet."""
PATIENCE_S = 2.0
"""After so long the next key goes, whatever it waited for."""
POLL_S = 0.005
"""Between two checks whether a screen takes keys."""
ROUNDS = 2
"""How often each node is passed: what a field posts to itself when it takes a key is behind the key's follower."""

Typed: TypeAlias = Key | Paste


class KeyTime(NamedTuple):
    """When a key came from the terminal, however long it was held back; by the clock of the app."""

    at: float
    before: float
    """When the key before it came, wherever that one went."""


class KeyQueueApp(ToastPressApp, inherit_bindings=False):
    """An app that keeps keys in their order until whatever they are meant for is there."""

    def __init__(self) -> None:
        super().__init__()
        self.last_key_at = float("-inf")
        """When the last key came, handed on or not."""
        self.key_time = KeyTime(self.last_key_at, self.last_key_at)
        """Of the key that is being handled."""
        self._typed: deque[tuple[Typed, KeyTime]] = deque()
        self._is_emptying = False
        self._written_at = 0.0
        """When the last character was handed on."""
        self._pause = float("inf")
        """Seconds between the key that was handed on last and the character before it; endless for no character."""

    async def on_event(self, event: Event) -> None:
        if not isinstance(event, Key | Paste) or event.is_forwarded:
            await super().on_event(event)
            return
        came = self.clock() - (time.monotonic() - event.time)  # the loop may have been busy since
        self._typed.append((event, KeyTime(came, self.last_key_at)))
        self.last_key_at = came
        if not self._is_emptying:
            self._is_emptying = True
            start = await self._hand_on() if self._takes_keys else self
            self.run_worker(self._empty(start), group="keys")

    def forget_typed(self) -> None:
        """Drop what is typed already: it was meant for a dialog that does not come."""
        self._typed.clear()

    @property
    def has_keys_waiting(self) -> bool:
        """Whether a key that was read is still being handled."""
        return self._is_emptying

    def was_typing(self, seconds: float) -> bool:
        """Whether the character that is being handled came so soon after another that it may be a part of a text."""
        return self._pause < seconds

    async def _empty(self, start: Widget | App[Any]) -> None:
        try:
            while True:
                await self._until(self._follow(start))
                await self._until(self._screen_ready())
                if not self._typed:
                    return
                start = await self._hand_on()
        finally:
            self._is_emptying = False

    async def _hand_on(self) -> Widget:
        """Deliver the next key, and behind a letter the letters that follow it; return where they went."""
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
            await asyncio.wait_for(done, PATIENCE_S)
        except TimeoutError:
            return  # whatever holds the keys back, the operator must get through

    async def _follow(self, start: Widget | App[Any]) -> None:
        """Go the way that a key takes, from the field up to the app: behind it all that the key asked for is done."""
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
        """Whether the present screen does: a dialog, once it is loaded and a field has the focus, if it has fields."""
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
