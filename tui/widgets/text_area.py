"""A field of several lines: what is pasted is made plain, a text that is put into it can be undone, Tab leaves it."""

from __future__ import annotations

from textual.events import Paste
from textual.widgets import TextArea

from ...core.text.plain import plain


class PlainTextArea(TextArea):
    def on_paste(self, event: Paste) -> None:
        # Terminals send a carriage return for each newline of what is pasted.
        event.text = plain(event.text.replace("\r\n", "\n").replace("\r", "\n"))

    def put(self, text: str) -> None:
        """Replace the text; undo brings the former one back."""
        self.history.checkpoint()
        self.replace(text, (0, 0), self.document.end, maintain_selection_offset=False)
        self.history.checkpoint()
