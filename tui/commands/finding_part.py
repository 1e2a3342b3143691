"""The actions that find something in the transcript."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...core.system.line_file import LineFile
from ..dialogs.ask import AskScreen
from ..feed.views import View
from ..transcript.search.errors import Errors
from ..transcript.search.transcript_search import look_around
from ..transcript.time import FORMS, offset_at, read_wish
from .base import Commands, Deck

if TYPE_CHECKING:
    from ..transcript.search.transcript_search import Landing

TIME_HINT = f"{FORMS}."


class FindingCommands(Commands):
    """Search, go to errors and to times."""

    def __init__(self, deck: Deck) -> None:
        super().__init__(deck)
        search = deck.search
        self._looking = False
        self.table = {
            "search": search.open,
            "next_match": lambda: search.standing.step(1),
            "previous_match": lambda: search.standing.step(-1),
            "end_search": search.standing.end,
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
            landing = await self._bridge.call(
                look_around, LineFile(path), Errors(), start, by, lambda: shown != transcript.shown
            )
        finally:
            self._looking = False
        if shown == transcript.shown:
            self._land(landing, here, by)

    def _land(self, landing: Landing, here: int, by: int) -> None:
        transcript = self._deck.transcript
        if landing.hit is None:
            self._say("There is no error in this transcript.")
            return
        if landing.hit == here and not transcript.following:
            self._say("This is the only error in this transcript.")
        elif landing.around:
            self._say(f"No error {'after' if by > 0 else 'before'} this: went on from the {_OTHER_END[by]}.")
        transcript.show_offset(landing.hit)

    def _ask_time(self) -> None:
        self._app.push_screen(AskScreen(self._bridge, "Go to a time", self._go_to_time, hint=TIME_HINT))

    async def _go_to_time(self, written: str) -> bool:
        wish = read_wish(written)
        shown = self._deck.transcript.shown
        if shown[2] is None:
            return True
        offset = await self._bridge.call(offset_at, LineFile(shown[2]), wish)
        if shown == self._deck.transcript.shown:
            self._deck.transcript.show_offset(offset)
        return True


_OTHER_END = {1: "beginning", -1: "end"}
