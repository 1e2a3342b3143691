"""Ask before something that cannot be taken back lightly; cancel is what Enter does."""

from __future__ import annotations

from textual import on
from textual.app import ComposeResult
from textual.containers import Horizontal, Vertical
from textual.content import Content
from textual.screen import ModalScreen
from textual.widgets import Button, Static

from ..actions import KeyContext, bindings


class ConfirmScreen(ModalScreen[bool]):
    """Answers True only when the operator said yes."""

    BINDINGS = bindings(KeyContext.CONFIRM)
    CSS_PATH = "dialogs.tcss"

    def __init__(self, question: str, detail: str, yes: str, *, harmless: bool = False) -> None:
        super().__init__()
        self._question = question
        self._detail = detail
        self._yes = yes
        self._harmless = harmless
        """True where going on is what Enter does."""

    def compose(self) -> ComposeResult:
        with Vertical(classes="dialog") as dialog:
            dialog.border_title = Content(self._question)
            yield Static(Content(self._detail), id="detail")
            with Horizontal(classes="buttons"):
                yield Button("Cancel", id="no", compact=True)
                yield Button(
                    Content(self._yes), id="yes", variant="primary" if self._harmless else "error", compact=True
                )

    def on_mount(self) -> None:
        self.query_one("#yes" if self._harmless else "#no", Button).focus()

    @on(Button.Pressed, "#yes")
    def action_confirm(self) -> None:
        self.dismiss(True)

    @on(Button.Pressed, "#no")
    def action_cancel(self) -> None:
        self.dismiss(False)
