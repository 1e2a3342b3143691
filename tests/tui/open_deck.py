"""Open the app on a fake engine, and wait for text on its screen."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from itertools import groupby
from typing import Any

from subdeck.tui.app import SubdeckApp
from subdeck.tui.deck.screen import MainScreen
from subdeck.tui.engine_api import EngineApi
from subdeck.tui.transcript._view import DocumentView
from textual._context import visible_screen_stack
from textual.pilot import Pilot
from textual.strip import Strip
from textual.widget import Widget

from .fake_engine import FakeEngine

LONGEST_DRAWING_S = 1.0
"""The limit for drawing a screen with constant movement."""


class Clock:
    """The app's clock for keys, which only a test advances."""

    def __init__(self) -> None:
        self.now = time.monotonic()

    def __call__(self) -> float:
        return self.now


class Deck:
    """The app under test, with access to the user's view."""

    def __init__(self, app: SubdeckApp, pilot: Pilot[str]) -> None:
        self.app = app
        self.pilot = pilot
        self.clock = app.clock = Clock()

    @property
    def main(self) -> MainScreen:
        screen = self.app.screen_stack[0]
        assert isinstance(screen, MainScreen)
        return screen

    @property
    def screen_text(self) -> str:
        """Return every line of the screen as the terminal would show it."""
        return "\n".join(strip.text for strip in self.strips)

    @property
    def strips(self) -> list[Strip]:
        """Return the screen above the ones below it, drawn first, so that a dialog's background is not empty."""
        visible_screen_stack.set(self.app._background_screens)
        return self.app.screen._compositor.render_strips(self.app.size)

    @property
    def toasts(self) -> list[str]:
        return [toast.message for toast in self.app._notifications]

    def rows(self, widget: Widget) -> list[str]:
        """Return the lines of one widget, freshly drawn."""
        assert self.strips
        return [widget.render_line(y).text.rstrip() for y in range(widget.size.height)]

    async def press(self, *keys: str) -> None:
        """Press keys; `:theme` stands for an action by name, as chosen in the palette."""
        for is_action, group in groupby(keys, lambda key: len(key) > 1 and key.startswith(":")):
            if is_action:
                await self.act(*(key.removeprefix(":") for key in group))
            else:
                await self.pilot.press(*group)
        await self._drawn()

    async def act(self, *actions: str) -> None:
        """Do actions by name, as the palette does."""
        for action in actions:
            self.main.action_act(action)
            await self.pilot.pause()
        await self._drawn()

    async def pass_time(self, seconds: float = 5.0) -> None:
        """Let time pass on the clock for keys, once the shown request is on the screen."""
        block = self.main.request
        if block.is_shown and self.app.screen is self.main:
            await self.until(lambda: block._guard._visible_since is not None, "the block on the screen")
        self.clock.now += seconds
        block._settle()
        block.tick()

    async def _drawn(self) -> None:
        """Let the app handle its pending messages, such as one that shows a toast, and draw its data."""
        handled = asyncio.Event()
        if not self.app._message_queue.empty() and self.app.call_later(handled.set):
            with suppress(TimeoutError):  # handling one may wait for the test
                async with asyncio.timeout(LONGEST_DRAWING_S):
                    await handled.wait()
        deadline = time.monotonic() + LONGEST_DRAWING_S
        while self._is_behind and time.monotonic() < deadline:
            await asyncio.sleep(0.002)

    @property
    def _is_behind(self) -> bool:
        if not self.app._running:
            return False
        screen = self.app.screen
        is_new = screen._compositor.size != self.app.size
        return bool(is_new or screen._layout_required or screen._repaint_required or screen._dirty_widgets)

    async def type(self, text: str) -> None:
        await self.pilot.press(*("space" if char == " " else char for char in text))

    async def until(self, condition: Callable[[], Any], what: str, timeout: float = 60.0) -> None:
        """Let the app work until a condition holds; fail with its name otherwise.

        The screen is drawn now and then, as for a waiting user: the app requests some data only on drawing.
        """
        deadline, waits = time.monotonic() + timeout, 0
        while not condition():
            if time.monotonic() > deadline:
                raise AssertionError(f"waited {timeout:g} s for {what}; the screen:\n{self.screen_text}")
            if (waits := waits + 1) % 20 == 0 and self.app.screen_stack:
                assert self.strips
            await asyncio.sleep(0.01)
            await self.pilot.pause()
        await self._drawn()

    async def until_text(self, text: str) -> None:
        await self.until(lambda: text in self.screen_text, f"{text!r} on the screen")


def text_at_cursor(view: DocumentView) -> str:
    """Return the whole text of the line under the cursor, whether or not it is expanded."""
    offset = view.cursor_offset
    return "" if offset is None else view.document.full_text(offset)


@asynccontextmanager
async def opened(
    engine: FakeEngine, size: tuple[int, int] = (120, 30), *, run_id: str | None = None, readonly: bool = False
) -> AsyncIterator[Deck]:
    """Run the app until the engine's first update has been shown."""
    api: EngineApi = engine  # the type checker proves here that the app can use either engine
    app = SubdeckApp(api, run_id, readonly=readonly)
    async with app.run_test(size=size, notifications=True) as pilot:
        deck = Deck(app, pilot)
        await deck.until(lambda: deck.main._begun, "the first update")
        await deck.until(lambda: deck.main._header._agent, "the agent in use")
        yield deck
