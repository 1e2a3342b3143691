"""What the panes report to the deck, in the past tense."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from textual.message import Message

if TYPE_CHECKING:
    from .feed.lines import View


@dataclass
class ViewChosen(Message):
    """The shown run is to be looked at in another way."""

    run_id: str
    view: View


@dataclass
class RunHighlighted(Message):
    run_id: str | None


@dataclass
class PresetHighlighted(Message):
    name: str | None


class RowChosen(Message):
    """A row was clicked a second time: what Enter does."""
