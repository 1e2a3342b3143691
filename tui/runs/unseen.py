"""Which run that needs the operator comes next; pure."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from .listing import HEAD

if TYPE_CHECKING:
    from .listing import Listing, Row


def next_of(run_ids: Iterable[str], listing: Listing, row: Row | None, step: int) -> str | None:
    """Answer which of these runs comes next below a row (step 1) or above it (-1), around the end.

    Runs that a filter hides are where they would be without it.
    """
    ordered = sorted(run_ids, key=listing.key_of)
    if row is None or not ordered:
        return ordered[0] if ordered else None
    if row.run_id:
        here = listing.key_of(row.run_id)
    else:
        group = listing.group(row.unit)
        here = (*listing.key_of(group.members[0] if group else "")[:4], HEAD, "")
    if step > 0:
        return next((run_id for run_id in ordered if listing.key_of(run_id) > here), ordered[0])
    return next((run_id for run_id in reversed(ordered) if listing.key_of(run_id) < here), ordered[-1])
