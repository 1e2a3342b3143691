"""The keys of the registry as README's table; `python -m subdeck.tui.key_table README.md` brings it up to date."""

from __future__ import annotations

import sys
from pathlib import Path

from . import ACTIONS, PANES, Action, Place, key_label, said

BEGIN, END = "<!-- keys -->", "<!-- /keys -->"

LISTED = (Place.APP, Place.DECK, *PANES, Place.LAUNCH, Place.COPY, Place.CLEAN_UP, Place.CONFIRM)
"""Places whose keys are listed; those of the help are told by the help."""


def key_table() -> str:
    """Answer a markdown table with a row for each action."""
    rows = [f"| {keys} | {said(action.help)} |" for action in ACTIONS if (keys := _keys(action))]
    return "\n".join(("| key | |", "|---|---|", *rows))


def with_table(text: str) -> str:
    """Replace what stands between the markers. Raises ValueError where they are missing."""
    before, _, rest = text.partition(BEGIN)
    _, found, after = rest.partition(END)
    if not found:
        raise ValueError(f"the markers {BEGIN} and {END} are missing")
    return f"{before}{BEGIN}\n{key_table()}\n{END}{after}"


def _keys(action: Action) -> str:
    """Say the keys, and where they mean this unless it is the whole deck or all its panes."""
    places: dict[tuple[str, ...], list[Place]] = {}
    for place in LISTED:
        if keys := action.keys_in(place):
            places.setdefault(keys, []).append(place)
    return ", ".join(" ".join(f"`{_label(key)}`" for key in keys) + _where(where) for keys, where in places.items())


def _label(key: str) -> str:
    return key_label(key).replace("^", "ctrl+").replace("⏎", "enter")


def _where(places: list[Place]) -> str:
    everywhere = set(places) & {Place.APP, Place.DECK} or len(places) == len(PANES)
    return "" if everywhere else f" ({', '.join(places)})"


def main() -> None:
    file = Path(sys.argv[1])
    file.write_text(with_table(file.read_text(encoding="utf-8")), encoding="utf-8")


if __name__ == "__main__":
    main()
