"""The search of the shown transcript: typing, stepping, counting while the run continues, ending."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING

from ...core.system.line_file import LineFile
from ...core.text.plain import one_line
from ..keys.actions import ACTIONS
from ..keys.command import KeyContext
from ..widgets.prompt_line import PromptLine

if TYPE_CHECKING:
    from ..feed.bridge import Bridge
    from ._matches import Match
    from .pane import Transcript

RECOUNT_SECONDS = 0.4
"""Between two checks whether the file has grown, only during a search."""

SEARCH_ACTIONS = frozenset(action.id for action in ACTIONS if action.key_contexts == (KeyContext.SEARCH,))
"""Actions that are possible only during a search."""

Shown = tuple[str | None, str, str | None]
"""Run, view and file of a search."""


class Search:
    """One search: its words in one view of one run."""

    def __init__(self, words: str, shown: Shown, path: str) -> None:
        from ._matches import Count, Query

        self.words = words
        self.shown = shown
        self.file = LineFile(path)
        self.new_matcher = Query(words, shown[1]).matcher
        self.count = Count(self.file, self.new_matcher)
        self.over = threading.Event()
        self.stepping = asyncio.Lock()
        self.match: int | None = None
        """The last match visited."""
        self.cursor: int | None = None
        """The cursor's place after that."""
        self.wrapped = ""
        """The end from which the last step continued, if it wrapped around."""

    def text(self) -> str:
        """Return the match's number, for the pane's edge."""
        if self.match is not None:
            number = self.count.number(self.match)
            return f"match {number or '…'}/{self.count.total}" + (f", {self.wrapped}" if self.wrapped else "")
        if self.count.complete and not self.count.matches:
            return f'no match for "{one_line(self.words, 20)}"'
        return f"searching… {self.count.total} so far"


class SearchLine(PromptLine):
    """Searches as you type: each change of the words starts a search, which lasts until another view is shown."""

    PLACEHOLDER = "search the transcript"

    def __init__(self, bridge: Bridge, transcript: Transcript, changed: Callable[[], None]) -> None:
        """Start without a search; `changed` is called when a search begins or ends."""
        super().__init__(id="search")
        self._bridge = bridge
        self._transcript = transcript
        self._changed = changed
        self._search: Search | None = None
        self._was_following = True
        self._origin: int | None = None
        """The line of the cursor before the search."""
        self._words = ""
        """The last search words."""
        self._line: tuple[str, int, str] | None = None
        """Run, offset and words of a line to show as soon as its file is read."""

    @property
    def is_active(self) -> bool:
        return self._search is not None and self._search.shown == self._transcript.shown

    def key_context(self, pane: KeyContext) -> KeyContext:
        """Return the context of the focus, if `pane` has it or lends it to this line."""
        if self.is_open:
            return KeyContext.FILTER
        return KeyContext.SEARCH if pane is KeyContext.TRANSCRIPT and self.is_active else pane

    def allows(self, action_id: str) -> bool:
        """Return whether the search allows an action."""
        return action_id not in SEARCH_ACTIONS or self.is_active

    def open(self) -> None:
        """Take the focus; the last search words are selected, so that typing replaces them."""
        self._was_following, self._origin = self._transcript.following, self._transcript.cursor_offset
        if self._origin is not None:
            self._origin = max(0, self._origin)  # above the file there is nothing to search
        self.show(self._words)
        self.field.action_select_all()

    def typed(self, text: str) -> None:
        """Search for other words, from the start of the search."""
        from ._matches import highlighter

        self._give_up()
        shown = self._transcript.shown
        self._transcript.highlight(highlighter(text))
        if not text or shown[2] is None:
            self._transcript.say_state("")
            self._go_back()
            self._changed()
            return
        self._words = text
        search = self._search = Search(text, shown, shown[2])
        self._changed()
        self._bridge.spawn(self._run, search, self._origin or 0)

    def action_keep(self) -> None:
        words = self.field.value
        self.close()
        if words and not self.is_active:
            self.typed(words)
        elif not words:
            self.end()
        self._transcript.focus()

    def action_drop(self) -> None:
        self.close()
        self.end(back=True)
        self._transcript.focus()

    def end(self, *, back: bool = False) -> None:
        """Remove the marks; `back` returns to the start of the search."""
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

    def go_to(self, run_id: str, offset: int, words: str) -> None:
        """Show a line of a run, at once or when its file is read, and start a search for these words there."""
        self._line = (run_id, offset, words)
        self.look()

    def look(self) -> None:
        """Show the requested line, if its file has been read; forget it if another run is shown."""
        if self._line is None:
            return
        target_run_id, offset, words = self._line
        run_id, _, path = self._transcript.shown
        if run_id != target_run_id:
            self._line = None
        elif path is not None:
            self._line = None
            self._give_up()
            self._transcript.show_offset(offset)
            self._origin, self._was_following = offset, False
            self.typed(words)

    def step(self, by: int) -> None:
        """Go to the next match (1) or the previous one (-1)."""
        if (search := self._search) is not None and self.is_active:
            self._bridge.spawn(self._step, search, by)

    def _give_up(self) -> None:
        if self._search is not None:
            self._search.over.set()
            self._search = None

    def _go_back(self) -> None:
        if self._was_following:
            self._transcript.follow(True)
        elif self._origin is not None:
            self._transcript.show_offset(self._origin)

    # --- beside the event loop -----------------------------------------------------------------------------------

    async def _run(self, search: Search, origin: int) -> None:
        """Go to the first match, then count the matches until the search is over."""
        from ._matches import find

        over = search.over.is_set
        try:
            self._say(search)
            self._go_to(search, await self._bridge.call(find, search.file, search.new_matcher, origin, 1, over), 1)
            while not over() and search.shown == self._transcript.shown:
                has_more = not search.count.full and await self._bridge.call(search.count.read_on, over)
                self._say(search)
                if not has_more:
                    await asyncio.sleep(RECOUNT_SECONDS)
            if self._search is search:
                self.end()
        finally:
            search.over.set()

    async def _step(self, search: Search, by: int) -> None:
        from ._matches import find

        async with search.stepping:
            cursor = self._transcript.cursor_offset
            here = search.match if search.match is not None and cursor == search.cursor else cursor
            if here is None or not self.is_active:
                return
            match = search.count.match_from(here, by)
            if match is None:
                start = here + 1 if by > 0 else here
                over = search.over.is_set
                match = await self._bridge.call(find, search.file, search.new_matcher, start, by, over)
            self._go_to(search, match, by)

    def _go_to(self, search: Search, match: Match, by: int) -> None:
        if search.over.is_set() or not self.is_active:
            return
        if match.offset is not None:
            self._transcript.show_offset(match.offset)
            self._transcript.show_words(search.words)
            search.match, search.cursor = match.offset, self._transcript.cursor_offset
            other_end = "beginning" if by > 0 else "end"
            search.wrapped = f"from the {other_end}" if match.wrapped else ""
        self._say(search)

    def _say(self, search: Search) -> None:
        if not search.over.is_set():
            self._transcript.say_state(search.text())
