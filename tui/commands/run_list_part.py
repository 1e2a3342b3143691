"""The actions on the list of runs itself."""

from __future__ import annotations

from ..actions import Place
from ..runs.filter_line import FilterLine
from ..runs.unseen import next_of
from .base import Commands, Deck


class RunListCommands(Commands):
    """Open a run, filter, sort, mark and fold, go to those that need the operator."""

    def __init__(self, deck: Deck) -> None:
        super().__init__(deck)
        self.table = {
            "open": self._open,
            "filter": lambda: deck.screen.query_one(FilterLine).open(),
            "sort": self._sort,
            "mark": self._mark,
            "mark_all": self._mark_all,
            "fold": lambda: self._fold(True),
            "unfold": lambda: self._fold(False),
            "next_unseen": lambda: self._go_to_unseen(1),
            "previous_unseen": lambda: self._go_to_unseen(-1),
        }

    def _open(self) -> None:
        runs = self._deck.runs
        if runs.here is not None and not runs.here.run_id:
            self._fold(runs.here.unit not in runs.listing.folded)
        else:
            self._deck.panes.go_to(Place.TRANSCRIPT)

    def _sort(self) -> None:
        runs = self._deck.runs
        runs.order_by(runs.listing.sort.following)
        remember(self._deck)

    def _fold(self, folded: bool) -> None:
        if self._deck.runs.fold(folded):
            remember(self._deck)

    def _mark(self) -> None:
        runs = self._deck.runs
        if runs.here is not None:
            ids = runs.listing.runs_in(runs.here)
            runs.mark(ids, not runs.marked.issuperset(ids))
            runs.action_move("down")

    def _mark_all(self) -> None:
        runs = self._deck.runs
        shown = runs.listing.shown_ids()
        if runs.marked.issuperset(shown):
            runs.mark(runs.marked, False)
        else:
            runs.mark(shown, True)

    def _go_to_unseen(self, step: int) -> None:
        runs = self._deck.runs
        if run_id := next_of(self._deck.board.unseen, runs.listing, runs.here, step):
            runs.select(run_id)


def clear_filter(deck: Deck) -> bool:
    """Show all runs again, where the runs have the keys; answer whether there was a filter."""
    if deck.panes.place is not Place.RUNS or not deck.runs.listing.filter:
        return False
    deck.runs.filter_by("")
    remember(deck)
    return True


def remember(deck: Deck) -> None:
    """Keep how the list is arranged for the next start."""
    if memory := deck.runs.memory:
        deck.bridge.spawn(memory.keep, deck.runs)
