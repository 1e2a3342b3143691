"""The keys of the actions: bound, displayed, and replaced by your own from the settings."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from msgspec.structs import replace
from textual.binding import Binding, BindingType
from textual.keys import Keys, key_to_character

from ...core.errors import SettingsError, nearest
from ...core.text.plain import one_line
from .actions import ACTIONS, BY_ID
from .command import MODES, ON_DECK, OWN_PREFIX, PANES, VIEWS, Action, ActionContext, KeyContext, Keys as ModelKeys

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
    """Return a key as displayed: `^s`, `⏎`, `pgdn`."""
    return _KEY_NAMES.get(key, key.replace("ctrl+", "^"))


def key_of(action_id: str, actions: Sequence[Action] = ACTIONS) -> str:
    """Return the first key of an action as displayed, for a sentence that names it.

    Without a key, that of the palette and its name there: `:theme`.
    """
    action = next((action for action in actions if action.id == action_id), None)
    if action is None or action.keys:
        return key_label(action.keys[0][1]) if action else ""
    return f"{key_of('palette', actions)}{action.name}" if action.in_palette else ""


def with_keys(text: str, actions: Sequence[Action] = ACTIONS) -> str:
    """Put keys into a text of the table: `{undo}` becomes the key of that action."""
    return _KEY_IN_A_SENTENCE.sub(lambda match: key_of(match[1], actions) or match[0], text)


def binding_id(action: Action, key_context: KeyContext) -> str:
    """Return the id by which Textual's keymap finds an action's bindings in a context."""
    return f"{action.id}@{key_context.name}"


def bindings(key_context: KeyContext) -> list[BindingType]:
    """Return the bindings of a context, without those of the contexts around it."""
    return [
        Binding(key, action.command, action.name, show=False, id=binding_id(action, key_context), priority=action.first)
        for action in ACTIONS
        for key in action.keys_in(key_context)
    ]


class Hint(NamedTuple):
    """A key of the footer."""

    rank: int
    """Smaller ranks stay longer when the footer is narrow."""
    key: str
    name: str
    command: str = ""
    """Textual's action, for a click."""
    press: str = ""
    """The key itself, in Textual's spelling."""


def meanings(key_context: KeyContext, actions: Sequence[Action] = ACTIONS) -> list[tuple[str, Action]]:
    """Return the keys of a context with their actions; a key of the context hides those of the contexts around it."""
    distance = {where: steps for steps, where in enumerate((key_context, *key_context.around))}
    found = [(key, where, action) for action in actions for where, key in action.keys if where in distance]
    owner: dict[str, KeyContext] = {}
    for key, where, _ in found:
        if distance[where] < distance[owner.setdefault(key, where)]:
            owner[key] = where
    return [(key, action) for key, where, action in found if owner[key] is where]


def footer_hints(context: ActionContext, actions: Sequence[Action] = ACTIONS) -> list[Hint]:
    """Return the actions possible here, in the order of the table."""
    keys: dict[str, str] = {}
    for key, action in meanings(context.key_context, actions):
        keys.setdefault(action.id, key)
    return [
        Hint(action.footer, key_label(keys[action.id]), name, action.command, keys[action.id])
        for action in actions
        if action.footer and action.id != context.key_context and action.id in keys and action.allowed(context)
        if (name := action.name_here(context) if action.name_here else action.name)
    ]


def keys_line(
    key_context: KeyContext, actions: Sequence[Action] = ACTIONS, context: ActionContext | None = None
) -> str:
    """Return the keys of a dialog, and with a context those possible in it."""
    hints = footer_hints(context or ActionContext(key_context=key_context), actions)
    return "   ".join(f"{hint.key} {hint.name}" for hint in hints)


# --- your own keys --------------------------------------------------------------------------------------------------


_ARROWS = ("up", "down", "left", "right", "pageup", "pagedown", "home", "end")
KEPT = frozenset((*_ARROWS, "enter", "escape", "tab", "shift+tab", "ctrl+c"))
"""Keys that keep their meaning next to your own keys, because everybody expects it."""

TEXT_CONTEXTS = frozenset(KeyContext).difference(ON_DECK, VIEWS, (KeyContext.CONFIRM,))
"""Contexts with a text field, where a character cannot be a key."""

_MODIFIERS = frozenset(("ctrl", "shift", "alt"))
_NAMED = frozenset(key.value.rpartition("+")[2] for key in Keys if not key.value.startswith("<"))


def with_own_keys(keys: Mapping[str, str], own_commands: Sequence[Action] = ()) -> tuple[Action, ...]:
    """Return the table with these keys, by action, and your own commands; commas separate several keys.

    Default keys that these shadow are left out. Raises SettingsError for an unknown action or key, and for a key that
    `keys` and `own_commands` give to two actions.
    """
    if not keys and not own_commands:
        return ACTIONS
    for name in keys:
        if name not in BY_ID:
            raise _fault(name, "unknown action", nearest(name, BY_ID) or f"known: {', '.join(BY_ID)}")
    actions = tuple(_remapped(action, keys[action.id]) if action.id in keys else action for action in ACTIONS)
    actions += tuple(replace(action, keys=_checked_keys(action)) for action in own_commands)
    yours = {action.id: own_keys(action) for action in actions}
    _refuse_collisions(actions, yours)
    taken = [(action, *each) for action in actions for each in yours[action.id]]
    return tuple(_without_shadowed(action, yours[action.id], taken) for action in actions)


