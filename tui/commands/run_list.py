"""The actions on the list of runs: filter, sort, mark, fold, and go to a run."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..actions import KeyContext
from ..deck.protocol import DeckView
from ..runs.filter_line import FilterLine
from ..runs.listing import next_of
from .base import Commands

if TYPE_CHECKING:
    pass


class RunListCommands(Commands):
    """Open a run, filter, sort, mark and fold, go to those that need the operator."""

    def __init__(self, deck: DeckView) -> None:
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
        if runs.cursor_row is not None and not runs.cursor_row.run_id:
            self._fold(runs.cursor_row.group_key not in runs.listing.folded)
        else:
            self._deck.panes.go_to(KeyContext.TRANSCRIPT)

    def _sort(self) -> None:
        runs = self._deck.runs
        runs.order_by(runs.listing.sort.next)
        remember(self._deck)

    def _fold(self, folded: bool) -> None:
        if self._deck.runs.fold(folded):
            remember(self._deck)

    def _mark(self) -> None:
        runs = self._deck.runs
        if runs.cursor_row is not None:
            ids = runs.listing.runs_in(runs.cursor_row)
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
        if run_id := next_of(self._deck.run_store.unseen, runs.listing, runs.cursor_row, step):
            runs.select(run_id)


def clear_filter(deck: DeckView) -> bool:
    """Show all runs again, where the runs have the keys; return whether there was a filter."""
    if deck.panes.place is not KeyContext.RUNS or not deck.runs.listing.filter:
        return False
    deck.runs.filter_by("")
    remember(deck)
    return True


def remember(deck: DeckView) -> None:
    """Keep how the list is arranged for the next start."""
    if memory := deck.runs.memory:
        deck.bridge.spawn(memory.keep, deck.runs.list_layout)
