"""The launch dialog before the presets are read: you can already type the task, and nothing typed is lost."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import ClassVar

from msgspec import Struct
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, Vertical
from textual.widgets import Static

from ..keys.command import KeyContext
from ..keys.keymap import bindings
from ..terminal.textual_internals import DialogScreen
from ..widgets.form import PlainTextArea

ACTIONS = ("start", "cancel")
"""Actions that work here; the other keys of the launch dialog work once the presets are read."""
WAITS = "Reading presets…"
WILL_LAUNCH = "Reading presets… The run launches when they are ready."


class TypedTask(Struct, frozen=True):
    """Input typed before the dialog opened."""

    text: str = ""
    launch: bool = False
    """Whether the launch key was also pressed."""


class EarlyScreen(DialogScreen[None]):
    """Takes the task until `proceed` is called, and passes it to the dialog that replaces it."""

    CSS_PATH: ClassVar = ["../dialogs/dialogs.tcss", "launch.tcss"]
    BINDINGS: ClassVar[list[BindingType]] = [
        replace(binding, priority=True) for binding in bindings(KeyContext.LAUNCH) if isinstance(binding, Binding)
    ]
    VERTICAL_BREAKPOINTS = [(0, "-low"), (28, "-high"), (40, "-tall")]  # noqa: RUF012 - Textual declares it as it is

    def __init__(self, keys: str, then: Callable[[TypedTask], None], keep: Callable[[str], None]) -> None:
        """`keys` is the line of keys that launch and leave; `then` opens the dialog, `keep` keeps the text after
        Escape.
        """
        super().__init__()
        self._keys = keys
        self._then = then
        self._keep = keep
        self._launch = False

    def compose(self) -> ComposeResult:
        with Vertical(classes="dialog", id="launch") as dialog:
            dialog.border_title = "Launch"
            yield PlainTextArea(id="task", placeholder="What should the agent do?", compact=True)
            yield Static(WAITS, classes="muted", id="waits")
            with Horizontal(classes="buttons"):
                yield Static(self._keys, classes="muted", id="keys", markup=False)

    def on_mount(self) -> None:
        self._area.focus()

    @property
    def _area(self) -> PlainTextArea:
        return self.query_one("#task", PlainTextArea)

    def proceed(self) -> None:
        """Replace this dialog, after the keys that its field has already received."""
        if self.is_attached:
            self._area.call_later(self._replace)

    def _replace(self) -> None:
        if not self.is_current:
            return
        typed = TypedTask(self._area.text, self._launch)
        self.dismiss(None)
        self._then(typed)  # at once: no key in between may reach the deck

    def action_start(self) -> None:
        self._launch = True
        self.query_one("#waits", Static).update(WILL_LAUNCH)

    def action_cancel(self) -> None:
        if self._area.text.strip():
            self._keep(self._area.text)
        self.dismiss(None)
