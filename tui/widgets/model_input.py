"""Ask for a model: free text, completed from those that are known."""

from __future__ import annotations

from typing import ClassVar

from textual.binding import Binding, BindingType
from textual.suggester import SuggestFromList
from textual.widgets import Input

PLACEHOLDER = "provider/id or @role"


class ModelInput(Input):
    """Right takes the completion; down and up go through the known models that have what was typed in them."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("down", "choose(1)", show=False),
        Binding("up", "choose(-1)", show=False),
    ]

    def __init__(self, value: str) -> None:
        super().__init__(value, id="model", compact=True, placeholder=PLACEHOLDER)
        self._known: tuple[str, ...] = ()
        self._typed = ""
        """What was written last, and not chosen."""
        self._chosen = value

    @property
    def known(self) -> tuple[str, ...]:
        return self._known

    def offer(self, models: tuple[str, ...]) -> None:
        """Know these models from now on; what is written stays as it is."""
        self._known = models
        self.suggester = SuggestFromList(models, case_sensitive=False) if models else None
        self.placeholder = f"{PLACEHOLDER}; ↓ for known ones" if models else PLACEHOLDER

    def action_choose(self, step: int) -> None:
        if self.value != self._chosen:
            self._typed = "" if self.value in self._known else self.value
        typed = self._typed.strip().lower()
        matching = [model for model in self._known if typed in model.lower()]
        if not matching:
            return
        before = matching.index(self.value) if self.value in matching else (-1 if step > 0 else 0)
        self._chosen = self.value = matching[(before + step) % len(matching)]
        self.cursor_position = len(self.value)
