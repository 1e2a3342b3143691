"""What people and programs name runs by: ids, short ids, or an unambiguous beginning of either."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from ..errors import UnknownRun
from ..text.plain import one_line


def found(word: str, names: Sequence[str], trash: Callable[[], Sequence[str]] | None) -> str:
    """Return the one of these ids that a word stands for. Raises UnknownRun.

    `trash` has the ids of deleted runs, for a hint; None where the ids are those.
    """
    matching = _matching(word, names)
    exact = [name for name in matching if word in (name, name[-6:])]
    candidates = exact or matching
    if len(candidates) == 1:
        return candidates[0]
    shown = one_line(word, 40)
    if not candidates:
        if trash is not None and len(gone := _matching(word, trash())) == 1:
            what, hint = f"run {gone[0][-6:]} was deleted", f"subdeck rm --undo {gone[0][-6:]} restores it"
            raise UnknownRun(what, where=gone[0], hint=hint, code="run.deleted")
        raise UnknownRun(f'no run matches "{shown}"', where="run", hint="subdeck status --all lists all runs")
    some = ", ".join(name[-6:] for name in candidates[:5])
    what = f'{len(candidates)} runs match "{shown}"'
    raise UnknownRun(what, where="run", hint=f"use a longer id: {some} …", code="run.ambiguous")


def _matching(word: str, names: Iterable[str]) -> list[str]:
    return [name for name in names if word and (name.startswith(word) or name[-6:].startswith(word))]
