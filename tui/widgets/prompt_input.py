"""The field of a prompt line; a separate module, because Textual's field is loaded when the first line opens."""

from __future__ import annotations

from textual.events import Paste
from textual.widgets import Input

from ...core.text.plain import one_line

LONGEST = 500
"""Maximum number of pasted characters."""


class PromptInput(Input):
    """Takes one line of plain text."""

    def on_paste(self, event: Paste) -> None:
        # Input would insert the first pasted line unchanged.
        event.text = one_line(event.text, LONGEST)
