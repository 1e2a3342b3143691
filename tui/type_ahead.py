"""Keep what is typed faster than a dialog opens for that dialog.

Keys that come in one packet, over a slow line or by paste, are all handed to the pane that had the keys when they
came. Without this they would be lost, or would act on the deck.
"""

from __future__ import annotations

from collections import deque
from typing import Any

from textual.app import App
from textual.events import Key
from textual.screen import ModalScreen, Screen

LOOK_AGAIN = 0.02
"""Seconds between two looks whether the dialog can take keys."""
PATIENCE = 100
"""Looks after which a dialog gets the keys, whether its fields want them or not."""
REMEMBERED = 256
"""Keys on their way whose screen is remembered."""


class TypeAhead:
    """Notes for which screen each key was, and holds back those that a dialog has overtaken."""

    def __init__(self, app: App[Any]) -> None:
        self._app = app
        self._on_their_way: deque[tuple[Key, Screen[Any]]] = deque(maxlen=REMEMBERED)
        self._held: list[Key] = []
        self._late: deque[Key] = deque()
        """Keys that were held back and are on their way again; what comes before them waits for them."""
        self._looks = 0

    def takes(self, key: Key) -> bool:
        """Answer whether a key that has just come is held back; else it is noted for the screen that gets it."""
        if self._late and key is self._late[0]:
            self._late.popleft()
        elif self._held or self._late or not self._is_ready:
            self._hold(key)
            return True
        self._on_their_way.append((key, self._app.screen))
        return False

    def takes_back(self, key: Key) -> bool:
        """Answer whether a key that nobody took was for another screen than the present one, and is held now."""
        meant_for = next((screen for noted, screen in self._on_their_way if noted is key), self._app.screen)
        if meant_for is self._app.screen or not isinstance(self._app.screen, ModalScreen):
            return False
        self._hold(key)
        return True

    @property
    def _is_ready(self) -> bool:
        """Whether the present screen can take keys: a dialog once a field of it has the focus, if it has any."""
        screen = self._app.screen
        if not isinstance(screen, ModalScreen) or screen.focused is not None or self._looks >= PATIENCE:
            return True
        return screen.is_mounted and not screen.focus_chain

    def _hold(self, key: Key) -> None:
        self._held.append(key)
        if len(self._held) == 1:
            self._looks = 0
            self._app.call_later(self._hand_out)

    def _hand_out(self) -> None:
        if not self._is_ready:
            self._looks += 1
            self._app.set_timer(LOOK_AGAIN, self._hand_out)
            return
        held, self._held, self._looks = self._held, [], 0
        if isinstance(self._app.screen, ModalScreen):
            for key in held:
                late = Key(key.key, key.character)
                self._late.append(late)
                self._app.post_message(late)
