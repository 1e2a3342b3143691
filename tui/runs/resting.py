"""When a run counts as looked at: its transcript gets the keys, or the cursor comes to it and rests there."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from textual.timer import Timer

    from .list import RunList

SECONDS = 1.5
"""That the cursor has to stay. A run that ends under a cursor that was there before may have nobody in front of it."""


class Rest:
    """Takes the run of the cursor off those not looked at when the cursor has not moved for a while."""

    def __init__(self, runs: RunList) -> None:
        self._runs = runs
        self._timer: Timer | None = None

    def begin(self) -> None:
        """The operator has just put the cursor where it is."""
        if self._timer is not None:
            self._timer.stop()
            self._timer = None
        if self._runs.is_unseen(self._runs.selected):
            self._timer = self._runs.set_timer(SECONDS, self._end)

    def _end(self) -> None:
        if self._runs.app.app_focus and self._runs.screen.is_current:
            self._runs.mark_seen(self._runs.selected)
        else:  # a dialog is open, or another window has the keys
            self.begin()
