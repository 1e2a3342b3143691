"""The actions on the transcript: follow, wrap, unfold, search, and go to errors and times."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...core.system.line_file import LineFile
from ..deck.protocol import DeckView
from ..dialogs.ask import AskScreen
from ..feed.views import View
from ..transcript.query import error_matcher
from ..transcript.scanner import find
from ..transcript.time import FORMS, offset_at, parse_time
from .base import Commands

if TYPE_CHECKING:
    from ..transcript.scanner import Match


class TranscriptCommands(Commands):
    """Follow, wrap, open what is folded, show it otherwise."""

    def __init__(self, deck: DeckView) -> None:
        super().__init__(deck)
        transcript = deck.transcript
        views = list(View)
        self.table = {
            "open_entry": transcript.toggle_at_cursor,
            "open_all": transcript.toggle_all,
            "view": lambda: transcript.set_view(views[(views.index(View(transcript.view)) + 1) % len(views)]),
            "follow": lambda: transcript.follow(not transcript.following),
            "wrap": lambda: transcript.set_wrap(not transcript.wrapped),
        }


TIME_HINT = f"{FORMS}."


class FindingCommands(Commands):
    """Search, go to errors and to times."""

    def __init__(self, deck: DeckView) -> None:
        super().__init__(deck)
        search = deck.search
        self._looking = False
        self.table = {
            "search": search.open,
            "next_match": lambda: search.step(1),
            "previous_match": lambda: search.step(-1),
            "end_search": search.end,
            "next_error": lambda: self._go_to_error(1),
            "previous_error": lambda: self._go_to_error(-1),
            "go_to_time": self._ask_time,
        }

    def _go_to_error(self, by: int) -> None:
        transcript = self._deck.transcript
        if transcript.view == View.STDERR:
            self._say(f"Nothing is marked as an error in stderr; {self._key('search')} searches it for words.")
        elif transcript.source_path is not None and not self._looking:
            self._looking = True
            self._spawn(self._find_error, transcript.source_path, by)

    async def _find_error(self, path: str, by: int) -> None:
        transcript = self._deck.transcript
        shown = transcript.shown
        here = transcript.cursor_offset or 0
        # While the end is followed no line is chosen: an error in the last one is a previous one.
        start = here + (1 if by > 0 or transcript.following else 0)
        try:
            match = await self._bridge.call(
                find, LineFile(path), error_matcher, start, by, lambda: shown != transcript.shown
            )
        finally:
            self._looking = False
        if shown == transcript.shown:
            self._go_to_match(match, here, by)

    def _go_to_match(self, match: Match, here: int, by: int) -> None:
        transcript = self._deck.transcript
        if match.offset is None:
            self._say("There is no error in this transcript.")
            return
        if match.offset == here and not transcript.following:
            self._say("This is the only error in this transcript.")
        elif match.wrapped:
            self._say(f"No error {'after' if by > 0 else 'before'} this one: continued from the {_OTHER_END[by]}.")
        transcript.show_offset(match.offset)

    def _ask_time(self) -> None:
        self._app.push_screen(AskScreen(self._bridge, "Go to a time", self._go_to_time, hint=TIME_HINT))

    async def _go_to_time(self, written: str) -> bool:
        time = parse_time(written)
        shown = self._deck.transcript.shown
        if shown[2] is None:
            return True
        offset = await self._bridge.call(offset_at, LineFile(shown[2]), time)
        if shown == self._deck.transcript.shown:
            self._deck.transcript.show_offset(offset)
        return True


_OTHER_END = {1: "beginning", -1: "end"}
