"""The keys that lead out of a tmux pane, read from what a tmux server says of its own; pure."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Sequence

PREFIX_QUESTION = ("show-options", "-gv", "prefix", ";", "list-keys")
"""What to ask a tmux server for; its answer is what `KeyTable` reads."""

_MODIFIERS = {"C": "ctrl", "M": "alt", "S": "shift"}


class KeyTable:
    """The prefix of a tmux server and what its keys do, as `PREFIX_QUESTION` is answered."""

    def __init__(self, answer: Sequence[str]) -> None:
        """An empty answer is that of a server without a configuration."""
        self.prefix = answer[0].strip() if answer else "C-b"
        self._bound = [bound for line in answer[1:] if (bound := _bound(line))]

    def keys_to(self, *command: str, usual: str) -> tuple[str, ...]:
        """Answer the keys to press one after the other for a tmux command; `usual` is its key when nothing is bound.

        A key in the root table needs no prefix.
        """
        found = [(table, key) for table, key, words in self._bound if words == command]
        for table, key in sorted(found, key=lambda bound: (bound[0] != "prefix", bound[1] != usual)):
            if table == "prefix":
                return self.prefix, key
            if table == "root":
                return (key,)
        return self.prefix, usual


def in_words(keys: Iterable[str]) -> tuple[str, ...]:
    """Write tmux's key names as people do: `C-b` is `ctrl+b`."""
    return tuple(_in_words(key) for key in keys)


def through(outer: KeyTable, keys: tuple[str, ...]) -> tuple[str, ...]:
    """Answer what to press where another tmux server sits before the one that shall get these keys."""
    if keys[0] != outer.prefix:
        return keys
    return (*outer.keys_to("send-prefix", usual=outer.prefix), *keys[1:])


def _in_words(key: str) -> str:
    *modifiers, name = key.split("-") if len(key) > 2 and key[1] == "-" else [key]
    if not name or not all(modifier in _MODIFIERS for modifier in modifiers):
        return key
    return "+".join((*(_MODIFIERS[modifier] for modifier in modifiers), name))


def _bound(line: str) -> tuple[str, str, tuple[str, ...]] | None:
    """Read `bind-key [-r] -T prefix d detach-client`; None for what is no such line."""
    try:
        words = shlex.split(line)
    except ValueError:
        return None
    if "-T" not in words or words[0] != "bind-key":
        return None
    match words[words.index("-T") + 1 :]:
        case [table, key, *command]:
            return table, key, tuple(command)
        case _:
            return None
