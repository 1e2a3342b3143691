"""Hand on what is typed one key after the other, each when all that the one before it asked for is done.

Keys that come in one packet, over a slow line or by paste, would all be handed to the field that has the focus when
they come: past the dialog that the first of them opens, past the Tab between two fields, and behind the key that
launches, which is looked at before all fields.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Awaitable, Callable
from typing import Any, TypeAlias

from textual.app import App
from textual.events import Event, Key, Paste
from textual.screen import ModalScreen
from textual.widget import Widget

LOOK_AGAIN = 0.02
"""Seconds between two looks whether the next key may go."""
PATIENCE = 100
"""Looks after which it goes, whatever it waited for, and no dialog is expected any more."""
ROUNDS = 2
"""How often each node is passed: what a field posts to itself when it takes a key is behind the key's follower."""

Typed: TypeAlias = Key | Paste


class TypeAhead:
    """Keeps keys in their order, and what is typed for a dialog until there is one."""

    def __init__(self, app: App[Any], deliver: Callable[[Typed], Awaitable[None]]) -> None:
        """`deliver` gives a key to what has the focus now."""
        self._app = app
        self._deliver = deliver
        self._waiting: deque[Typed] = deque()
        self._turn: object = None
        """Stands for the key that was handed on and is not done with."""
        self._field: Widget | None = None
        """Where that key is written, if it is a letter."""
        self._expected: object = None
        """Stands for a dialog that needs a moment to come: what is typed is its already."""
        self._looks = 0
        self._looking = False

    async def take(self, typed: Typed) -> None:
        """Hand on what has just come, in its turn."""
        self._waiting.append(typed)
        await self._go_on()
        if self._waiting:
            self._look_again()

    def expect(self) -> Callable[[], None]:
        """Hold what is typed from now on until a dialog has come; return what says that none will come."""
        wish = self._expected = object()
        self._looks = 0

        def give_up() -> None:
            if self._expected is wish:
                self.forget()

        return give_up

    def expect_no_more(self) -> None:
        """Note that a dialog has come."""
        self._expected = None

    def forget(self) -> None:
        """Drop what is typed already: it was meant for a dialog that does not come."""
        self._expected = None
        self._waiting.clear()

    async def _go_on(self) -> None:
        while self._waiting and self._may_go(self._waiting[0]):
            typed = self._waiting.popleft()
            start = self._app.focused or self._app.screen
            self._field = start if _is_written(typed, start) else None
            self._turn, self._looks = object(), 0
            await self._deliver(typed)
            self._follow(start, self._turn)

    def _may_go(self, typed: Typed) -> bool:
        """Return whether it is this key's turn: the letters of a word need not wait for each other."""
        if self._turn is None:
            return self._is_ready
        return self._field is not None and self._field is self._app.focused and _is_written(typed, self._field)

    def _follow(self, start: Widget, turn: object) -> None:
        """Send a follower the way that a key takes, from the field up to the app; behind it the next one goes."""
        stops = iter([node for node in start.ancestors_with_self for _ in range(ROUNDS)])

        async def hop() -> None:
            for node in stops:
                if node.call_later(hop):
                    return
            if self._turn is turn:
                self._turn = None
                await self._go_on()

        self._app.call_next(hop)

    @property
    def _is_ready(self) -> bool:
        """Whether the present screen can take keys: a dialog once a field of it has the focus, if it has any."""
        if self._looks >= PATIENCE and self._app.screen_stack:
            return True
        if self._expected is not None or not self._app.screen_stack:
            return False
        screen = self._app.screen
        if not isinstance(screen, ModalScreen) or screen.focused is not None:
            return True
        return screen.is_mounted and not screen.focus_chain

    def _look_again(self) -> None:
        if not self._looking:
            self._looking = True
            self._app.set_timer(LOOK_AGAIN, self._look)

    async def _look(self) -> None:
        self._looking = False
        self._looks += 1
        if self._looks >= PATIENCE:
            self._turn = None
            if self._expected is not None:
                self.forget()
        await self._go_on()
        if self._waiting:
            self._look_again()


def _is_written(typed: Typed, field: Widget) -> bool:
    return isinstance(typed, Key) and field.check_consume_key(typed.key, typed.character)


class KeyQueueApp(App[str], inherit_bindings=False):
    """An app whose keys go through the queue."""

    def __init__(self) -> None:
        super().__init__()
        self.type_ahead = TypeAhead(self, super().on_event)

    async def on_event(self, event: Event) -> None:
        if isinstance(event, Key | Paste) and not event.is_forwarded:
            await self.type_ahead.take(event)
        else:
            await super().on_event(event)
