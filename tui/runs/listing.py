"""The rows of the run list: single runs and groups in their order, those that a filter lets pass; kept as runs change.

A unit is a single run or a group; its rows stand together. Rows are kept sorted by keys that begin with the key of
their unit, so what one change costs does not grow with what has not changed.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable
from typing import TYPE_CHECKING, NamedTuple

from .filter import EVERYTHING, Filter, Seen
from .order import GroupFacts, Section, Sort, Value, as_one, group_key, place_in_group, run_key

if TYPE_CHECKING:
    from ...core.project.follower import Update
    from ...core.run.model import RunSnapshot
    from .board import RunStore

BULK = 64
"""From this many changed units on, sorting once is cheaper than moving each."""
HEAD = -1
"""The head's index among the rows of its group."""

RowKey = tuple[int, Value, str, str, int, str]
"""Section, what the sort compares, age, unit, index within the unit, run id."""
_UNIT = 3
_GROUP = "+"
"""Begins the name of a unit that is a group."""


class Row(NamedTuple):
    """What a row shows, whatever its place is."""

    unit: str
    run_id: str
    """Empty for the head of a group."""


class Listing:
    """Keeps the rows up to date with a board, a filter, a sort and what is folded."""

    def __init__(self, board: RunStore) -> None:
        self._board = board
        self.filter: Filter = EVERYTHING
        self.sort = Sort.AGE
        self.order = 0
        """Grows whenever a row has got another place than before."""
        self._held: str | None = None
        """A run that is shown although the filter may not let it pass: the cursor is on it."""
        self.folded: set[str] = set()
        """Groups of which only the head is shown; changed by `fold`."""
        self._hidden: set[str] = set()
        """Runs that the filter does not let pass."""
        self._unit_of: dict[str, str] = {}
        """Units of the runs that were launched together with others."""
        self._siblings: dict[str, set[str]] = {}
        """The known runs of each group."""
        self._groups: dict[str, GroupFacts] = {}
        """Of the groups that have a head."""
        self._units: dict[str, tuple[RowKey, ...]] = {}
        self._rows: list[RowKey] = []

    def __len__(self) -> int:
        return len(self._rows)

    @property
    def active(self) -> int:
        """Rows of what is not finished; they are the first ones."""
        return bisect_left(self._rows, (int(Section.FINISHED),))

    @property
    def shown(self) -> int:
        """Runs that are shown, those in folded groups included."""
        return len(self._board) - len(self._hidden)

    # --- rows --------------------------------------------------------------------------------------------------------

    def row(self, place: int) -> Row:
        """Return what a row shows; raises IndexError beyond the last."""
        key = self._rows[place]
        return Row(key[_UNIT], key[-1])

    def place_of(self, row: Row) -> int | None:
        """Return where a row is."""
        wanted = next((key for key in self._units.get(row.unit, ()) if key[-1] == row.run_id), None)
        return None if wanted is None else bisect_left(self._rows, wanted)

    def row_of(self, run_id: str | None) -> Row | None:
        """Return the row that shows a run: its own, or the head of a folded group."""
        if run_id is None or run_id not in self._board or run_id in self._hidden:
            return None
        unit = self.unit_of(run_id)
        return Row(unit, "") if unit in self.folded and unit in self._groups else Row(unit, run_id)

    def group(self, unit: str) -> GroupFacts | None:
        """Return what the head of a group says; None for what has no head."""
        return self._groups.get(unit)

    def unit_of(self, run_id: str) -> str:
        return self._unit_of.get(run_id, run_id)

    def runs_in(self, row: Row) -> tuple[str, ...]:
        """Return the runs that a row stands for."""
        if row.run_id:
            return (row.run_id,)
        group = self._groups.get(row.unit)
        return group.members if group else ()

    def shown_ids(self) -> list[str]:
        """Return the ids of the runs that are shown, those in folded groups included, from above."""
        heads = (Row(key[_UNIT], key[-1]) for key in self._rows if key[4] == HEAD or key[_UNIT] not in self._groups)
        return [run_id for row in heads for run_id in self.runs_in(row)]

    def key_of(self, run_id: str) -> RowKey:
        """Return the key of the row of a run, or the one that it would have."""
        run = self._board.get(run_id)
        unit = self.unit_of(run_id)
        if group := self._groups.get(unit):
            index = group.members.index(run_id) if run_id in group.members else len(group.members)
            return (*group_key(group, self.sort), unit, index, run_id)
        return ((*run_key(run, self.sort), unit, 0, run_id)) if run else (0, 0.0, "", unit, 0, run_id)

    # --- what changes them -------------------------------------------------------------------------------------------

    def take(self, update: Update) -> None:
        """Follow the board after it took an update."""
        changed = {self._leave(run_id): None for run_id in update.removed if run_id not in self._board}
        changed.update((self._enter(run), None) for run in update.runs)
        self._rebuild(changed)

    def look_again(self, run_ids: Iterable[str]) -> None:
        """Ask the filter again about runs that were marked or looked at."""
        if self.filter.asks_seen:
            self._rebuild({self._enter(run): None for run_id in run_ids if (run := self._board.get(run_id))})

    def hold(self, run_id: str | None) -> None:
        """Show this run whatever the filter says, until another one is held."""
        if run_id == self._held:
            return
        begin_grace, self._held = self._held, run_id
        if self.filter:
            both = (self._board.get(begin_grace), self._board.get(run_id))
            self._rebuild({self._enter(run): None for run in both if run is not None})

    def filter_by(self, wanted: Filter) -> None:
        """Show what this lets pass, and nothing else: what was held is let go."""
        self.filter, self._held = wanted, None
        hidden = {run.run_id for run in self._board.runs if not self._passes(run)} if wanted else set[str]()
        changed, self._hidden = hidden ^ self._hidden, hidden
        self._rebuild(dict.fromkeys(map(self.unit_of, changed)))

    def sort_by(self, sort: Sort) -> None:
        self.sort = sort
        self._units = {unit: self._rows_of(unit) for unit in self._units}
        self._rows = sorted(key for rows in self._units.values() for key in rows)
        self.order += 1

    def fold(self, unit: str, folded: bool) -> None:
        """Show only the head of a group, or its runs too."""
        if folded:
            self.folded.add(unit)
        else:
            self.folded.discard(unit)
        self._rebuild({unit: None})

    # --- keeping them ------------------------------------------------------------------------------------------------

    def _passes(self, run: RunSnapshot) -> bool:
        run_id = run.run_id
        if not self.filter or run_id == self._held:
            return True
        return self.filter.lets_pass(run, Seen(self._board.is_unseen(run_id), run_id in self._board.marked))

    def _enter(self, run: RunSnapshot) -> str:
        """Note a run that is new or changed; return its unit."""
        run_id, group = run.run_id, run.meta.group
        if self._passes(run):
            self._hidden.discard(run_id)
        else:
            self._hidden.add(run_id)
        if group is not None and group.size > 1 and run_id not in self._unit_of and run_id not in self._units:
            unit = self._unit_of[run_id] = _GROUP + group.id
            self._siblings.setdefault(unit, set()).add(run_id)
        return self.unit_of(run_id)

    def _leave(self, run_id: str) -> str:
        """Forget a run that is gone; return the unit that it was in."""
        self._hidden.discard(run_id)
        unit = self._unit_of.pop(run_id, run_id)
        if siblings := self._siblings.get(unit):
            siblings.discard(run_id)
            if not siblings:
                del self._siblings[unit]
                self.folded.discard(unit)
        return unit

    def _rebuild(self, units: dict[str, None]) -> None:
        """Draw up the rows of these units again and put those in place that have changed."""
        changed = {unit: rows for unit in units if (rows := self._rows_of(unit)) != self._units.get(unit, ())}
        if not changed:
            return
        self.order += 1
        if len(changed) > BULK:
            self._rows = [key for key in self._rows if key[_UNIT] not in changed]
            self._rows += (key for rows in changed.values() for key in rows)
            self._rows.sort()
        else:
            for unit, rows in changed.items():
                self._move(self._units.get(unit, ()), rows)
        self._units.update(changed)
        for unit in [unit for unit, rows in changed.items() if not rows]:
            del self._units[unit]

    def _move(self, before: tuple[RowKey, ...], after: tuple[RowKey, ...]) -> None:
        if before:
            place = bisect_left(self._rows, before[0])
            del self._rows[place : place + len(before)]
        if after:
            place = bisect_left(self._rows, after[0])
            self._rows[place:place] = after

    def _rows_of(self, unit: str) -> tuple[RowKey, ...]:
        siblings = self._siblings.get(unit)
        if siblings is None:
            self._groups.pop(unit, None)
            run = self._board.get(unit)
            return () if run is None or unit in self._hidden else ((*run_key(run, self.sort), unit, 0, unit),)
        shown = [run for run_id in siblings - self._hidden if (run := self._board.get(run_id))]
        if len(shown) < 2:
            self._groups.pop(unit, None)
            return tuple((*run_key(run, self.sort), unit, 0, run.run_id) for run in shown)
        shown.sort(key=place_in_group)
        group = self._groups[unit] = as_one(shown, len(siblings))
        whole = (*group_key(group, self.sort), unit)
        head = (*whole, HEAD, "")
        if unit in self.folded:
            return (head,)
        return (head, *((*whole, index, run_id) for index, run_id in enumerate(group.members)))


def next_of(run_ids: Iterable[str], listing: Listing, row: Row | None, step: int) -> str | None:
    """Return which of these runs comes next below a row (step 1) or above it (-1), around the end.

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
