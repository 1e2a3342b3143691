"""The operator's own keys, from the settings, put into the registry of actions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec.structs import replace
from textual.keys import Keys, key_to_character

from ...core.errors import SettingsError, nearest
from ...core.paths import user_settings_file
from ...core.text.plain import one_line
from . import ACTIONS, BY_ID, Action, KeyContext, binding_id, key_label, meanings

KEPT = frozenset(
    (
        "enter",
        "escape",
        "tab",
        "shift+tab",
        "up",
        "down",
        "left",
        "right",
        "pageup",
        "pagedown",
        "home",
        "end",
        "ctrl+c",
    )
)
"""Keys that keep their meaning beside an operator's own, because everybody expects it of them."""

TEXT_PLACES = frozenset(
    (
        KeyContext.LAUNCH,
        KeyContext.EDIT,
        KeyContext.COPY,
        KeyContext.CLEAN_UP,
        KeyContext.READING,
        KeyContext.FILTER,
        KeyContext.PICK,
        KeyContext.ASK,
        KeyContext.HELP,
    )
)
"""Where a character is written, so that it cannot act."""

_MODIFIERS = frozenset(("ctrl", "shift", "alt"))
_NAMED = frozenset(key.value.rpartition("+")[2] for key in Keys if not key.value.startswith("<"))


def with_own_keys(keys: Mapping[str, str]) -> tuple[Action, ...]:
    """Return the registry with these keys, by action; several have commas between them.

    Raises SettingsError for an action or a key that is not known, and for a key that would have two meanings.
    """
    if not keys:
        return ACTIONS
    for name in keys:
        if name not in BY_ID:
            raise _fault(name, "there is no such action", nearest(name, BY_ID) or f"known are {', '.join(BY_ID)}")
    actions = tuple(_remapped(action, keys[action.id]) if action.id in keys else action for action in ACTIONS)
    _refuse_collisions(actions, keys)
    return actions


def keymap(actions: Sequence[Action]) -> dict[str, str]:
    """Return what Textual has to bind otherwise than by default."""
    return {
        binding_id(action, place): ",".join(action.keys_in(place))
        for action in actions
        if action.keys != BY_ID[action.id].keys
        for place in dict.fromkeys(place for place, _ in action.keys)
    }


def _remapped(action: Action, written: str) -> Action:
    own = tuple(dict.fromkeys(_checked(action, word.strip()) for word in written.split(",")))
    places = tuple(dict.fromkeys(place for place, _ in action.keys))
    changed: list[tuple[KeyContext, str]] = []
    for place in places:
        former = action.keys_in(place)
        fitting = tuple(key for key in own if place not in TEXT_PLACES or len(key) > 1)
        kept = tuple(key for key in former if key in KEPT and key not in fitting)
        changed += [(place, key) for key in ((*fitting, *kept) if fitting else former)]
    if all(place in TEXT_PLACES for place in places) and any(len(key) == 1 for key in own):
        raise _fault(action.id, f'"{written}" would be typed into a field there', "use a key like ctrl+l or f5")
    return replace(action, keys=tuple(changed))


def _checked(action: Action, written: str) -> str:
    """Return a key in the registry's spelling."""
    *modifiers, name = written.split("+") if len(written) > 1 else [written]
    character = name if len(name) == 1 else key_to_character(name) or ""
    shown = character if len(character) == 1 and character.isprintable() and character != " " else name
    if not shown or not _MODIFIERS.issuperset(modifiers) or (len(shown) > 1 and shown not in _NAMED):
        hint = 'write it like "k", "X", "ctrl+x", "f5" or "pagedown", with commas between several'
        raise _fault(action.id, f'"{one_line(written, 40)}" is not a key', hint)
    if modifiers == ["shift"] and len(shown) == 1:
        return shown.upper()
    return "+".join((*modifiers, shown))


def _refuse_collisions(actions: Sequence[Action], keys: Mapping[str, str]) -> None:
    for place in KeyContext:
        meant: dict[str, Action] = {}
        for key, action in meanings(place, actions):
            other = meant.setdefault(key, action)
            if other is not action:
                own, rival = (action, other) if action.id in keys else (other, action)
                raise _fault(
                    own.id,
                    f'"{key_label(key)}" means "{rival.name or rival.id}" there ({rival.id}, {place})',
                    f"choose another key, or give {rival.id} one of its own",
                )


def _fault(name: str, what: str, hint: str) -> SettingsError:
    return SettingsError(what, where=f"{user_settings_file()}: keys.{one_line(name, 40)}", hint=hint)
