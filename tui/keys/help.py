"""The actions explained: with their keys, each under the context where they work; pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from ..text.cells import cells, wrap
from .actions import BY_ID
from .command import ON_DECK, PANES, Action, KeyContext
from .keymap import key_label, key_of, meanings, own_keys, shadows, with_keys

EVERY_PANE = "every pane"
DIALOGS = "dialogs"
PALETTE_ONLY = "only in the palette"
"""Actions without a key."""


class Explained(NamedTuple):
    action: Action
    keys: str
    """All keys for it there."""
    help: str
    """With its references to other keys resolved."""
    remarks: tuple[str, ...] = ()
    """Which of its keys come from your settings, and which default keys these have taken from it."""


class Group(NamedTuple):
    heading: str
    rows: tuple[Explained, ...]

    @property
    def concerns_deck(self) -> bool:
        """Whether the deck's context decides what is possible."""
        return self.heading in (EVERY_PANE, PALETTE_ONLY, *ON_DECK)


def key_groups(actions: Sequence[Action], here: KeyContext) -> tuple[Group, ...]:
    """Return every action with its keys, the keys of the pane `here` first."""
    other_panes = (pane for pane in PANES if pane is not here)
    dialogs = (key_context for key_context in KeyContext if key_context not in ON_DECK)
    around = (KeyContext.REQUEST, KeyContext.SEARCH, KeyContext.APP)
    headings = (here, KeyContext.DECK, EVERY_PANE, *other_panes, *around, PALETTE_ONLY, DIALOGS, *dialogs)
    listed: dict[str, list[Explained]] = {heading: [] for heading in headings}
    remarks = own_key_remarks(actions)
    for action in actions:
        for heading, keys in _headings_with_keys(action):
            listed[heading].append(_explained(action, keys, actions, remarks))
    return tuple(Group(heading, tuple(rows)) for heading, rows in listed.items() if rows)


FIRST = 20
"""Number of keys that the help shows first."""
_USUAL = (
    "open", "launch", "next_unseen", "changes", "follow_up", "stop", "detail", "filter", "mark", "rerun", "delete",
    "undo", "compare", "search_all", "attach", "mark_seen", "next_pane", "zoom", "sort", "back", "palette", "quit",
)  # fmt: skip
"""Actions that are used most, in this order; the context's own and those in the footer come before them."""


def first_keys(actions: Sequence[Action], here: KeyContext) -> Group:
    """Return the most used keys of a context: its own, and on the deck the usual ones. Movements are left out."""
    keys: dict[str, list[str]] = {}
    for key, action in meanings(here, actions):
        keys.setdefault(action.id, []).append(key_label(key))
    remarks = own_key_remarks(actions)

    def rank(action: Action) -> tuple[bool, int]:
        usual = _USUAL.index(action.id) if action.id in _USUAL else len(_USUAL)
        return (here not in action.key_contexts and here in ON_DECK, usual if here in ON_DECK else not action.footer)

    listed = [action for action in actions if action.id in keys and not action.is_movement]
    rows = [
        _explained(action, " ".join(keys[action.id]), actions, remarks) for action in sorted(listed, key=rank)[:FIRST]
    ]
    return Group(here, tuple(rows))


def _explained(
    action: Action, keys: str, actions: Sequence[Action], remarks: Mapping[str, tuple[str, ...]]
) -> Explained:
    return Explained(action, keys, with_keys(action.help, actions), remarks.get(action.id, ()))


def own_key_remarks(actions: Sequence[Action]) -> dict[str, tuple[str, ...]]:
    """Return, by action, which keys come from your settings, and which default keys these have taken from it."""
    remarks: dict[str, tuple[str, ...]] = {}
    for action in actions:
        if action.id in BY_ID and own_keys(action):
            default = " ".join(dict.fromkeys(key_label(key) for _, key in BY_ID[action.id].keys))
            remarks[action.id] = (f"Your key. Default: {default}" if default else "Your key.",)
    for action, key, winner in shadows(actions):
        if not own_keys(action):
            words = f'{key_label(key)} is your key for "{winner.name or winner.id}".'
            remarks[action.id] = (*remarks.get(action.id, ()), words)
    return remarks


def _headings_with_keys(action: Action) -> Iterator[tuple[str, str]]:
    """Yield the contexts of an action with its keys; equal keys in all panes, or in several dialogs, once."""
    labels = {
        key_context: " ".join(key_label(key) for key in keys)
        for key_context in KeyContext
        if (keys := action.keys_in(key_context))
    }
    if not labels:
        yield (PALETTE_ONLY if action.in_palette or action.key_context is None else action.key_context), ""
    in_panes = {labels.get(pane) for pane in PANES}
    if len(in_panes) == 1 and (keys := in_panes.pop()) is not None:
        yield EVERY_PANE, keys
        labels = {key_context: keys for key_context, keys in labels.items() if key_context not in PANES}
    in_dialogs = [keys for key_context, keys in labels.items() if key_context not in ON_DECK]
    shared = max(set(in_dialogs), key=in_dialogs.count, default="")
    if in_dialogs.count(shared) > 1:
        yield DIALOGS, shared
        labels = {key_context: keys for key_context, keys in labels.items() if key_context in ON_DECK or keys != shared}
    for key_context, keys in labels.items():
        yield key_context, keys


GAP = "    "


def hint_lines(actions: Sequence[Action], hints: Sequence[tuple[str, str]], width: int) -> list[str]:
    """Return the purpose of each action id, behind its key: in one line if that fits, otherwise a line each.

    An action without a key shows only its name behind the palette's key: `:starter presets`.
    """
    keyless = {action.id for action in actions if not action.keys}
    keyed = [
        (key, "" if action_id in keyless else words)
        for action_id, words in hints
        if (key := key_of(action_id, actions))
    ]
    single_line = GAP.join(f"{key}  {words}".rstrip() for key, words in keyed)
    if cells(single_line) + 2 <= width:
        return [f"  {single_line}"]
    widest = max((cells(key) for key, words in keyed if words), default=0)
    lines: list[str] = []
    for key, words in keyed:
        first, *more = wrap(words, max(8, width - widest - 2)) or [""]
        lines.append(f"{key}{' ' * (widest - cells(key))}  {first}".rstrip())
        lines += [" " * (widest + 2) + row for row in more]
    return lines
