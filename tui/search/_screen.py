"""The screen that searches all runs: the input above, the hits below as they come."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Collection, Sequence
from functools import partial
from typing import ClassVar

from msgspec import Struct
from textual import on
from textual.app import ComposeResult
from textual.containers import Vertical
from textual.content import Content
from textual.message import Message
from textual.widgets import Input, Static
from textual.worker import Worker

from ...core.run.describe import runs_word
from ...core.search.pattern import Pattern
from ...core.text.plain import one_line
from ..engine_api import EngineApi
from ..keys.command import Action, KeyContext
from ..keys.keymap import bindings, keys_line
from ..runs.filter import Filter, misspelled_key
from ..terminal.after_close import notify_failure
from ..terminal.textual_internals import DialogScreen
from ..widgets.line_view import RowList
from ..widgets.prompt_input import PromptInput
from ._hits import HitList, HitRow, Query, parse_query, rows_of

MOST_HITS = 5_000
"""Hits after which a search ends: more words find the others."""
BATCH_S = 0.05
"""Seconds between two batches of hits."""

HINT = """\
Searches all tasks, answers and transcripts of this project as you type.

  connection reset       text; a capital letter makes it case-sensitive
  /time(d )?out/         regular expression
  reset status:failed    limit to some runs: status: preset: model: is:
  reset age:<1d cost:>1  limit by age or cost; also after: before:"""


class LastSearch(Struct):
    """The last search, so that its next hit can be opened."""

    text: str = ""
    row: int = 0


class Search(Struct, eq=False):
    """One search, until another replaces it."""

    query: Query
    over: threading.Event
    hits: int = 0


class HitsFound(Message):
    def __init__(self, search: Search, rows: Sequence[HitRow], *, is_last: bool = False) -> None:
        super().__init__()
        self.search = search
        self.rows = rows
        self.is_last = is_last


class SearchScreen(DialogScreen[tuple[HitRow, Query] | None]):
    """Returns the hit to open, and its query."""

    CSS_PATH: ClassVar = ["../dialogs/dialogs.tcss", "search.tcss"]
    BINDINGS = bindings(KeyContext.FIND)
    AUTO_FOCUS = ""

    def __init__(
        self,
        engine: EngineApi,
        passing: Callable[[Filter], Collection[str] | None],
        last: LastSearch,
        actions: Sequence[Action],
    ) -> None:
        """Begin with the last search; `passing` returns the runs that pass a filter, None for all."""
        super().__init__()
        self._engine = engine
        self._passing = passing
        self._last = last
        self._actions = actions
        self._wanted_row = last.row
        """The last cursor row, restored as soon as that hit appears."""
        self._search: Search | None = None

    def compose(self) -> ComposeResult:
        with Vertical(classes="dialog", id="search-all") as dialog:
            dialog.border_title = "Search all runs"
            yield PromptInput(self._last.text, placeholder="text to search for", compact=True, id="sought")
            yield HitList()
            yield Static("", id="problems")

    def on_mount(self) -> None:
        field = self.query_one(PromptInput)
        field.focus()
        field.action_select_all()
        self._begin()

    def on_unmount(self) -> None:
        self._give_up()

    def on_worker_state_changed(self, event: Worker.StateChanged) -> None:
        notify_failure(self, event)

    @property
    def _hits(self) -> HitList:
        return self.query_one(HitList)

    # --- searching -----------------------------------------------------------------------------------------------

    @on(Input.Changed)
    def search_anew(self, event: Input.Changed) -> None:
        if event.value != self._last.text:
            self._last.text, self._wanted_row = event.value, 0
            self._begin()

    def _give_up(self) -> None:
        if self._search is not None:
            self._search.over.set()
            self._search = None

    def _begin(self) -> None:
        self._give_up()
        query = parse_query(self._last.text)
        self.query_one("#problems", Static).update(Content(one_line(query.error, 200)))
        self._hits.begin("" if query.pattern or query.error else HINT)
        if query.pattern is None:
            self._say("")
            return
        self._search = Search(query, threading.Event())
        self._say("searching…")
        self.run_worker(partial(self._go_through, self._search, query.pattern), thread=True, exit_on_error=False)

    def _go_through(self, search: Search, pattern: Pattern) -> None:
        """Find hits in a thread, and post them in batches."""
        run_ids = self._passing(search.query.runs)
        runs_with_hits = self._engine.search(pattern, run_ids, cancelled=search.over.is_set, apart=pattern.is_regex)
        rows: list[HitRow] = []
        due = count = 0.0
        for run_hits in runs_with_hits:
            rows += rows_of(run_hits)
            count += len(run_hits.hits)
            if count >= MOST_HITS:
                break
            if time.monotonic() >= due:
                self.post_message(HitsFound(search, rows))
                rows, due = [], time.monotonic() + BATCH_S
        self.post_message(HitsFound(search, rows, is_last=True))

    @on(HitsFound)
    def show_hits(self, message: HitsFound) -> None:
        search = self._search
        if message.search is not search or search is None:
            return
        rows = message.rows[: MOST_HITS - search.hits]
        search.hits += len(rows)
        self._hits.extend(rows)
        if self._wanted_row and self._wanted_row < self._hits.row_count:
            self._hits.move_to(self._wanted_row)
            self._wanted_row = 0
        if message.is_last and not search.hits:
            self._hits.begin("\n".join(filter(None, ("No matches.", misspelled_key(self._last.text)))))
        self._say("" if message.is_last else "searching…")

    def _say(self, state: str) -> None:
        search = self._search
        keys = keys_line(KeyContext.FIND, self._actions)
        count = ""
        if search is not None and search.hits:
            which = "first " if search.hits >= MOST_HITS else ""
            hits = "1 hit" if search.hits == 1 else f"{which}{search.hits:,} hits"
            count = f"{hits} in {runs_word(self._hits.run_count)}"
        self.query_one("#search-all").border_subtitle = Content("   ".join(filter(None, (count, state, keys))))

    # --- keys ----------------------------------------------------------------------------------------------------

    def action_move(self, where: str) -> None:
        self._wanted_row = 0
        self._hits.action_move(where)

    @on(Input.Submitted)
    @on(RowList.Chosen)
    def action_open_hit(self) -> None:
        search, hit = self._search, self._hits.chosen
        if search is not None and hit is not None:
            self._last.row = self._hits.cursor
            self.dismiss((hit, search.query))

    def action_cancel(self) -> None:
        self._last.row = self._hits.cursor
        self.dismiss(None)
