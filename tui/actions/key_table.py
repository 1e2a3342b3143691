"""The keys of the registry as README's table; `python -m subdeck.tui.actions.key_table README.md` writes it anew."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

from . import ACTIONS, PANES, Action, Place, key_label, said

BEGIN, END = "<!-- keys -->", "<!-- /keys -->"

LISTED = (
    Place.APP,
    Place.DECK,
    *PANES,
    Place.SEARCH,
    Place.FILTER,
    Place.LAUNCH,
    Place.EDIT,
    Place.COPY,
    Place.DETAIL,
    Place.CLEAN_UP,
    Place.READING,
    Place.CONFIRM,
)
"""Places whose keys are listed; those of the help are told by the help."""


def key_table() -> str:
    """Answer a markdown table with a row for each thing that can be done."""
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
    places: dict[tuple[str, ...], list[Place]] = {}
    for place in LISTED:
        if keys := tuple(key for action in actions for key in action.keys_in(place)):
            places.setdefault(keys, []).append(place)
    return ", ".join(" ".join(f"`{_label(key)}`" for key in keys) + _where(where) for keys, where in places.items())


def _label(key: str) -> str:
    return key_label(key).replace("^", "ctrl+").replace("⏎", "enter")


def _where(places: Sequence[Place]) -> str:
    everywhere = {Place.APP, Place.DECK} & set(places) or set(PANES) <= set(places)
    return "" if everywhere else f" ({', '.join(places)})"


def main() -> None:
    file = Path(sys.argv[1])
    file.write_text(with_table(file.read_text(encoding="utf-8")), encoding="utf-8")


if __name__ == "__main__":
    main()
