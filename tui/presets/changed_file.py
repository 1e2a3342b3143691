"""Ask what to do when a file became another one while its text was being edited."""

from __future__ import annotations

from enum import StrEnum

from textual import on
from textual.app import ComposeResult
from textual.containers import Horizontal, Vertical
from textual.content import Content
from textual.screen import ModalScreen
from textual.widgets import Button, Static

from ..actions import Place, bindings


class Choice(StrEnum):
    OVER = "over"
    """Write what was typed over what is there now."""
    RELOAD = "reload"
    """Go on with what is there now; what was typed comes back by undo."""


class ChangedFileScreen(ModalScreen[Choice]):
    """Answers None for going back to the text, which is what Enter does."""

    BINDINGS = bindings(Place.PICK)
    CSS_PATH = "../dialogs/dialogs.tcss"

    def __init__(self, what: str, path: str, *, gone: bool) -> None:
        super().__init__()
        self._what = f"{what[:1].upper()}{what[1:]}:\n{path}"
        self._gone = gone

    def compose(self) -> ComposeResult:
        said = f"{self._what}\n\nNothing was written. Your text stays in the editor."
        if not self._gone:
            said += "\nReloading puts the file's text in its place; ^z there brings yours back."
        with Vertical(classes="dialog") as dialog:
            dialog.border_title = "Not saved yet"
            yield Static(Content(said), id="detail")
            with Horizontal(classes="buttons"):
                yield Button("Back to the text", id="back", compact=True)
                if not self._gone:
                    yield Button("Reload", id=Choice.RELOAD, compact=True)
                yield Button("Write it again" if self._gone else "Write over", id=Choice.OVER, compact=True)

    def on_mount(self) -> None:
        self.query_one("#back", Button).focus()

    @on(Button.Pressed, "#over")
    def write_over(self) -> None:
        self.dismiss(Choice.OVER)

    @on(Button.Pressed, "#reload")
    def reload(self) -> None:
        self.dismiss(Choice.RELOAD)

    @on(Button.Pressed, "#back")
    def action_cancel(self) -> None:
        self.dismiss(None)
