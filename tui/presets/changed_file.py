"""The question what to do when a preset's file was changed by somebody else while it was edited."""

from __future__ import annotations

from enum import StrEnum

from textual import on
from textual.app import ComposeResult
from textual.containers import Horizontal, Vertical
from textual.content import Content
from textual.screen import ModalScreen
from textual.widgets import Button, Static

from ..actions import KeyContext, bindings


class Resolution(StrEnum):
    OVERWRITE = "overwrite"
    """Replace what is in the file now by what was typed."""
    RELOAD = "reload"
    """Edit what is in the file now; undo brings back what was typed."""


class ChangedFileScreen(ModalScreen[Resolution]):
    """Returns None for going back to the text, which is what Enter does."""

    BINDINGS = bindings(KeyContext.PICK)
    CSS_PATH = "../dialogs/dialogs.tcss"

    def __init__(self, what: str, path: str, *, gone: bool) -> None:
        super().__init__()
        self._what = f"{what[:1].upper()}{what[1:]}:\n{path}"
        self._gone = gone

    def compose(self) -> ComposeResult:
        text = f"{self._what}\n\nNothing was written. Your text is still in the editor."
        if not self._gone:
            text += "\nReload replaces it with the file's text; ^z brings yours back."
        with Vertical(classes="dialog") as dialog:
            dialog.border_title = "Not saved yet"
            yield Static(Content(text), id="detail")
            with Horizontal(classes="buttons"):
                yield Button("Back to the text", id="back", compact=True)
                if not self._gone:
                    yield Button("Reload", id=Resolution.RELOAD, compact=True)
                yield Button("Write it again" if self._gone else "Overwrite", id=Resolution.OVERWRITE, compact=True)

    def on_mount(self) -> None:
        self.query_one("#back", Button).focus()

    @on(Button.Pressed)
    def choose(self, event: Button.Pressed) -> None:
        self.dismiss(None if event.button.id == "back" else Resolution(event.button.id))

    def action_cancel(self) -> None:
        self.dismiss(None)
