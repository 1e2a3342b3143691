"""A text area into which nothing can be pasted that a terminal would obey."""

from __future__ import annotations

from textual.events import Paste
from textual.widgets import TextArea

from ...core.plain import plain


class TaskArea(TextArea):
    """Takes several lines; Tab leaves it."""

    def on_paste(self, event: Paste) -> None:
        # Terminals send a carriage return for each newline of what is pasted.
        event.text = plain(event.text.replace("\r\n", "\n").replace("\r", "\n"))
