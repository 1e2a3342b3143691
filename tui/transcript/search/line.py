"""The line in which a search of the transcript is typed."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from ...actions import KeyContext
from ...widgets.prompt_line import PromptLine
from .search import SEARCH_ACTIONS

if TYPE_CHECKING:
    from ..pane import Transcript
    from .search import TranscriptSearch


class SearchLine(PromptLine):
    """Searches as one types."""

    PLACEHOLDER = "words in the transcript"
    pane: ClassVar[KeyContext] = KeyContext.TRANSCRIPT
    """The pane it belongs to."""

    def __init__(self, transcript: Transcript, search: TranscriptSearch) -> None:
        super().__init__(id="search")
        self._transcript = transcript
        self.search = search
        """The search that is typed here."""

    def open(self) -> None:
        """Take the keys; the words searched for last are selected, so that typing replaces them."""
        self.search.begin()
        self.show(self.search.words)
        self.field.action_select_all()

    def place(self, pane: KeyContext) -> KeyContext:
        """Return where the keys are, when `pane` has them or lends them to this line."""
        if self.is_open:
            return KeyContext.FILTER
        return KeyContext.SEARCH if pane is self.pane and self.search.is_active else pane

    def allows(self, action_id: str) -> bool:
        """Return whether an action is possible as far as the search is concerned."""
        return action_id not in SEARCH_ACTIONS or self.search.is_active

    def typed(self, text: str) -> None:
        self.search.look_for(text)

    def action_keep(self) -> None:
        words = self.field.value
        self.close()
        if words and not self.search.is_active:
            self.search.look_for(words)
        elif not words:
            self.search.end()
        self._transcript.focus()

    def action_drop(self) -> None:
        self.close()
        self.search.end(back=True)
        self._transcript.focus()
