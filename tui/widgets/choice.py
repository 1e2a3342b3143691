"""One of a few words, on one line: `(•) process  ( ) tmux`."""

from __future__ import annotations

from typing import ClassVar

from textual.binding import Binding, BindingType
from textual.content import Content
from textual.events import Click
from textual.message import Message
from textual.widget import Widget


class Choice(Widget, can_focus=True):
    """A form's field; marks what is chosen by a sign, not by colour alone. Enter goes on to the next field."""

    DEFAULT_CSS = """
    Choice {
        height: 1;
        width: 1fr;
        &:focus { background: $primary 25%; }
    }
    """
    ALLOW_SELECT = False
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("left,up", "choose(-1)", show=False),
        Binding("right,down,space", "choose(1)", show=False),
        Binding("enter", "go_on", show=False),
    ]

    class Changed(Message):
        """Another word was chosen."""

    def __init__(self, words: tuple[str, ...], chosen: str, *, name: str) -> None:
        super().__init__(id=name)
        self._words = words
        self.value = chosen if chosen in words else words[0]

    def action_choose(self, step: int) -> None:
        self._choose(self._words[(self._words.index(self.value) + step) % len(self._words)])

    def action_go_on(self) -> None:
        self.screen.focus_next()

    def put(self, word: str) -> None:
        """Choose a word, if it is one of these."""
        if word in self._words:
            self._choose(word)

    def on_click(self, event: Click) -> None:
        end = 0
        for word in self._words:
            end += len(word) + 6
            if event.x < end:
                self._choose(word)
                return

    def render(self) -> Content:
        return Content("  ").join(self._shown(word) for word in self._words)

    def _shown(self, word: str) -> Content:
        return Content.styled(f"(•) {word}", "bold") if word == self.value else Content.styled(f"( ) {word}", "dim")

    def _choose(self, word: str) -> None:
        if word != self.value:
            self.value = word
            self.refresh()
            self.post_message(self.Changed())
