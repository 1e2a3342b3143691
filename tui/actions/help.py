"""The registry as it is explained: actions with their keys, each under the place where they work; pure."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from rich.cells import cell_len

from ..text.cells import wrap
from . import ACTIONS, PANES, Action, KeyContext, key_label, key_of, said

EVERY_PANE = "every pane"
DIALOGS = "dialogs"

_AROUND = (KeyContext.APP, KeyContext.DECK, *PANES, KeyContext.SEARCH)
"""Places that are no dialogs."""


class Explained(NamedTuple):
    action: Action
    keys: str
    """All that do this there."""
    help: str
    """With the keys that it names."""


class Group(NamedTuple):
    heading: str
    place: KeyContext | None
    """None for what works in several places."""
    rows: tuple[Explained, ...]

    @property
    def concerns_deck(self) -> bool:
        """Whether the context of the deck decides what is possible."""
        return self.heading == EVERY_PANE or self.place in _AROUND


def key_groups(actions: Sequence[Action], here: KeyContext) -> tuple[Group, ...]:
    """Return every action with a key, what works in the pane `here` first."""
    panes = (here, *(pane for pane in PANES if pane is not here))
    order: tuple[tuple[str, KeyContext | None], ...] = (
        *((place.value, place) for place in (panes[0], KeyContext.DECK)),
        (EVERY_PANE, None),
        *((place.value, place) for place in (*panes[1:], KeyContext.SEARCH, KeyContext.APP)),
        (DIALOGS, None),
        *((place.value, place) for place in KeyContext if place not in _AROUND),
    )
    listed: dict[str, list[Explained]] = {heading: [] for heading, _ in order}
    for action in actions:
        for heading, keys in _places(action):
            listed[heading].append(Explained(action, keys, said(action.help, actions)))
    return tuple(Group(heading, place, tuple(listed[heading])) for heading, place in order if listed[heading])


def _places(action: Action) -> Iterator[tuple[str, str]]:
    """Say where an action has which keys; what is alike in all panes, or in several dialogs, is said once."""
    labels = {
        place: " ".join(key_label(key) for key in keys) for place in KeyContext if (keys := action.keys_in(place))
    }
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


GAP = "    "


def hint_lines(actions: Sequence[Action], hints: Sequence[tuple[str, str]], width: int) -> list[str]:
    """Say for each action id what it is good for, behind its key: in one line where that fits, else a line each."""
    keyed = [(key, words) for action_id, words in hints if (key := key_of(action_id, actions))]
    one = GAP.join(f"{key}  {words}" for key, words in keyed)
    if cell_len(one) + 2 <= width:
        return [f"  {one}"]
    widest = max((cell_len(key) for key, _ in keyed), default=0)
    lines: list[str] = []
    for key, words in keyed:
        first, *more = wrap(words, max(8, width - widest - 2))
        lines.append(f"{key}{' ' * (widest - cell_len(key))}  {first}")
        lines += [" " * (widest + 2) + row for row in more]
    return lines


BEGIN, END = "<!-- keys -->", "<!-- /keys -->"

LISTED = (
    KeyContext.APP,
    KeyContext.DECK,
    *PANES,
    KeyContext.SEARCH,
    KeyContext.FILTER,
    KeyContext.LAUNCH,
    KeyContext.EDIT,
    KeyContext.COPY,
    KeyContext.DETAIL,
    KeyContext.CLEAN_UP,
    KeyContext.READING,
    KeyContext.CONFIRM,
)
"""Places whose keys are listed; those of the help are told by the help."""


def key_table() -> str:
    """Return a markdown table with a row for each thing that can be done."""
    doing: dict[str, list[Action]] = {}
    for action in ACTIONS:
        doing.setdefault(said(action.help), []).append(action)
    rows = [f"| {keys} | {sentence} |" for sentence, actions in doing.items() if (keys := _keys(actions))]
    return "\n".join(("| key | |", "|---|---|", *rows))


def with_table(text: str) -> str:
    """Replace what stands between the markers. Raises ValueError where they are missing."""
    before, _, rest = text.partition(BEGIN)
    _, found, after = rest.partition(END)
    if not found:
        raise ValueError(f"the markers {BEGIN} and {END} are missing")
    return f"{before}{BEGIN}\n{key_table()}\n{END}{after}"


def _keys(actions: Sequence[Action]) -> str:
    """Say the keys, and where they mean this unless it is the whole deck or all its panes."""
    places: dict[tuple[str, ...], list[KeyContext]] = {}
    for place in LISTED:
        if keys := tuple(key for action in actions for key in action.keys_in(place)):
            places.setdefault(keys, []).append(place)
    return ", ".join(" ".join(f"`{_label(key)}`" for key in keys) + _where(where) for keys, where in places.items())


def _label(key: str) -> str:
    return key_label(key).replace("^", "ctrl+").replace("⏎", "enter")


def _where(places: Sequence[KeyContext]) -> str:
    everywhere = {KeyContext.APP, KeyContext.DECK} & set(places) or set(PANES) <= set(places)
    return "" if everywhere else f" ({', '.join(places)})"


def main() -> None:
    file = Path(sys.argv[1])
    file.write_text(with_table(file.read_text(encoding="utf-8")), encoding="utf-8")


if __name__ == "__main__":
    main()
