"""The field of a prompt line; a module of its own, for Textual's field is loaded when the first line opens."""

from __future__ import annotations

from textual.events import Paste
from textual.widgets import Input

from ...core.text.plain import one_line

LONGEST = 500
"""Characters that are pasted at most."""


class PromptInput(Input):
    """Takes one line of plain text."""

    def on_paste(self, event: Paste) -> None:
        # Input inserts the first line of what is pasted, as it is.
        event.text = one_line(event.text, LONGEST)
