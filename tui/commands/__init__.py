"""The operator's actions by their ids in the registry."""

from __future__ import annotations

from collections.abc import Callable

from .base import Deck
from .deck import DeckCommands
from .launching import LaunchCommands
from .presets import PresetCommands
from .run_list import RunListCommands
from .runs import RunCommands
from .transcript import TranscriptCommands

_ALL = (PresetCommands, LaunchCommands, RunListCommands, RunCommands, TranscriptCommands, DeckCommands)


def deeds(deck: Deck) -> dict[str, Callable[[], object]]:
    """Answer what each action does on this deck."""
    return {action_id: deed for commands in _ALL for action_id, deed in commands(deck).table.items()}
