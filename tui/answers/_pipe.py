"""The dialog that asks for a command and its input."""

from __future__ import annotations

from enum import StrEnum
from typing import ClassVar

from msgspec import Struct
from textual import on
from textual.app import ComposeResult
from textual.containers import Vertical
from textual.content import Content
from textual.widgets import Input, Static

from ..keys.command import KeyContext
from ..keys.keymap import bindings
from ..terminal.textual_internals import DialogScreen
from ..widgets.form import Choice, Field

HINT = "Runs in your shell with the text as stdin, such as: wc -w, less, tee notes.md"


class Piped(StrEnum):
    """A command's input."""

    ANSWER = "answer"
    TRANSCRIPT = "transcript"
    """As shown, but with everything unfolded."""


class Pipe(Struct, frozen=True):
    command: str
    source: Piped


class PipeScreen(DialogScreen[Pipe | None]):
    """Returns the command and its input."""

    BINDINGS = bindings(KeyContext.ASK)
    CSS_PATH: ClassVar = "../dialogs/dialogs.tcss"

    def __init__(self, title: str, proposed: Pipe) -> None:
        super().__init__()
        self._title = title
        self._proposed = proposed

    def compose(self) -> ComposeResult:
        with Vertical(classes="dialog", id="pipe") as dialog:
            dialog.border_title = Content(self._title)
            dialog.border_subtitle = Content("⏎ run   tab text   esc cancel")
            command = Input(self._proposed.command, placeholder="shell command", compact=True, id="command")
            yield Field("Command", command)
            yield Field("Text", Choice(tuple(Piped), self._proposed.source, name="source"))
            yield Static(Content(HINT), classes="muted", id="hint")

    def on_mount(self) -> None:
        command = self.query_one("#command", Input)
        command.focus()
        command.action_select_all()

    @on(Input.Submitted)
    def run_command(self, event: Input.Submitted) -> None:
        event.stop()
        if event.value.strip():
            self.dismiss(Pipe(event.value, Piped(self.query_one("#source", Choice).value)))

    def action_cancel(self) -> None:
        self.dismiss(None)
