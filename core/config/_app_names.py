"""Names of the app that settings may use; the engine checks them without importing the app."""

from __future__ import annotations

from collections.abc import Sequence

from ..errors import ContentError, nearest
from ..text.plain import one_line

THEMES = (
    *("subdeck-dark", "subdeck-light", "terminal", "ansi-dark", "ansi-light", "atom-one-dark", "atom-one-light"),
    *("catppuccin-frappe", "catppuccin-latte", "catppuccin-macchiato", "catppuccin-mocha", "dracula", "flexoki"),
    *("gruvbox", "monokai", "nord", "rose-pine", "rose-pine-dawn", "rose-pine-moon", "solarized-dark"),
    *("solarized-light", "textual-dark", "textual-light", "tokyo-night"),
)
"""subdeck's own, then Textual's."""

_MODIFIERS = frozenset(("ctrl", "shift", "alt"))
_NAMED_KEYS = frozenset(
    (
        *("backspace", "delete", "down", "end", "enter", "escape", "home", "insert", "left", "pagedown", "pageup"),
        *("return", "right", "space", "tab", "up"),
        *(f"f{number}" for number in range(1, 25)),
    )
)


def column_names() -> tuple[str, ...]:
    """Return the names of the run list's columns."""
    from ..run import columns  # which a file without columns does not need

    return columns.column_names()


def column(text: str) -> str:
    """Return a column's name. Raises ContentError."""
    return _checked("column", text.strip(), column_names())


def columns(names: Sequence[str]) -> tuple[str, ...]:
    """Return the names of columns, which must be unique. Raises ContentError."""
    for number, name in enumerate(names):
        if name in names[:number]:
            raise ContentError(f'the column "{name}" appears twice', hint="remove one of the two")
    return tuple(names)


def theme(text: str) -> str:
    """Return a theme's name. Raises ContentError."""
    return _checked("theme", text.strip(), THEMES)


def action(text: str) -> str:
    """Return an action's name. Raises ContentError."""
    from ._action_names import ACTIONS  # not needed by files without keys

    return _checked("action", text.strip(), ACTIONS)


def keys(text: str) -> str:
    """Return one key, or several separated by commas. Raises ContentError."""
    for key in text.split(","):
        *modifiers, name = key.strip().split("+") if len(key.strip()) > 1 else [key.strip()]
        if not (name and _MODIFIERS.issuperset(modifiers) and (len(name) == 1 or _is_key_name(name))):
            what = f'"{one_line(key, 40)}" is not a key'
            raise ContentError(
                what, hint='use keys such as "k", "X", "ctrl+x", "f5" or "pagedown", separated by commas'
            )
    return text.strip()


def _is_key_name(name: str) -> bool:
    if name in _NAMED_KEYS:
        return True
    import unicodedata  # not needed by most keys

    try:
        unicodedata.lookup(name.replace("_", " ").upper())  # percent_sign
    except KeyError:
        return False
    return True


def _checked(kind: str, name: str, names: Sequence[str]) -> str:
    if name in names:
        return name
    hint = nearest(name, names, count=1) or f"known: {', '.join(names[:40])}"
    raise ContentError(f'unknown {kind} "{one_line(name, 40)}"', hint=hint)
