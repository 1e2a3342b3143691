"""The search that stands in the transcript: from match to match, counted while the run goes on."""

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
    from .scanner import Cancelled, Wanted

GLANCE = 0.4
"""Seconds between two looks at whether the file has grown, only while a search stands."""

MODE = frozenset(action.id for action in ACTIONS if all(place is KeyContext.SEARCH for place, _ in action.keys))
"""The actions that are possible only while a search stands."""

Key = tuple[str | None, str, str | None]


class Landing(NamedTuple):
    """Where a step leads."""

    hit: int | None
    around: bool = False
    """The search went around the end of the file."""


class Origin(NamedTuple):
    """Where somebody was before a search."""

    following: bool
    offset: int | None


class Standing:
    """One search: its words in one view of one run."""

    def __init__(self, words: str, key: Key, file: LineFile) -> None:
        from .counter import Count
        from .query import Query

        self.query = Query(words, key[1])
        self.key = key
        self.file = file
        self.count: Count = Count(file, self.query)
        self.over = threading.Event()
        self.stepping = asyncio.Lock()
        self.hit: int | None = None
        """The match gone to last."""
        self.cursor: int | None = None
        """Where the cursor was after that."""
        self.around = ""


class TranscriptSearch:
    """Searches as one types, goes on by steps, ends when something else is shown."""

    def __init__(self, bridge: Bridge, transcript: Transcript, changed: Callable[[], None]) -> None:
        """`changed` is called when the mode begins or ends."""
        self._bridge = bridge
        self._transcript = transcript
        self._changed = changed
        self._search: Standing | None = None
        self._origin = Origin(True, None)
        self.words = ""
        """What was searched for last."""

    @property
    def stands(self) -> bool:
        return self._search is not None and self._search.key == self._key

    @property
    def _key(self) -> Key:
        return self._transcript.shown

    def begin(self) -> None:
        """Remember where the search begins."""
        self._origin = Origin(self._transcript.following, self._transcript.cursor_offset)

    def look_for(self, words: str) -> None:
        """Search for other words, from where the search began."""
        self._leave()
        key = self._key
        self._transcript.highlight(words)
        if not words or key[2] is None:
            self._transcript.say_state("")
            self._go_back()
            self._changed()
            return
        self.words = words
        search = self._search = Standing(words, key, LineFile(key[2]))
        self._changed()
        self._bridge.spawn(self._go, search, self._origin.offset or 0)

    def end(self, *, back: bool = False) -> None:
        """Take the marks away; `back` goes to where the search began."""
        if self._search is None:
            return
        here = self.stands
        self._leave()
        self._transcript.highlight("")
        if here:
            self._transcript.say_state("")
            if back:
                self._go_back()
        self._changed()

    def step(self, by: int) -> None:
        """Go to the next match (1) or the previous one (-1)."""
        if (search := self._search) is not None and self.stands:
            self._bridge.spawn(self._step, search, by)

    def _leave(self) -> None:
        if self._search is not None:
            self._search.over.set()
            self._search = None

    def _go_back(self) -> None:
        if self._origin.following:
            self._transcript.follow(True)
        elif self._origin.offset is not None:
            self._transcript.show_offset(self._origin.offset)

    # --- beside the event loop -----------------------------------------------------------------------------------

    async def _go(self, search: Standing, origin: int) -> None:
        try:
            self._say(search)
            landing = await self._bridge.call(look_around, search.file, search.query, origin, 1, search.over.is_set)
            self._land(search, landing, 1)
            while not search.over.is_set() and search.key == self._key:
                if search.count.full or not await self._count_on(search):
                    await asyncio.sleep(GLANCE)
            if self._search is search:
                self.end()
        finally:
            search.over.set()

    async def _count_on(self, search: Standing) -> bool:
        """Count a piece more; return whether there was something to look at."""
        before = search.count.end
        looked = await self._bridge.call(search.count.look, search.over.is_set)
        if search.over.is_set():
            return True
        search.count.take(looked)
        self._say(search)
        return search.count.end != before

    async def _step(self, search: Standing, by: int) -> None:
        async with search.stepping:
            cursor = self._transcript.cursor_offset
            here = search.hit if search.hit is not None and cursor == search.cursor else cursor
            if here is None or not self.stands:
                return
            landing = self._known(search.count, here, by)
            if landing is None:
                start = here + 1 if by > 0 else here
                over = search.over.is_set
                landing = await self._bridge.call(look_around, search.file, search.query, start, by, over)
            self._land(search, landing, by)

    def _known(self, count: Count, here: int, by: int) -> Landing | None:
        """Return what is known without looking into the file."""
        hit = count.after(here) if by > 0 else count.before(here)
        if hit is not None:
            return Landing(hit)
        if count.complete and here <= count.end:
            return Landing(count.hits[0 if by > 0 else -1] if count.hits else None, True)
        return None

    def _land(self, search: Standing, landing: Landing, by: int) -> None:
        if search.over.is_set() or not self.stands:
            return
        if landing.hit is not None:
            self._transcript.show_offset(landing.hit)
            self._transcript.show_words(search.query.words)
            search.hit, search.cursor = landing.hit, self._transcript.cursor_offset
            search.around = "" if not landing.around else "from the beginning" if by > 0 else "from the end"
        self._say(search)

    def _say(self, search: Standing) -> None:
        """Say at the pane's edge which match this is."""
        if search.over.is_set():
            return
        count = search.count
        if search.hit is None:
            nothing = f'no match for "{one_line(search.query.words, 20)}"'
            text = nothing if count.complete and not count.hits else f"{count.total} matches, looking"
        else:
            number = count.number(search.hit)
            text = f"match {number or '…'}/{count.total}" + (f", {search.around}" if search.around else "")
        self._transcript.say_state(text)


def look_around(file: LineFile, wanted: Wanted, place: int, by: int, cancelled: Cancelled) -> Landing:
    """Return the first wanted line from this byte on (1) or the last before it (-1), else go around the end.

    Reads files.
    """
    from .scanner import first_hit, last_hit

    mark = file.mark()
    size = mark.size if mark else 0
    if by > 0:
        hit = first_hit(file, wanted, place, size, cancelled)
        other = None if hit is not None else first_hit(file, wanted, 0, min(place, size), cancelled)
    else:
        hit = last_hit(file, wanted, place, cancelled)
        other = None if hit is not None else last_hit(file, wanted, file.end_of_lines(size), cancelled)
    return Landing(hit) if hit is not None else Landing(other, True)
