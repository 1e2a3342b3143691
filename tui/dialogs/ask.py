"""Ask for a confirmation, or for one line such as a time or a path."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable

from textual import on
from textual.app import ComposeResult
from textual.containers import Horizontal, Vertical
from textual.content import Content
from textual.events import Key
from textual.widgets import Button, Input, Static

from ...core.errors import SubdeckError
from ..feed.bridge import Bridge
from ..keys.command import KeyContext
from ..keys.keymap import bindings
from ..terminal.after_close import is_open
from ..terminal.textual_internals import DialogScreen
from ..text.format import brief_error, format_error
from .data_screen import DataScreen

TYPING_S = 1.0
"""Characters typed within this many seconds of each other count as text."""


class ConfirmScreen(DataScreen[str, bool]):
    """Asks before an action that is hard to undo; returns True only for a yes."""

    BINDINGS = bindings(KeyContext.CONFIRM)
    CSS_PATH = "dialogs.tcss"

    def __init__(
        self, question: str, detail: str | Callable[[], Awaitable[str]], yes: str, *, harmless: bool = False
    ) -> None:
        """Ask; if `detail` has to be read first, it is a function."""
        super().__init__(None if isinstance(detail, str) else detail)
        self._question = question
        self._detail = detail if isinstance(detail, str) else "…"
        self._yes = yes
        self._harmless = harmless
        """If so, Enter means yes, otherwise cancel."""

    def compose(self) -> ComposeResult:
        with Vertical(classes="dialog") as dialog:
            dialog.border_title = Content(self._question)
            yield Static(Content(self._detail), id="detail")
            with Horizontal(classes="buttons"):
                yield Button("Cancel", id="no", compact=True)
                variant = "primary" if self._harmless else "error"
                yield Button(Content(self._yes), id="yes", variant=variant, compact=True)

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


class QuitScreen(ConfirmScreen):
    """Asks before the app ends; its key for yes is not an answer while text is being typed."""

    def __init__(self, detail: str, *, is_typing: bool) -> None:
        """`is_typing`: the key that opened this may have been part of a typed text."""
        super().__init__("Quit subdeck?", detail, "Quit")
        self._written_at = time.monotonic() if is_typing else 0.0
        """Time of the last character that was not an answer."""

    def on_key(self, event: Key) -> None:
        if event.is_printable and event.key not in self.active_bindings:
            self._written_at = time.monotonic()

    def action_confirm(self) -> None:
        if time.monotonic() - self._written_at < TYPING_S:
            self.app.bell()
        else:
            super().action_confirm()


class AskScreen(DialogScreen[None]):
    """Asks for one line, and closes once it is accepted; otherwise shows why not and keeps it."""

    BINDINGS = bindings(KeyContext.ASK)
    CSS_PATH = "dialogs.tcss"

    def __init__(
        self,
        bridge: Bridge,
        title: str,
        take: Callable[[str], Awaitable[bool]],
        *,
        value: str = "",
        hint: str = "",
        field: Input | None = None,
    ) -> None:
        """`take` returns False to leave the dialog open; its errors are shown in the dialog. `field` replaces the plain
        text field.
        """
        super().__init__()
        self._bridge = bridge
        self._title = title
        self._take = take
        self._field = field or Input(value, compact=True, id="answer")
        self._hint = hint
        self._taking = False

    def compose(self) -> ComposeResult:
        with Vertical(classes="dialog", id="ask") as dialog:
            dialog.border_title = Content(self._title)
            dialog.border_subtitle = Content("⏎ continue   esc cancel")
            yield self._field
            yield Static(Content(self._hint), classes="muted", id="hint")
            yield Static("", id="problems")

    def on_mount(self) -> None:
        self._field.focus()

    @on(Input.Changed)
    def forget_problem(self) -> None:
        self._show_problem("")

    @on(Input.Submitted)
    def go_on(self, event: Input.Submitted) -> None:
        event.stop()
        if not self._taking:
            self._taking = True
            self._show_problem("")
            self._bridge.spawn(self._try, event.value)

    async def _try(self, value: str) -> None:
        try:
            taken = await self._take(value)
        except (SubdeckError, OSError) as error:
            if is_open(self):
                self._show_problem(brief_error(error))
            else:
                self._bridge.notify(format_error(error), severity="error", markup=False)
        else:
            if taken and self.is_current:
                self.dismiss()
        finally:
            self._taking = False

    def _show_problem(self, text: str) -> None:
        self.query_one("#problems", Static).update(Content(text))

    def action_cancel(self) -> None:
        if not self._taking:
            self.dismiss()
