"""The one line in which a search is written, below the transcript."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from textual.containers import Horizontal
from textual.widgets import Input, Static

from ...actions import KeyContext, bindings
from ...runs.filter_line import FilterInput
from .transcript_search import MODE

if TYPE_CHECKING:
    from ..pane import Transcript
    from .transcript_search import TranscriptSearch


class SearchLine(Horizontal):
    """Is there only while somebody writes; Enter keeps the search, Escape takes it back."""

    BINDINGS = bindings(KeyContext.FILTER)
    DEFAULT_CSS = """
    SearchLine { display: none; height: 1; padding: 0 1; background: $surface; }
    SearchLine #sign { width: 2; color: $text-primary; }
    SearchLine Input { width: 1fr; background: $surface; }
    """

    pane: ClassVar[KeyContext] = KeyContext.TRANSCRIPT
    """The pane it belongs to."""

    def __init__(self, transcript: Transcript, standing: TranscriptSearch) -> None:
        super().__init__(id="search")
        self._transcript = transcript
        self.standing = standing
        """The search that is written here."""

    @property
    def is_open(self) -> bool:
        return bool(self.display)

    def open(self) -> None:
        """Take the keys; words from before are there to be written over."""
        self.standing.begin()
        if not self.children:  # not at the start: a field costs the first paint more than the line is worth there
            self.mount(Static("/", id="sign"), FilterInput(placeholder="words in the transcript", compact=True))
        self.display = True
        field = self.query_one(Input)
        with field.prevent(Input.Changed):
            field.value = self.standing.words
        field.focus()
        field.action_select_all()

    def place(self, pane: KeyContext) -> KeyContext:
        """Return where the keys are, when `pane` has them or lends them to this line."""
        if self.is_open:
            return KeyContext.FILTER
        return KeyContext.SEARCH if pane is self.pane and self.standing.stands else pane

    def allows(self, action_id: str) -> bool:
        """Whether the mode that an action belongs to is there."""
        return action_id not in MODE or self.standing.stands

    def on_input_changed(self, event: Input.Changed) -> None:
        event.stop()
        if self.is_open:
            self.standing.look_for(event.value)

    def on_input_submitted(self, event: Input.Submitted) -> None:
        event.stop()
        self.action_keep()

    def on_descendant_blur(self) -> None:
        """Keep what was written when the keys went elsewhere; a dialog or another window gives them back."""
        if self.is_open and self.app.app_focus and self.app.screen is self.screen:
            self._close()

    def action_keep(self) -> None:
        words = self.query_one(Input).value
        self._close()
        if words and not self.standing.stands:
            self.standing.look_for(words)
        elif not words:
            self.standing.end()
        self._transcript.focus()

    def action_drop(self) -> None:
        self._close()
        self.standing.end(back=True)
        self._transcript.focus()

    def _close(self) -> None:
        self.display = False
