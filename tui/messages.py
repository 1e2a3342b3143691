"""What the panes report to the deck, in the past tense."""

from __future__ import annotations

from typing import TYPE_CHECKING

from textual.message import Message

if TYPE_CHECKING:
    from .feed.lines import View


class ViewChosen(Message):
    """The shown run is to be looked at in another way."""

    def __init__(self, run_id: str, view: View) -> None:
        super().__init__()
        self.run_id = run_id
        self.view = view


class RunHighlighted(Message):
    def __init__(self, run_id: str | None) -> None:
        super().__init__()
        self.run_id = run_id


class PresetHighlighted(Message):
    def __init__(self, name: str | None) -> None:
        super().__init__()
        self.name = name


class RowChosen(Message):
    """A row was clicked a second time: what Enter does."""