def _without_shadowed(action: Action, yours: ModelKeys, taken: Sequence[tuple[Action, KeyContext, str]]) -> Action:
    """Return the action without the default keys that are `taken`; the palette still offers one without any key."""
    keys = tuple(each for each in action.keys if each in yours or not _winner(action, *each, taken))
    return replace(
        action, keys=keys, key_context=action.key_context if keys or not action.key_contexts else action.key_contexts[0]
    )


def own_keys(action: Action) -> ModelKeys:
    """Return the keys of an action that come from your settings."""
    default = BY_ID[action.id].keys if action.id in BY_ID else ()
    return tuple(each for each in action.keys if each not in default)


class Shadow(NamedTuple):
    """A default key that is one of your keys for something else."""

    action: Action
    """The action without it."""
    key: str
    winner: Action


def shadows(actions: Sequence[Action]) -> list[Shadow]:
    """Return the default keys that keys from the settings shadow, each once for an action."""
    taken = [(action, *each) for action in actions for each in own_keys(action)]
    shadowed = {
        (action.id, key): Shadow(action, key, winner)
        for action in actions
        if action.id in BY_ID
        for key_context, key in BY_ID[action.id].keys
        if (key_context, key) not in action.keys and (winner := _winner(action, key_context, key, taken))
    }
    return list(shadowed.values())


def _winner(
    action: Action, key_context: KeyContext, key: str, taken: Sequence[tuple[Action, KeyContext, str]]
) -> Action | None:
    """Return the other action that has this key from the settings, in the context or around it."""
    around = {key_context, *key_context.around} if key_context in (KeyContext.DECK, *PANES) else {key_context}
    return next(
        (holder for holder, where, own_key in taken if own_key == key and where in around and holder.id != action.id),
        None,
    )


def usable(keys: Mapping[str, str], own_commands: Sequence[Action]) -> tuple[tuple[Action, ...], list[SettingsError]]:
    """Return the table with your keys and commands, without either if it is invalid, and the reasons."""
    faults: dict[str, SettingsError] = {}
    no_keys: dict[str, str] = {}
    for some_keys, some_commands in ((keys, own_commands), (no_keys, own_commands), (keys, ())):
        try:
            return with_own_keys(some_keys, some_commands), [*faults.values()]
        except SettingsError as fault:
            faults.setdefault(str(fault), fault)
    return ACTIONS, [*faults.values()]


def _checked_keys(action: Action) -> ModelKeys:
    return tuple((key_context, _checked(action, key)) for key_context, key in action.keys)


UNBOUND = "unbound"
"""Stands for no key in Textual's keymap, which takes an empty text for the default."""


def keymap(actions: Sequence[Action]) -> dict[str, str]:
    """Return the bindings that differ from the default keys."""
    return {
        binding_id(action, key_context): ",".join(action.keys_in(key_context)) or UNBOUND
        for action in actions
        if action.id in BY_ID and action.keys != BY_ID[action.id].keys
        for key_context in BY_ID[action.id].key_contexts
    }


def _remapped(action: Action, written: str) -> Action:
    new_keys = tuple(dict.fromkeys(_checked(action, word.strip()) for word in written.split(",")))
    changed: list[tuple[KeyContext, str]] = []
    for key_context in action.key_contexts:
        former = action.keys_in(key_context)
        fitting = tuple(key for key in new_keys if key_context not in TEXT_CONTEXTS or len(key) > 1)
        kept = tuple(key for key in former if key in KEPT and key not in fitting)
        changed += [(key_context, key) for key in ((*fitting, *kept) if fitting else former)]
    if TEXT_CONTEXTS.issuperset(action.key_contexts) and any(len(key) == 1 for key in new_keys):
        raise _fault(action.id, f'"{written}" would be typed into a text field', "use a key like ctrl+l or f5")
    return replace(action, keys=tuple(changed))


def _checked(action: Action, written: str) -> str:
    """Return a key in the table's spelling."""
    *modifiers, name = written.split("+") if len(written) > 1 else [written]
    character = name if len(name) == 1 else key_to_character(name) or ""
    shown = character if len(character) == 1 and character.isprintable() and character != " " else name
    if not shown or not _MODIFIERS.issuperset(modifiers) or (len(shown) > 1 and shown not in _NAMED):
        hint = 'use the form "k", "X", "ctrl+x", "f5" or "pagedown", separated by commas'
        raise _fault(action.id, f'"{one_line(written, 40)}" is not a key', hint)
    if modifiers == ["shift"] and len(shown) == 1:
        return shown.upper()
    return "+".join((*modifiers, shown))


def _refuse_collisions(actions: Sequence[Action], yours: Mapping[str, ModelKeys]) -> None:
    """Refuse one of your keys for two actions in one context."""
    for key_context in KeyContext:
        holders: dict[str, Action] = {}
        around = () if key_context in MODES else key_context.around
        for action in actions:
            for where, key in yours[action.id]:
                if where is not key_context and where not in around:
                    continue
                holder = holders.setdefault(key, action)
                if holder is not action:
                    raise _fault(
                        action.id,
                        f'"{key_label(key)}" is already used for "{holder.name or holder.id}" '
                        f"({holder.id}, {key_context})",
                        f"choose another key, or assign a different key to {holder.id}",
                    )


def _fault(name: str, what: str, hint: str) -> SettingsError:
    from ...core.config.files import place_in_file  # the YAML reader, needed only for a wrong file

    is_own_command = name not in BY_ID and name.startswith(OWN_PREFIX)
    key = f"app.commands.{name.removeprefix(OWN_PREFIX)}.key" if is_own_command else f"app.keys.{name}"
    return SettingsError(f"{one_line(key, 60)}: {what}", where=place_in_file(key), hint=hint)
