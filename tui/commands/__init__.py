"""The operator's actions by their ids in the registry."""

from __future__ import annotations

from ..deck.protocol import DeckView, Handlers
from .deck import DeckCommands, DoctorCommands, TellingCommands
from .launch import LaunchCommands
from .presets import PresetCommands
from .runs import AttachCommands, CleaningCommands, RunCommands, RunListCommands
from .transcript import DetailCommands, ExportCommands, FindingCommands, TranscriptCommands

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
    TellingCommands,
    DetailCommands,
    CleaningCommands,
)


def handlers(deck: DeckView) -> Handlers:
    """Return what each action does on this deck."""
    return {action_id: handler for commands in _ALL for action_id, handler in commands(deck).table.items()}
