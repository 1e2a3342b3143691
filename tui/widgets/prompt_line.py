"""The line at the foot of a pane for typing a filter or a search."""

from __future__ import annotations

from typing import TYPE_CHECKING

from textual.containers import Horizontal
from textual.events import DescendantBlur
from textual.widgets import Static

from ..keys.command import KeyContext
from ..keys.keymap import bindings

if TYPE_CHECKING:
    from textual.widgets import Input

    from .prompt_input import PromptInput


class PromptLine(Horizontal):
    """Visible only while you type; Enter keeps the text, Escape discards it."""

    BINDINGS = bindings(KeyContext.FILTER)
    DEFAULT_CSS = """
    PromptLine {
        display: none;
        height: 1;
        padding: 0 1;
        background: $surface;
        & > #sign { width: 2; color: $text-primary; }
        & > PromptInput { width: 1fr; background: $surface; }
        & > #note { width: auto; max-width: 70%; color: $text-error; text-wrap: nowrap; text-overflow: ellipsis; }
    }
    """
    PLACEHOLDER = ""

    @property
    def is_open(self) -> bool:
        return bool(self.display)

    @property
    def field(self) -> PromptInput:
        from .prompt_input import PromptInput

        return self.query_one(PromptInput)

    def typed(self, text: str) -> None:
        """React to a change; `text` is the whole line."""

    def left(self) -> None:
        """Close the line: another pane has the focus."""
        self.close()

    def action_keep(self) -> None:
        raise NotImplementedError

    def action_drop(self) -> None:
        raise NotImplementedError

    def show(self, text: str) -> None:
        """Open with this text and take the focus."""
        if not self.children:  # a field would cost the first paint more than the line is worth there
            from .prompt_input import PromptInput

            field = PromptInput(placeholder=self.PLACEHOLDER, compact=True, select_on_focus=False)
            self.mount(Static("/", id="sign"), field, Static(id="note"))
        self.display = True
        field = self.field
        with field.prevent(field.Changed):
            field.value = text
        field.cursor_position = len(text)
        field.focus()

    def close(self) -> None:
        self.display = False

    def on_input_changed(self, event: Input.Changed) -> None:
        event.stop()
        if self.is_open:
            self.typed(event.value)

    def on_input_submitted(self, event: Input.Submitted) -> None:
        event.stop()
        self.action_keep()

    def on_descendant_blur(self, _: DescendantBlur) -> None:
        """Close the line when another pane takes the focus: a dialog or another window returns it."""
        if self.is_open and self.app.app_focus and self.app.screen is self.screen:
            self.left()
