"""The actions explained: with their keys, each under the place where they work; pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from ..text.cells import cells, wrap
from .command import ON_DECK, PANES, Action, KeyContext
from .keymap import key_label, key_of, said

EVERY_PANE = "every pane"
DIALOGS = "dialogs"


class Explained(NamedTuple):
    action: Action
    keys: str
    """All keys for it there."""
    help: str
    """With its references to other keys resolved."""


class Group(NamedTuple):
    heading: str
    rows: tuple[Explained, ...]

    @property
    def concerns_deck(self) -> bool:
        """Whether the deck's context decides what is possible."""
        return self.heading in (EVERY_PANE, *ON_DECK)


def key_groups(actions: Sequence[Action], here: KeyContext) -> tuple[Group, ...]:
    """Return every action with a key, the keys of the pane `here` first."""
    others = (pane for pane in PANES if pane is not here)
    dialogs = (place for place in KeyContext if place not in ON_DECK)
    around = (KeyContext.REQUEST, KeyContext.SEARCH, KeyContext.APP)
    headings = (here, KeyContext.DECK, EVERY_PANE, *others, *around, DIALOGS, *dialogs)
    listed: dict[str, list[Explained]] = {heading: [] for heading in headings}
    for action in actions:
        for heading, keys in _places(action):
            listed[heading].append(Explained(action, keys, said(action.help, actions)))
    return tuple(Group(heading, tuple(rows)) for heading, rows in listed.items() if rows)


def _places(action: Action) -> Iterator[tuple[str, str]]:
    """Yield the places of an action with its keys; equal keys in all panes, or in several dialogs, once."""
    labels = {
        place: " ".join(key_label(key) for key in keys) for place in KeyContext if (keys := action.keys_in(place))
    }
    in_panes = {labels.get(pane) for pane in PANES}
    if len(in_panes) == 1 and (keys := in_panes.pop()) is not None:
        yield EVERY_PANE, keys
        labels = {place: keys for place, keys in labels.items() if place not in PANES}
    in_dialogs = [keys for place, keys in labels.items() if place not in ON_DECK]
    shared = max(set(in_dialogs), key=in_dialogs.count, default="")
    if in_dialogs.count(shared) > 1:
        yield DIALOGS, shared
        labels = {place: keys for place, keys in labels.items() if place in ON_DECK or keys != shared}
    for place, keys in labels.items():
        yield place, keys


GAP = "    "


def hint_lines(actions: Sequence[Action], hints: Sequence[tuple[str, str]], width: int) -> list[str]:
    """Return the purpose of each action id, behind its key: in one line if that fits, otherwise a line each."""
    keyed = [(key, words) for action_id, words in hints if (key := key_of(action_id, actions))]
    one = GAP.join(f"{key}  {words}" for key, words in keyed)
    if cells(one) + 2 <= width:
        return [f"  {one}"]
    widest = max((cells(key) for key, _ in keyed), default=0)
    lines: list[str] = []
    for key, words in keyed:
        first, *more = wrap(words, max(8, width - widest - 2))
        lines.append(f"{key}{' ' * (widest - cells(key))}  {first}")
        lines += [" " * (widest + 2) + row for row in more]
    return lines
