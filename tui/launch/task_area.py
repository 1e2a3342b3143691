"""A text area into which nothing can be put that a terminal would obey."""

from __future__ import annotations

from textual.events import Paste
from textual.widgets import TextArea

from ...core.text.plain import plain


class TaskArea(TextArea):
    """Takes several lines; Tab leaves it."""

    def on_paste(self, event: Paste) -> None:
        # Terminals send a carriage return for each newline of what is pasted.
        event.text = plain(event.text.replace("\r\n", "\n").replace("\r", "\n"))

    def put(self, text: str) -> None:
        """Replace the text; what stood there comes back by undo."""
        self.history.checkpoint()
        self.replace(plain(text), (0, 0), self.document.end, maintain_selection_offset=False)
        self.history.checkpoint()
