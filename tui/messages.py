"""What the bridge, the widgets and the screens tell each other: past tense for facts, a noun for a wish."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from textual.message import Message

if TYPE_CHECKING:
    from ..core.engine import AgentChoice
    from ..core.follow import Update
    from ..core.presets import PresetCatalog
    from ..core.runs import RunSnapshot
    from .transcript_reader import Piece, TranscriptReader


class UpdateArrived(Message, bubble=False):
    """The engine has something; the bridge itself takes it when the next frame is due."""

    def can_replace(self, message: Message) -> bool:
        return isinstance(message, UpdateArrived)


@dataclass
class RunsChanged(Message):
    """Everything that changed since the message before, merged."""

    update: Update


@dataclass
class PresetsRead(Message):
    catalog: PresetCatalog


@dataclass
class AgentChosen(Message):
    """Which program a launch would use now."""

    agent: AgentChoice | None
    problem: str = ""
    """Why there is none."""


@dataclass
class UnseenFound(Message):
    """Runs that ended before this app looked, and were told to nobody."""

    runs: tuple[RunSnapshot, ...]


@dataclass
class EngineFailed(Message):
    """An engine call in the background went wrong; `what` is for a person."""

    what: str


@dataclass
class TranscriptRead(Message):
    """The next piece of the shown run's transcript."""

    reader: TranscriptReader
    piece: Piece


@dataclass
class RunHighlighted(Message):
    run_id: str | None


@dataclass
class PresetHighlighted(Message):
    name: str | None


class RowChosen(Message):
    """A row was clicked a second time: what Enter does."""
