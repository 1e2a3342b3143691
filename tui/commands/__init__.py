"""The operator's actions by their ids in the registry."""

from __future__ import annotations

from collections.abc import Callable

from ..deck.protocol import DeckView
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


Handlers = dict[str, Callable[[], object]]
"""What to call for each action, by its id."""


def handlers(deck: DeckView) -> Handlers:
    """Return what each action does on this deck."""
    return {action_id: deed for commands in _ALL for action_id, deed in commands(deck).table.items()}
