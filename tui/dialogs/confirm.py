"""Ask before something that cannot be taken back lightly; cancel is what Enter does."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from textual import on
from textual.app import ComposeResult
from textual.containers import Horizontal, Vertical
from textual.content import Content
from textual.widgets import Button, Static

from ..actions import KeyContext, bindings
from .loading import LoadingScreen


class ConfirmScreen(LoadingScreen[str, bool]):
    """Returns True only when the operator said yes."""

    BINDINGS = bindings(KeyContext.CONFIRM)
    CSS_PATH = "dialogs.tcss"

    def __init__(
        self, question: str, detail: str | Callable[[], Awaitable[str]], yes: str, *, harmless: bool = False
    ) -> None:
        """Ask; a `detail` that has to be read first is called for it."""
        super().__init__(None if isinstance(detail, str) else detail)
        self._question = question
        self._detail = detail if isinstance(detail, str) else "…"
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

    async def fill(self, data: str) -> None:
        self.query_one("#detail", Static).update(Content(data))

    def on_mount(self) -> None:
        self.query_one("#yes" if self._harmless else "#no", Button).focus()

    @on(Button.Pressed, "#yes")
    def action_confirm(self) -> None:
        if not self.is_loading:
            self.dismiss(True)

    @on(Button.Pressed, "#no")
    def action_cancel(self) -> None:
        self.dismiss(False)
