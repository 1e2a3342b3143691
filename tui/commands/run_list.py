"""The actions on the list of runs itself."""

from __future__ import annotations

from ..actions import Place
from .base import Commands, Deck


class RunListCommands(Commands):
    """Open a run, go to those that need the operator."""

    def __init__(self, deck: Deck) -> None:
        super().__init__(deck)
        self.table = {
            "open": lambda: deck.panes.go_to(Place.TRANSCRIPT),
            "next_unseen": lambda: self._go_to_unseen(1),
            "previous_unseen": lambda: self._go_to_unseen(-1),
        }

    def _go_to_unseen(self, step: int) -> None:
        runs = self._deck.runs
        if run_id := self._deck.board.next_unseen(runs.selected, step):
            runs.select(run_id)
            runs.mark_seen(run_id)
