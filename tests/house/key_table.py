"""README's table of keys, and the engine's list of actions: `python -m tests.house.key_table README.md` writes both."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

from subdeck.tui.actions import ACTIONS, PANES, Action, KeyContext, key_label, said

BEGIN, END = "<!-- keys -->", "<!-- /keys -->"

NAMES = Path(__file__).resolve().parents[2] / "core" / "config" / "action_names.py"
NAMES_HEAD = '''"""The actions of the app, which the setting `keys` may name.

Written by `python -m tests.house.key_table README.md`.
"""

'''

UNLISTED = (KeyContext.PICK, KeyContext.ASK, KeyContext.HELP)
"""Dialogs that say their few keys themselves."""


def with_table(text: str) -> str:
    """Put a table with a row for each thing that can be done between the markers. Raises ValueError without these."""
    before, _, rest = text.partition(BEGIN)
    _, found, after = rest.partition(END)
    if not found:
        raise ValueError(f"the markers {BEGIN} and {END} are missing")
    doing: dict[str, list[Action]] = {}
    for action in ACTIONS:
        doing.setdefault(said(action.help), []).append(action)
    rows = [f"| {keys} | {sentence} |" for sentence, actions in doing.items() if (keys := _keys(actions))]
    table = "\n".join(("| key | |", "|---|---|", *rows))
    return f"{before}{BEGIN}\n{table}\n{END}{after}"


def _keys(actions: Sequence[Action]) -> str:
    """Say the keys, and where they mean this unless it is the whole deck or all its panes."""
    places: dict[tuple[str, ...], list[KeyContext]] = {}
    for place in KeyContext:
        keys = tuple(key for action in actions for key in action.keys_in(place))
        if keys and place not in UNLISTED:
            places.setdefault(keys, []).append(place)
    return ", ".join(" ".join(f"`{_label(key)}`" for key in keys) + _where(where) for keys, where in places.items())


def _label(key: str) -> str:
    return key_label(key).replace("^", "ctrl+").replace("⏎", "enter")


def _where(places: Sequence[KeyContext]) -> str:
    everywhere = {KeyContext.APP, KeyContext.DECK} & set(places) or set(PANES) <= set(places)
    return "" if everywhere else f" ({', '.join(places)})"


def names_module() -> str:
    """Return the text of the module that has the names of all actions."""
    names = "".join(f'    "{name}",\n' for name in sorted(action.id for action in ACTIONS))
    return f"{NAMES_HEAD}ACTIONS = (\n{names})\n"


def main() -> None:
    file = Path(sys.argv[1])
    file.write_text(with_table(file.read_text(encoding="utf-8")), encoding="utf-8")
    NAMES.write_text(names_module(), encoding="utf-8")


if __name__ == "__main__":
    main()
