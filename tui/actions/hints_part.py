"""Teach keys in the words of the registry, so that an operator's own keys are the ones that are named; pure."""

from __future__ import annotations

from collections.abc import Sequence

from rich.cells import cell_len

from ..text.wrap import wrap
from . import Action, key_of

GAP = "    "


def hint_lines(actions: Sequence[Action], hints: Sequence[tuple[str, str]], width: int) -> list[str]:
    """Say for each action id what it is good for, behind its key: in one line where that fits, else a line each."""
    keyed = [(key, words) for action_id, words in hints if (key := key_of(action_id, actions))]
    one = GAP.join(f"{key}  {words}" for key, words in keyed)
    if cell_len(one) + 2 <= width:
        return [f"  {one}"]
    widest = max((cell_len(key) for key, _ in keyed), default=0)
    lines: list[str] = []
    for key, words in keyed:
        first, *more = wrap(words, max(8, width - widest - 2))
        lines.append(f"{key}{' ' * (widest - cell_len(key))}  {first}")
        lines += [" " * (widest + 2) + row for row in more]
    return lines
