"""What stands on the edges of the run list: the filter, the sort, marks, and who needs the operator; pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ...core.text.plain import one_line
from ..actions import ACTIONS, Action, key_of

if TYPE_CHECKING:
    from .board import Board
    from .listing import Listing

FILTER_SHOWN = 40
"""Characters of a filter that the title shows."""


def upper_edge(listing: Listing, known: int) -> str:
    """`Runs · 12 of 240 · status:failed · by cost`; what is as usual is not said."""
    parts = ["Runs"]
    if listing.filter:
        parts += [f"{listing.shown} of {known}", f"/ {one_line(listing.filter.text, FILTER_SHOWN)}"]
    if listing.sort:
        parts.append(listing.sort.value)
    return " · ".join(parts)


def lower_edge(board: Board, listing: Listing, actions: Sequence[Action] = ACTIONS) -> str:
    """`3 marked, 1 not shown · 2 need you  ] next`."""
    parts: list[str] = []
    if board.marked:
        hidden = sum(listing.row_of(run_id) is None for run_id in board.marked)
        parts.append(f"{len(board.marked)} marked" + (f", {hidden} not shown" if hidden else ""))
    if unseen := len(board.unseen):
        verb = "needs" if unseen == 1 else "need"
        parts.append(f"{unseen} {verb} you  {key_of('next_unseen', actions)} next")
    return " · ".join(parts)
