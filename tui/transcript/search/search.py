"""The search of the shown transcript: typed, stepped through, counted while the run goes on, ended."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

from ....core.system.line_file import LineFile
from ....core.text.plain import one_line
from ...actions import ACTIONS, KeyContext

if TYPE_CHECKING:
    from ...feed.bridge import Bridge
    from ..pane import Transcript
    from .counter import Count
    from .scanner import Match

RECOUNT_SECONDS = 0.4
"""Between two looks at whether the file has grown, only while there is a search."""

SEARCH_ACTIONS = frozenset(
    action.id for action in ACTIONS if all(where is KeyContext.SEARCH for where, _ in action.keys)
)
"""The actions that are possible only while there is a search."""

Shown = tuple[str | None, str, str | None]
"""Run, view and file that a search is about."""


class Origin(NamedTuple):
    """Where the operator was before a search."""

    following: bool
    offset: int | None


class Search:
    """One search: its words in one view of one run."""

    def __init__(self, words: str, shown: Shown, file: LineFile) -> None:
        from .counter import Count
        from .query import Query

        self.query = Query(words, shown[1])
        self.shown = shown
        self.file = file
        self.count: Count = Count(file, self.query)
        self.over = threading.Event()
        self.stepping = asyncio.Lock()
        self.match: int | None = None
        """The match gone to last."""
        self.cursor: int | None = None
        """Where the cursor was after that."""
        self.wrapped = ""
        """From which end the last step went on, when it went around."""


class TranscriptSearch:
    """Begins a search with each change of the words, and ends it when something else is shown."""

    def __init__(self, bridge: Bridge, transcript: Transcript, changed: Callable[[], None]) -> None:
        """Search nothing yet; `changed` is called when a search begins or ends."""
        self._bridge = bridge
        self._transcript = transcript
        self._changed = changed
        self._search: Search | None = None
        self._origin = Origin(True, None)
        self.words = ""
        """What was searched for last."""

    @property
    def is_active(self) -> bool:
        return self._search is not None and self._search.shown == self._transcript.shown

    def begin(self) -> None:
        """Remember where the search begins."""
        self._origin = Origin(self._transcript.following, self._transcript.cursor_offset)

    def look_for(self, words: str) -> None:
        """Search for other words, from where the search began."""
        from .query import highlighter

        self._give_up()
        shown = self._transcript.shown
        self._transcript.highlight(highlighter(words))
        if not words or shown[2] is None:
            self._transcript.say_state("")
            self._go_back()
            self._changed()
            return
        self.words = words
        search = self._search = Search(words, shown, LineFile(shown[2]))
        self._changed()
        self._bridge.spawn(self._run, search, self._origin.offset or 0)

    def end(self, *, back: bool = False) -> None:
        """Take the marks away; `back` goes to where the search began."""
        if self._search is None:
            return
        was_active = self.is_active
        self._give_up()
        self._transcript.highlight(None)
        if was_active:
            self._transcript.say_state("")
            if back:
                self._go_back()
        self._changed()

    def step(self, by: int) -> None:
        """Go to the next match (1) or the previous one (-1)."""
        if (search := self._search) is not None and self.is_active:
            self._bridge.spawn(self._step, search, by)

    def _give_up(self) -> None:
        if self._search is not None:
            self._search.over.set()
            self._search = None

    def _go_back(self) -> None:
        if self._origin.following:
            self._transcript.follow(True)
        elif self._origin.offset is not None:
            self._transcript.show_offset(self._origin.offset)

    # --- beside the event loop -----------------------------------------------------------------------------------

    async def _run(self, search: Search, origin: int) -> None:
        """Go to the first match, then count the matches until the search is over."""
        from .scanner import find

        over = search.over.is_set
        try:
            self._say(search)
            self._go_to(search, await self._bridge.call(find, search.file, search.query, origin, 1, over), 1)
            while not over() and search.shown == self._transcript.shown:
                if search.count.full or not await self._count_on(search):
                    await asyncio.sleep(RECOUNT_SECONDS)
            if self._search is search:
                self.end()
        finally:
            search.over.set()

    async def _count_on(self, search: Search) -> bool:
        """Count one piece more; return whether there was something to search."""
        before = search.count.end
        looked = await self._bridge.call(search.count.look, search.over.is_set)
        if search.over.is_set():
            return True
        search.count.take(looked)
        self._say(search)
        return search.count.end != before

    async def _step(self, search: Search, by: int) -> None:
        from .scanner import find

        async with search.stepping:
            cursor = self._transcript.cursor_offset
            here = search.match if search.match is not None and cursor == search.cursor else cursor
            if here is None or not self.is_active:
                return
            match = self._counted(search.count, here, by)
            if match is None:
                start = here + 1 if by > 0 else here
                match = await self._bridge.call(find, search.file, search.query, start, by, search.over.is_set)
            self._go_to(search, match, by)

    def _counted(self, count: Count, here: int, by: int) -> Match | None:
        """Return the next match where counting has found it already."""
        from .scanner import Match

        offset = count.after(here) if by > 0 else count.before(here)
        if offset is not None:
            return Match(offset)
        if count.complete and here <= count.end:
            return Match(count.matches[0 if by > 0 else -1] if count.matches else None, True)
        return None

    def _go_to(self, search: Search, match: Match, by: int) -> None:
        if search.over.is_set() or not self.is_active:
            return
        if match.offset is not None:
            self._transcript.show_offset(match.offset)
            self._transcript.show_words(search.query.words)
            search.match, search.cursor = match.offset, self._transcript.cursor_offset
            search.wrapped = "" if not match.wrapped else "from the beginning" if by > 0 else "from the end"
        self._say(search)

    def _say(self, search: Search) -> None:
        """Say at the pane's edge which match this is."""
        if search.over.is_set():
            return
        count = search.count
        if search.match is not None:
            number = count.number(search.match)
            text = f"match {number or '…'}/{count.total}" + (f", {search.wrapped}" if search.wrapped else "")
        elif count.complete and not count.matches:
            text = f'no match for "{one_line(search.query.words, 20)}"'
        else:
            text = f"searching… {count.total} so far"
        self._transcript.say_state(text)
