"""The operator's actions by their ids in the registry."""

from __future__ import annotations

from collections.abc import Callable

from .attaching_part import AttachCommands
from .base import Deck
from .cleaning_part import CleaningCommands
from .deck import DeckCommands
from .detail_part import DetailCommands
from .doctor_part import DoctorCommands
from .finding_part import FindingCommands
from .launch import LaunchCommands
from .presets import PresetCommands
from .run_list_part import RunListCommands
from .runs import RunCommands
from .taking_out_part import TakingOutCommands
from .telling_part import TellingCommands
from .transcript import TranscriptCommands

_ALL = (
    PresetCommands,
    LaunchCommands,
    RunListCommands,
    RunCommands,
    AttachCommands,
    TranscriptCommands,
    FindingCommands,
    TakingOutCommands,
    DeckCommands,
    DoctorCommands,
    TellingCommands,
    DetailCommands,
    CleaningCommands,
)


Deeds = dict[str, Callable[[], object]]
"""What to call for each action, by its id."""


def deeds(deck: Deck) -> Deeds:
    """Answer what each action does on this deck."""
    return {action_id: deed for commands in _ALL for action_id, deed in commands(deck).table.items()}
