"""Decide which keys may reply to a request: none that was typed for what stood there before it; pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ..terminal.key_queue import KeyTime

VISIBLE_S = 0.4
"""Seconds that a request has to be on the screen before a key may reply to it."""
REPLACED_S = 2.0
"""The same for a request that took the place of one that was not answered from here."""
QUIET_S = 0.3
"""Seconds without a key before the first one that may reply."""


class ReplyGuard:
    """Drops keys until what is shown has been visible for long enough and the typing has paused."""

    def __init__(self) -> None:
        self._delay = VISIBLE_S
        self._visible_since: float | None = None
        """None while it is not on the screen."""
        self._taken_at = 0.0
        """When the last key that was not dropped came: the next one needs no pause."""

    def restart(self, delay: float) -> None:
        """Begin again for something new, which is not on the screen yet."""
        self._delay, self._visible_since = delay, None

    def note_visible(self, now: float) -> None:
        if self._visible_since is None:
            self._visible_since = now

    def note_hidden(self, now: float) -> None:
        """Note that it left the screen; what was there for long enough is known when it comes back."""
        if not self.seconds_left(now):
            self._delay = VISIBLE_S
        self._visible_since = None

    def seconds_left(self, now: float) -> float:
        """Return for how long it must still be visible; endless while it is not on the screen."""
        return float("inf") if self._visible_since is None else max(0.0, self._visible_since + self._delay - now)

    def takes(self, key: KeyTime) -> bool:
        """Return False for a key to be dropped."""
        is_quiet = key.before == self._taken_at or key.at - key.before >= QUIET_S
        if not is_quiet or self.seconds_left(key.at):
            return False
        self._taken_at = key.at
        return True
