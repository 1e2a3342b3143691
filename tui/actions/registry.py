"""THE registry of actions: bindings, footer, help, palette and key tables all come from it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from textual.binding import Binding, BindingType

from .deck import DECK, DIALOGS, DOCTOR
from .launch import LAUNCHING, PRESETS
from .model import MODES, Action, ActionContext, KeyContext
from .runs import ACTING, CLEANING, RUN_LIST
from .transcript import DETAIL, FINDING, TRANSCRIPT

ACTIONS: tuple[Action, ...] = (
    *PRESETS,
    *LAUNCHING,
    *RUN_LIST,
    *ACTING,
    *DETAIL,
    *CLEANING,
    *TRANSCRIPT,
    *FINDING,
    *DECK,
    *DOCTOR,
    *DIALOGS,
)

BY_ID: dict[str, Action] = {action.id: action for action in ACTIONS}

_KEY_IN_A_SENTENCE = re.compile(r"\{(\w+)\}")

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


def key_of(action_id: str, actions: Sequence[Action] = ACTIONS) -> str:
    """Return how the first key of an action is written, for a sentence that names it."""
    return next((key_label(action.keys[0][1]) for action in actions if action.id == action_id and action.keys), "")


def said(text: str, actions: Sequence[Action] = ACTIONS) -> str:
    """Put keys into a sentence of the registry: `{undo}` becomes the key of that action."""
    return _KEY_IN_A_SENTENCE.sub(lambda match: key_of(match[1], actions) or match[0], text)


def binding_id(action: Action, place: KeyContext) -> str:
    """By which Textual's keymap finds the bindings of an action in a place."""
    return f"{action.id}@{place.name}"


def bindings(place: KeyContext) -> list[BindingType]:
    """Return the bindings of a place, not those of the places around it."""
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


def meanings(place: KeyContext, actions: Sequence[Action] = ACTIONS) -> list[tuple[str, Action]]:
    """Return the keys of a place with what they mean there; the keys of a mode hide those of the places around it."""
    hidden = {key for action in actions for key in action.keys_in(place)} if place in MODES else frozenset[str]()
    return [
        (key, action)
        for action in actions
        for where, key in action.keys
        if where is place or (where in place.around and key not in hidden)
    ]


def footer_hints(context: ActionContext, actions: Sequence[Action] = ACTIONS) -> list[Hint]:
    """Return what is possible here, in the order of the registry."""
    keys: dict[str, str] = {}
    for key, action in meanings(context.place, actions):
        keys.setdefault(action.id, key)
    return [
        Hint(action.footer, key_label(keys[action.id]), name)
        for action in actions
        if action.footer and action.id != context.place and action.id in keys and action.allowed(context)
        if (name := action.name_here(context) if action.name_here else action.name)
    ]


def keys_line(place: KeyContext, actions: Sequence[Action] = ACTIONS) -> str:
    """Say which keys end a dialog."""
    return "   ".join(f"{hint.key} {hint.name}" for hint in footer_hints(ActionContext(place=place), actions))
