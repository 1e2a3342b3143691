"""One run by itself: the app opened at a run, in a tmux window of its own."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..actions import KeyContext

if TYPE_CHECKING:
    from ...core.project.follower import Update
    from ..runs.list import RunList
    from ..runs.store import RunStore
    from .panes import Panes


class SingleRunMode:
    """Keeps the screen for one run until the operator goes to the deck; then it is over."""

    def __init__(self, run_id: str | None, run_store: RunStore, runs: RunList, panes: Panes) -> None:
        """None is over from the beginning."""
        self._run_id = run_id
        self._run_store = run_store
        self._runs = runs
        self._panes = panes
        self._here = False
        self._gone = False

    @property
    def hides_others(self) -> bool:
        """True while the run is not there, so that no other one takes its place, or what is meant for it."""
        return self._run_id is not None and not self._here

    def note(self, back: str) -> str:
        """Say what there is to say about the run; `back` is the key that goes to the deck."""
        return f"this run does not exist any more; {back} goes to the deck" if self._gone else ""

    def begin(self) -> None:
        if self._run_id is not None:
            self._panes.zoom(KeyContext.TRANSCRIPT)
            self._runs.select(self._run_id)

    def look(self, update: Update) -> None:
        """See whether the run is there, after the run store took an update."""
        if self._run_id is None:
            return
        here = self._run_id in self._run_store
        self._gone = not here and (self._gone or self._here or update.complete)
        if here and not self._here:
            self._runs.select(self._run_id)
        self._here = here

    def end_when_left(self) -> bool:
        """Return whether the operator has just gone to the deck."""
        if self._run_id is None or self._panes.zoomed is KeyContext.TRANSCRIPT:
            return False
        self._run_id = None
        self._gone = False
        return True
