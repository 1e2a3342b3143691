"""Where within a line its words stand on the screen: which of its rows, or behind a fold; pure."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from .position import Spot

if TYPE_CHECKING:
    from .document import Document


class Shown(NamedTuple):
    spot: Spot
    """The first row with the words; the line's first one where none has them."""
    folded: bool
    """No row has them, and opening the line may show them."""


def words_in_line(document: Document, offset: int, words: str) -> Shown | None:
    """Answer where a line shows these words, whatever their case; None where no line begins at this byte."""
    if not len(document.table):
        return None
    rows = document.rows(document.table.holding(offset))
    entry = rows.index_of(offset)
    if entry >= len(rows.entries) or rows.offsets[entry] != offset:
        return None
    low = words.lower()
    texts = [row.text.lower() for row in rows.cut(entry)]
    # Words that are broken over two rows are shown by the first of them.
    joined = [f"{text} {below}" for text, below in zip(texts, [*texts[1:], ""], strict=True)]
    for sought in (texts, joined):
        if (part := next((part for part, text in enumerate(sought) if low in text), None)) is not None:
            return Shown(Spot(offset, part), False)
    return Shown(Spot(offset), rows.entries[entry].opens and not document.is_open(offset))
