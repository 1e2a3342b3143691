"""The operator's actions by their ids in the registry."""

from __future__ import annotations

from ..deck.protocol import DeckView, Handlers
from .attach import AttachCommands
from .clean_up import CleaningCommands
from .deck import DeckCommands
from .detail import DetailCommands
from .doctor import DoctorCommands
from .export import ExportCommands
from .launch import LaunchCommands
from .presets import PresetCommands
from .run_list import RunListCommands
from .runs import RunCommands
from .transcript import FindingCommands, TranscriptCommands

_ALL = (
    PresetCommands,
    LaunchCommands,
    RunListCommands,
    RunCommands,
    AttachCommands,
    TranscriptCommands,
    FindingCommands,
    ExportCommands,
    DeckCommands,
    DoctorCommands,
    DetailCommands,
    CleaningCommands,
)


def handlers(deck: DeckView) -> Handlers:
    """Return what each action does on this deck."""
    return {action_id: handler for commands in _ALL for action_id, handler in commands(deck).table.items()}
