"""THE registry of actions: bindings, footer, help, palette and key tables all come from it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from textual.binding import Binding, BindingType

from .acting import ACTING
from .deck import DECK
from .dialogs import DIALOGS
from .launching import LAUNCHING
from .model import Action, Place, Situation
from .presets import PRESETS
from .run_list import RUN_LIST
from .transcript import TRANSCRIPT

ACTIONS: tuple[Action, ...] = (*PRESETS, *LAUNCHING, *RUN_LIST, *ACTING, *TRANSCRIPT, *DECK, *DIALOGS)

BY_ID: dict[str, Action] = {action.id: action for action in ACTIONS}

_KEY_NAMES = {
    "enter": "⏎",
    "escape": "esc",
    "tab": "tab",
    "shift+tab": "shift+tab",
    "up": "↑",
    "down": "↓",
    "left": "←",
    "right": "→",
    "pagedown": "pgdn",
    "pageup": "pgup",
}


def key_label(key: str) -> str:
    """How a key is written on the screen: `^s`, `⏎`, `pgdn`."""
    return _KEY_NAMES.get(key, key.replace("ctrl+", "^"))


def binding_id(action: Action, place: Place) -> str:
    """By which Textual's keymap finds the bindings of an action in a place."""
    return f"{action.id}@{place.name}"


def bindings(place: Place) -> list[BindingType]:
    """Answer the bindings of a place, not those of the places around it."""
    return [
        Binding(key, action.command, action.name, show=False, id=binding_id(action, place))
        for action in ACTIONS
        for key in action.keys_in(place)
    ]


class Hint(NamedTuple):
    """A key of the footer."""

    rank: int
    """The smaller, the longer it stays when there is little room."""
    key: str
    name: str


def footer_hints(situation: Situation, actions: Sequence[Action] = ACTIONS) -> list[Hint]:
    """Answer what is possible here, in the order of the registry."""
    places = (situation.place, *situation.place.around)
    return [
        Hint(
            action.footer,
            key_label(next(key for where, key in action.keys if where in places)),
            action.name_here(situation) if action.name_here else action.name,
        )
        for action in actions
        if action.footer
        and action.id != situation.place
        and any(where in places for where, _ in action.keys)
        and action.allowed(situation)
    ]


def keys_line(place: Place, actions: Sequence[Action] = ACTIONS) -> str:
    """Say which keys end a dialog."""
    return "   ".join(f"{hint.key} {hint.name}" for hint in footer_hints(Situation(place=place), actions))
