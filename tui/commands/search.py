"""The command that searches all runs, and opens what it finds."""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING

from ...core.search.scan import Place
from ..actions import KeyContext
from ..deck.screen import MainScreen
from ..detail.page import Tab
from ..feed.lines import View
from .base import Commands

if TYPE_CHECKING:
    from ..runs.filter import Filter
    from ..search.hits import HitRow, Query
    from .detail import DetailCommands

_TABS = {Place.TASK: Tab.PROMPT, Place.ANSWER: Tab.ANSWER}
"""Where to look at what stands in no event."""


class FindCommands(Commands):
    def __init__(self, deck: MainScreen, detail: DetailCommands) -> None:
        from ..search.screen import LastSearch

        super().__init__(deck)
        self._detail = detail
        self._last = LastSearch()

    def search_all(self) -> None:
        from ..search.screen import SearchScreen

        screen = SearchScreen(self._bridge.engine, self._passing, self._last, self._deck.actions)
        self.app.push_screen(screen, self._open)

    def _passing(self, wanted: Filter) -> Collection[str] | None:
        """Return the ids of the runs that pass a filter; None for all. Any thread may call it."""
        if not wanted:
            return None
        run_store = self._deck.run_store
        return {run.run_id for run in tuple(run_store.runs) if wanted.passes(run, run_store.flags(run.run_id))}

    def _open(self, chosen: tuple[HitRow, Query] | None) -> None:
        """Show a hit where it stands: in the transcript, or in the detail of its run."""
        if chosen is None:
            return
        (run_id, _, hit), query = chosen
        run = self._deck.run_store.get(run_id)
        if run is None:
            self._say("This run no longer exists.")
            return
        self._mark_seen((run,))
        self._deck.runs.select(run_id)
        self._deck.show_highlighted()
        if hit.offset is None:
            self._detail.spawn(self._detail.show, run, _TABS.get(hit.place))
            return
        self._deck.panes.go_to(KeyContext.TRANSCRIPT)
        self._deck.transcript.set_view(View.READABLE)
        self._deck.search.go_to(run_id, hit.offset, query.words)
