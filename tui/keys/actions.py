"""All actions, collected from the features: with keys and texts for the screens, and with the method that does each.

The order of the features is the order of footer, help and key reference. A module of commands imports no screen at its
top: every screen asks this module for its keys.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from ..answers.commands import AnswerCommands
from ..changes.commands import ChangesCommands
from ..cleanup.commands import CleanUpCommands
from ..commands import Commands
from ..compare.commands import CompareCommands
from ..deck.commands import DeckCommands
from ..detail.commands import DetailCommands
from ..dialogs.commands import DialogKeys
from ..hosts.commands import HostCommands
from ..launch.commands import LaunchCommands
from ..palette.commands import PaletteCommands
from ..presets.commands import PresetCommands
from ..runs.commands import RunCommands, RunListCommands
from ..search.commands import SearchCommands
from ..talk.commands import TalkCommands
from ..tiles.commands import TileCommands
from ..transcript.commands import TranscriptCommands
from .command import Action, Declared, declarations

FEATURES: tuple[type, ...] = (
    PresetCommands,
    LaunchCommands,
    RunListCommands,
    RunCommands,
    DetailCommands,
    ChangesCommands,
    CleanUpCommands,
    TileCommands,
    CompareCommands,
    HostCommands,
    TalkCommands,
    TranscriptCommands,
    SearchCommands,
    AnswerCommands,
    DeckCommands,
    PaletteCommands,
    DialogKeys,
)


def _collected(features: Iterable[type]) -> Iterator[Action]:
    """Return the actions of all features; an action with `after` comes right behind the named one."""
    followers: dict[str, list[Action]] = {}
    for feature in features:
        for each in declarations(feature):
            action = each.action if isinstance(each, Declared) else each
            followers.setdefault(action.after, []).append(action)

    def in_order(after: str) -> Iterator[Action]:
        for action in followers.get(after, ()):
            yield action
            yield from in_order(action.id)

    return in_order("")


ACTIONS = tuple(_collected(FEATURES))
BY_ID: dict[str, Action] = {action.id: action for action in ACTIONS}
METHODS: dict[str, tuple[type[Commands], Declared]] = {
    each.action.id: (feature, each)
    for feature in FEATURES
    if issubclass(feature, Commands)
    for each in declarations(feature)
    if isinstance(each, Declared)
}
"""By action of the deck: the class and the method that do it."""
