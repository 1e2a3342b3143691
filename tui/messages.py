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
    from .reading.reader import Piece, RunReader
    from .reading.views import View


class UpdateArrived(Message, bubble=False):
    """The engine has something; the bridge itself takes it when the next frame is due."""

    def can_replace(self, message: Message) -> bool:
        return isinstance(message, UpdateArrived)


class PieceArrived(Message, bubble=False):
    """Something of the shown run was read; the bridge itself hands it out."""


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
class ProjectWent(Message):
    """The project's directory is not where it was, or there again."""

    is_here: bool


@dataclass
class EngineFailed(Message):
    """An engine call in the background went wrong; `what` is for a person."""

    what: str


@dataclass
class TranscriptRead(Message):
    """The next piece of the shown run's transcript."""

    reader: RunReader
    piece: Piece


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
