"""Whether you are at this deck, for the sender of notifications; and the notifications that could not be delivered.

While you are, nothing about the runs on the screen is sent elsewhere. That the terminal has the focus counts only if it
has ever reported it: many terminals do not.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from ..core.system.log import log_fault

if TYPE_CHECKING:
    from ..core.alerts.presence import Deck, Presence
    from .engine_api import EngineApi

LOOK_S = 5.0
"""Seconds between two checks for failed notifications, and for a sender that was killed."""
NAMED = 3
"""Failed notifications that a warning names."""


class Attention:
    """Keeps the file of this deck, once it is needed."""

    def __init__(
        self, engine: EngineApi, shown_runs: Callable[[], tuple[str, ...]], warn: Callable[[str], None]
    ) -> None:
        """`shown_runs` returns the only runs on the screen; empty for all of the project."""
        self._engine = engine
        self._shown_runs = shown_runs
        self._warn = warn
        self._presence: Presence | None = None
        self._recorded: Deck | None = None
        """The content of the file."""
        self._is_reported = False
        """Whether the terminal reports its focus."""
        self._known_failures: set[str] = set()

    def report_focus(self, has_focus: bool) -> None:
        """Take the terminal's own report."""
        self._is_reported = True
        self.change_focus(has_focus)

    def change_focus(self, has_focus: bool) -> None:
        """Record the focus; what was kept back is sent when you leave."""
        if not self._is_reported or not self._engine.settings.notifications.is_sent:
            return
        from ..core.alerts import spool
        from ..core.alerts.dispatch import start_sender
        from ..core.alerts.presence import Deck, Presence

        deck = Deck(self._engine.project.root, self._shown_runs(), has_focus)
        if deck == self._recorded:
            return
        try:
            if self._presence is None:
                self._presence = Presence(deck)
            else:
                self._presence.show(deck)
            self._recorded = deck
            if not has_focus and spool.has_quiet():
                start_sender(wakes=True)
        except OSError as error:
            log_fault("recording the focus of the deck", error)

    def look(self) -> None:
        """Warn of notifications that could not be delivered; continue the work of a sender that was killed."""
        if not self._engine.settings.notifications.is_sent:
            return
        from ..core.alerts import spool
        from ..core.alerts.dispatch import resume_sending

        resume_sending()
        new = [failure for failure in spool.failures() if failure.id not in self._known_failures]
        self._known_failures.update(failure.id for failure in new)
        if new:
            self._warn(failures_text([failure.document.title for failure in new]))

    def close(self) -> None:
        """Leave: the deck is closed."""
        if self._presence is None:
            return
        self.change_focus(False)
        self._presence.close()
        self._presence = self._recorded = None


def failures_text(titles: list[str]) -> str:
    """Return a warning that names the notifications that could not be delivered."""
    from ..core.text.plain import one_line

    count = len(titles)
    head = f"{count} notification{'' if count == 1 else 's'} could not be delivered:"
    more = [f"and {count - NAMED} more"] if count > NAMED else []
    lines = (one_line(title, 100) for title in titles[:NAMED])
    return "\n".join((head, *lines, *more, "Run subdeck notify --test."))
