"""Ask for a small number."""

from __future__ import annotations

from typing import ClassVar

from textual.binding import Binding, BindingType
from textual.widgets import Input


class CountInput(Input):
    """Takes digits; up and down count."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("up", "count(1)", show=False),
        Binding("down", "count(-1)", show=False),
    ]

    def __init__(self, value: str, most: int, *, name: str) -> None:
        super().__init__(value, id=name, compact=True, restrict=r"[0-9]*", max_length=len(str(most)))
        self._most = most

    def action_count(self, step: int) -> None:
        now = int(self.value) if self.value.isdecimal() else 0
        self.value = str(max(1, min(self._most, now + step)))
        self.cursor_position = len(self.value)
