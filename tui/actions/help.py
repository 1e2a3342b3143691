"""The registry as it is explained: actions with their keys, each under the place where they work; pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from . import PANES, Action, Place, key_label, said

EVERY_PANE = "every pane"
DIALOGS = "dialogs"

_AROUND = (Place.APP, Place.DECK, *PANES, Place.SEARCH)
"""Places that are no dialogs."""


class Explained(NamedTuple):
    action: Action
    keys: str
    """All that do this there."""
    help: str
    """With the keys that it names."""


class Group(NamedTuple):
    heading: str
    place: Place | None
    """None for what works in several places."""
    rows: tuple[Explained, ...]

    @property
    def concerns_deck(self) -> bool:
        """Whether the situation of the deck decides what is possible."""
        return self.heading == EVERY_PANE or self.place in _AROUND


def key_groups(actions: Sequence[Action], here: Place) -> tuple[Group, ...]:
    """Answer every action with a key, what works in the pane `here` first."""
    panes = (here, *(pane for pane in PANES if pane is not here))
    order: tuple[tuple[str, Place | None], ...] = (
        *((place.value, place) for place in (panes[0], Place.DECK)),
        (EVERY_PANE, None),
        *((place.value, place) for place in (*panes[1:], Place.SEARCH, Place.APP)),
        (DIALOGS, None),
        *((place.value, place) for place in Place if place not in _AROUND),
    )
    listed: dict[str, list[Explained]] = {heading: [] for heading, _ in order}
    for action in actions:
        for heading, keys in _places(action):
            listed[heading].append(Explained(action, keys, said(action.help, actions)))
    return tuple(Group(heading, place, tuple(listed[heading])) for heading, place in order if listed[heading])


def _places(action: Action) -> Iterator[tuple[str, str]]:
    """Say where an action has which keys; what is alike in all panes, or in several dialogs, is said once."""
    labels = {place: " ".join(key_label(key) for key in keys) for place in Place if (keys := action.keys_in(place))}
    in_panes = {labels.get(pane) for pane in PANES}
    if len(in_panes) == 1 and (keys := in_panes.pop()) is not None:
        yield EVERY_PANE, keys
        labels = {place: keys for place, keys in labels.items() if place not in PANES}
    in_dialogs = [keys for place, keys in labels.items() if place not in _AROUND]
    shared = max(set(in_dialogs), key=in_dialogs.count, default="")
    if in_dialogs.count(shared) > 1:
        yield DIALOGS, shared
        labels = {place: keys for place, keys in labels.items() if place in _AROUND or keys != shared}
    for place, keys in labels.items():
        yield place.value, keys
