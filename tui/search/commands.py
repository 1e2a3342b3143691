"""The command that searches all runs and opens a hit, and the key of its dialog."""

from __future__ import annotations

from collections.abc import Collection
from functools import cached_property
from typing import TYPE_CHECKING

from ..commands import Commands
from ..detail.commands import DetailCommands
from ..feed.lines import View
from ..keys.command import DECK, TRANSCRIPT, Action, KeyContext, at, command

if TYPE_CHECKING:
    from ..runs.filter import Filter
    from ._hits import HitRow, Query
    from ._screen import LastSearch


class SearchCommands(Commands):
    opens = ("._screen",)

    @cached_property
    def _last(self) -> LastSearch:
        from ._screen import LastSearch

        return LastSearch()

    @command("search_all", at(DECK, "ctrl+f"), "search all", footer=14, after="search")
    def search_all(self) -> None:
        """Search the tasks, answers and transcripts of all runs. {open_hit} opens a hit."""
        from ._screen import SearchScreen

        screen = SearchScreen(self._bridge.engine, self._passing, self._last, self._deck.actions)
        self.app.push_screen(screen, self._open)

    def _passing(self, run_filter: Filter) -> Collection[str] | None:
        """Return the ids of the runs that pass a filter; None for all. Any thread may call it."""
        if not run_filter:
            return None
        run_store = self._deck.run_store
        return {run.run_id for run in tuple(run_store.runs) if run_filter.passes(run, run_store.flags(run.run_id))}

    def _open(self, chosen: tuple[HitRow, Query] | None) -> None:
        """Show a hit in its place: in the transcript, or in the details of its run."""
        from ...core.search.scan import Part
        from ..detail.page import Section, Tab

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
            targets = {Part.TASK: Section.PROMPT, Part.ANSWER: Tab.ANSWER}
            self.spawn(self._of(DetailCommands).show, run, targets.get(hit.place))
            return
        self._deck.panes.go_to(TRANSCRIPT)
        self._deck.transcript.set_view(View.READABLE)
        self._deck.search.go_to(run_id, hit.offset, query.words)

    in_dialog = (
        Action("open_hit", at(KeyContext.FIND, "enter"), "open", "Open the transcript at the highlighted hit.",
               do="screen.open_hit", footer=1, after="search_all"),
    )  # fmt: skip
