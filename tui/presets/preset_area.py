"""The text of a preset's file, every character of it, none of them raw."""

from __future__ import annotations

from typing import ClassVar

from rich.text import Text
from textual.binding import Binding, BindingType
from textual.events import Paste
from textual.widgets import TextArea

from ...core.text.placeholders import held, released, shown
from ...core.text.plain import plain
from ..actions import Place, bindings

OURS = frozenset(binding.key for binding in bindings(Place.EDIT) if not isinstance(binding, tuple))
"""Keys that Textual gives to text areas and the editor to something else."""


class PresetArea(TextArea):
    """Holds the file's text with stand-ins for what a screen cannot take; Tab leaves it."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("ctrl+home", "go_to_end(False)", show=False),
        Binding("ctrl+end", "go_to_end(True)", show=False),
    ]

    def __init__(self, text: str) -> None:
        super().__init__(held(text), show_line_numbers=True, soft_wrap=True, tab_behavior="focus", id="text")
        for key in OURS & self._bindings.key_to_bindings.keys():
            del self._bindings.key_to_bindings[key]

    @property
    def written(self) -> str:
        """The text as it goes into the file."""
        return released(self.text)

    def put(self, text: str) -> None:
        """Replace the text; what stood there comes back by undo."""
        self.history.checkpoint()
        self.replace(held(text), (0, 0), self.document.end, maintain_selection_offset=False)
        self.history.checkpoint()

    def action_go_to_end(self, last: bool) -> None:
        """Put the cursor at the end of the text, or at its beginning."""
        self.move_cursor(self.document.end if last else (0, 0))

    def go_to_line(self, line: int) -> None:
        """Put the cursor on a line, from 1."""
        self.move_cursor((min(line, self.document.line_count) - 1, 0), center=True)

    def get_line(self, line_index: int) -> Text:
        return Text(shown(self.document.get_line(line_index)), end="", no_wrap=True)

    def on_paste(self, event: Paste) -> None:
        # Terminals send a carriage return for each newline of what is pasted.
        event.text = plain(event.text.replace("\r\n", "\n").replace("\r", "\n"))
