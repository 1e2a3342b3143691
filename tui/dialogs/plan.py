"""Show the plan of a change to files or branches, and ask; obstacles are shown in the same place."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Any, cast

from textual import on
from textual.app import App, ComposeResult
from textual.containers import Horizontal, Vertical, VerticalScroll
from textual.content import Content
from textual.widgets import Button, Static

from ...core.text.plain import plain
from ...core.work.operation import Operation, Plan
from ..keys.command import KeyContext
from ..keys.keymap import bindings
from ..terminal.handover import edit_text
from .data_screen import DataScreen

MESSAGE_FILE = "COMMIT_EDITMSG"
"""Editors recognize this name."""


class PlanScreen(DataScreen[Sequence[Plan], tuple[Sequence[Plan], str] | None]):
    """Shows plans once they are made; returns them with the commit message, or None for a no.

    A refused plan can only be read.
    """

    BINDINGS = bindings(KeyContext.CONFIRM)
    CSS_PATH = "dialogs.tcss"

    def __init__(self, operation: Operation, what: str, make: Callable[[], Awaitable[Sequence[Plan]]]) -> None:
        """`make` plans the operation on `what`, a plan for each run."""
        super().__init__(make)
        self._operation = operation
        self._what = what
        self._message = ""

    def compose(self) -> ComposeResult:
        with Vertical(classes="dialog", id="plan") as dialog:
            dialog.border_title = Content(self._operation.title.format(self._what))
            with VerticalScroll(can_focus=False):
                yield Static(Content("…"), id="words")
                yield Static(id="message")
            yield Static("", id="problems")
            with Horizontal(classes="buttons"):
                yield Button("Edit message", id="edit", compact=True)
                yield Button("Cancel", id="no", compact=True)
                yield Button(Content(self._operation.verb), id="yes", variant="primary", compact=True)

    def on_mount(self) -> None:
        self.query_one("#edit").display = False
        self.query_one("#no", Button).focus()

    async def fill(self, data: Sequence[Plan]) -> None:
        self.query_one("#words", Static).update(Content("\n\n".join(plan.words for plan in data)))
        if self._is_refused:
            self.query_one("#yes").display = False
            self.query_one("#no", Button).label = "Close"
            return
        self._message = data[0].message
        self.query_one("#edit").display = bool(self._message)
        self._show_message()
        if self._operation.is_harmless:
            self.query_one("#yes", Button).focus()

    @property
    def _is_refused(self) -> bool:
        return any(plan.refusal for plan in self.data or ())

    def _show_message(self) -> None:
        if self._message:
            head = Content.styled("\nCommit message (e to edit):\n", "$text-muted")
            self.query_one("#message", Static).update(head + Content(plain(self._message)))

    @on(Button.Pressed, "#edit")
    def action_edit_message(self) -> None:
        """Edit the message in your editor."""
        if self.is_loading or not self._message:
            return
        text, problem = edit_text(cast("App[Any]", self.app), f"{self._message}\n", name=MESSAGE_FILE)
        if not problem and not text.strip():
            problem = "Enter a commit message."
        self.query_one("#problems", Static).update(Content(problem))
        if not problem:
            self._message = text.strip()
            self._show_message()

    @on(Button.Pressed, "#yes")
    def action_confirm(self) -> None:
        if self.data is not None and not self.is_loading and not self._is_refused:
            self.dismiss((self.data, self._message))

    @on(Button.Pressed, "#no")
    def action_cancel(self) -> None:
        self.dismiss(None)
