"""Choose one of a few rows."""

from __future__ import annotations

from collections.abc import Sequence

from textual import on
from textual.app import ComposeResult
from textual.containers import Vertical
from textual.content import Content
from textual.widgets import OptionList
from textual.widgets.option_list import Option

from ..keys.command import KeyContext
from ..keys.keymap import bindings
from ..terminal.textual_internals import DialogScreen


class PickScreen(DialogScreen[int | None]):
    """Returns the number of the chosen row, from 0."""

    BINDINGS = bindings(KeyContext.PICK)
    CSS_PATH = "dialogs.tcss"

    def __init__(self, title: str, rows: Sequence[str], *, end: str, at: int = 0, wraps: bool = False) -> None:
        """Offer rows of plain text; `end` names the effect of Enter, `at` is the first row with the cursor; long rows
        are cut unless they wrap.
        """
        super().__init__(classes="-wraps" if wraps else None)
        self._title = title
        self._rows = rows
        self._end = end
        self._at = at

    def compose(self) -> ComposeResult:
        with Vertical(classes="dialog", id="pick") as dialog:
            dialog.border_title = Content(self._title)
            dialog.border_subtitle = Content(f"⏎ {self._end}   esc cancel")
            yield OptionList(*(Option(Content(row)) for row in self._rows), markup=False, compact=True)

    def on_mount(self) -> None:
        rows = self.query_one(OptionList)
        rows.highlighted = self._at
        rows.focus()

    @on(OptionList.OptionSelected)
    def take(self, event: OptionList.OptionSelected) -> None:
        self.dismiss(event.option_index)

    def action_cancel(self) -> None:
        self.dismiss(None)
