"""The field that holds the text of a preset's file."""

from __future__ import annotations

from typing import ClassVar

from rich.text import Text
from textual.binding import Binding, BindingType

from ...core.text.placeholders import decode, display, encode
from ..actions import KeyContext, bindings
from ..terminal.textual_internals import drop_bindings
from ..widgets.text_area import PlainTextArea

EDITOR_KEYS = frozenset(binding.key for binding in bindings(KeyContext.EDIT) if not isinstance(binding, tuple))
"""Keys that Textual gives to text areas and the editor to something else."""


class PresetArea(PlainTextArea):
    """Holds placeholders for the characters that a screen cannot take."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("ctrl+home", "go_to_end(False)", show=False),
        Binding("ctrl+end", "go_to_end(True)", show=False),
    ]

    def __init__(self, text: str) -> None:
        super().__init__(encode(text), show_line_numbers=True, soft_wrap=True, tab_behavior="focus", id="text")
        drop_bindings(self, EDITOR_KEYS)

    @property
    def written(self) -> str:
        """The text as it goes into the file."""
        return decode(self.text)

    def put(self, text: str) -> None:
        super().put(encode(text))

    def action_go_to_end(self, last: bool) -> None:
        """Put the cursor at the end of the text, or at its beginning."""
        self.move_cursor(self.document.end if last else (0, 0))

    def go_to_line(self, line: int) -> None:
        """Put the cursor on a line, from 1."""
        self.move_cursor((min(line, self.document.line_count) - 1, 0), center=True)

    def get_line(self, line_index: int) -> Text:
        return Text(display(self.document.get_line(line_index)), end="", no_wrap=True)
