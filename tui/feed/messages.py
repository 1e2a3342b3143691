"""What the bridge reports, in the past tense: facts of the engine and of the shown run's file."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from textual.message import Message

if TYPE_CHECKING:
    from ...core.agents.choice import AgentChoice
    from ...core.presets.catalog import PresetCatalog
    from ...core.project.follower import Update
    from ...core.run.snapshot import RunSnapshot
    from .reader import Piece, RunReader


class UpdateArrived(Message, bubble=False):
    """The engine has something; the bridge itself takes it when the next frame is due."""


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
    """Runs that ended before this app looked, and were reported to nobody."""

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
