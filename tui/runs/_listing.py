"""The rows of the run list: the runs and groups that pass the filter, in order; updated as runs change.

A group's rows are adjacent; a run without a group is its own group, under its id. Rows are kept sorted by keys that
begin with their group's key, so the cost of a change does not grow with the unchanged rows.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable
from typing import TYPE_CHECKING, NamedTuple

from ...core.run.columns import BY_AGE, CHANGES, Section, Sort, Value, has_changes
from ._extent import NO_RUNS
from .filter import EVERYTHING, Filter
from .order import GroupFacts, order_in_group, sort_key, summarize

if TYPE_CHECKING:
    from ...core.project.follower import Update
    from ...core.run.snapshot import RunSnapshot
    from .store import RunStore

BULK = 64
"""From this many changed groups on, sorting once is cheaper than moving each."""
HEAD = -1
"""The head's index among the rows of its group."""

RowKey = tuple[int, Value, str, str, int, str]
"""Section, sort value, age, group key, index within the group, run id."""
_GROUP_KEY = 3
_SEVERAL = "+"
"""Prefix of the key of a group of several runs."""


class Row(NamedTuple):
    """The content of a row, without its position."""

    group_key: str
    run_id: str
    """Empty for the head of a group."""


class Listing:
    """Keeps the rows up to date with a run_store, a filter, a sort and the folded groups."""

    def __init__(self, run_store: RunStore) -> None:
        self._run_store = run_store
        self.filter: Filter = EVERYTHING
        self.sort: Sort = BY_AGE
        self.backwards = False
        """Whether the order of the sort is reversed."""
        self.order = 0
        """Grows whenever a row or the extent has changed, so that all rows have to be drawn again."""
        self.extent = NO_RUNS
        """What the runs shown so far need of the columns."""
        self._pinned: str | None = None
        """A run that is shown even if it does not pass the filter: the cursor is on it."""
        self.folded: set[str] = set()
        """Groups that show only their head; changed by `fold`."""
        self._hidden: set[str] = set()
        """Runs that do not pass the filter."""
        self._group_keys: dict[str, str] = {}
        """Group keys of the runs that were launched together with others."""
        self._siblings: dict[str, set[str]] = {}
        """The known runs of each group."""
        self._groups: dict[str, GroupFacts] = {}
        """Of the groups that have a head."""
        self._rows_by_group: dict[str, tuple[RowKey, ...]] = {}
        self._rows: list[RowKey] = []

    def __len__(self) -> int:
        return len(self._rows)

    @property
    def active(self) -> int:
        """Number of rows of unfinished runs; they come first."""
        return bisect_left(self._rows, (int(Section.FINISHED),))

    @property
    def shown(self) -> int:
        """Number of shown runs, including those in folded groups."""
        return len(self._run_store) - len(self._hidden)

    @property
    def has_remote(self) -> bool:
        """Whether a run on another machine is shown."""
        return bool(self._run_store.remote) and not self._hidden.issuperset(self._run_store.remote)

    @property
    def has_several_agents(self) -> bool:
        """Whether runs of more than one agent are shown."""
        by_agent = self._run_store.by_agent
        if len(by_agent) < 2:
            return False
        return len(by_agent) - sum(map(self._hidden.issuperset, by_agent.values())) > 1

    # --- rows --------------------------------------------------------------------------------------------------------

    def row(self, index: int) -> Row:
        """Return the content of a row. Raises IndexError beyond the last."""
        key = self._rows[index]
        return Row(key[_GROUP_KEY], key[-1])

    def index_of(self, row: Row) -> int | None:
        row_key = next((key for key in self._rows_by_group.get(row.group_key, ()) if key[-1] == row.run_id), None)
        return None if row_key is None else bisect_left(self._rows, row_key)

    def row_of(self, run_id: str | None) -> Row | None:
        """Return the row that shows a run: its own, or the head of a folded group."""
        if run_id is None or run_id not in self._run_store or run_id in self._hidden:
            return None
        group_key = self.group_key_of(run_id)
        return Row(group_key, "") if group_key in self.folded and group_key in self._groups else Row(group_key, run_id)

    def group(self, group_key: str) -> GroupFacts | None:
        """Return the facts for the head of a group; None without a head."""
        return self._groups.get(group_key)

    def group_key_of(self, run_id: str) -> str:
        return self._group_keys.get(run_id, run_id)

    def runs_in(self, row: Row) -> tuple[str, ...]:
        """Return the runs of a row."""
        if row.run_id:
            return (row.run_id,)
        group = self._groups.get(row.group_key)
        return group.members if group else ()

    def shown_ids(self) -> list[str]:
        """Return the ids of the shown runs from the top, including those in folded groups."""
        heads = (
            Row(key[_GROUP_KEY], key[-1]) for key in self._rows if key[4] == HEAD or key[_GROUP_KEY] not in self._groups
        )
        return [run_id for row in heads for run_id in self.runs_in(row)]

    def key_of(self, run_id: str) -> RowKey:
        """Return the key of a run's row, even if it is not shown."""
        group_key = self.group_key_of(run_id)
        if group := self._groups.get(group_key):
            index = group.members.index(run_id) if run_id in group.members else len(group.members)
            return (*self._rows_by_group[group_key][0][:4], index, run_id)
        run = self._run_store.get(run_id)
        return self._lone_key(run, group_key) if run else (0, 0.0, "", group_key, 0, run_id)

    def _lone_key(self, run: RunSnapshot, group_key: str) -> RowKey:
        return (*sort_key((run,), run.status, self.sort, backwards=self.backwards), group_key, 0, run.run_id)

    # --- changing rows -----------------------------------------------------------------------------------------------

    def take(self, update: Update) -> None:
        """Apply an update that the run store has applied."""
        changed = {self._leave(run_id): None for run_id in update.removed if run_id not in self._run_store}
        changed.update((self._enter(run), None) for run in update.runs)
        self._rebuild(changed)

    def refilter(self, run_ids: Iterable[str]) -> None:
        """Apply the filter again to runs that were marked or seen."""
        if self.filter:
            self._rebuild({self._enter(run): None for run_id in run_ids if (run := self._run_store.get(run_id))})

    def pin(self, run_id: str | None) -> None:
        """Show this run even if it does not pass the filter, until another one is pinned."""
        if run_id == self._pinned:
            return
        former, self._pinned = self._pinned, run_id
        if self.filter:
            both = (self._run_store.get(former), self._run_store.get(run_id))
            self._rebuild({self._enter(run): None for run in both if run is not None})

    def filter_by(self, parsed: Filter) -> None:
        """Show only runs that pass this filter; remove the pin."""
        self.filter, self._pinned = parsed, None
        hidden = {run.run_id for run in self._run_store.runs if not self._passes(run)} if parsed else set[str]()
        changed, self._hidden = hidden ^ self._hidden, hidden
        for run_id in changed - hidden:
            if run := self._run_store.get(run_id):
                self._measure(run)
        self._rebuild(dict.fromkeys(map(self.group_key_of, changed)))

    def sort_by(self, sort: Sort, *, backwards: bool = False) -> None:
        self.sort, self.backwards = sort, backwards
        self._rows_by_group = {key: self._rows_of(key) for key in self._rows_by_group}
        self._rows = sorted(key for rows in self._rows_by_group.values() for key in rows)
        self.order += 1

    def fold(self, group_key: str, folded: bool) -> None:
        """Show only the head of a group, or also its runs."""
        if folded:
            self.folded.add(group_key)
        else:
            self.folded.discard(group_key)
        self._rebuild({group_key: None})

    # --- keeping rows sorted -----------------------------------------------------------------------------------------

    def _passes(self, run: RunSnapshot) -> bool:
        run_id = run.run_id
        if not self.filter or run_id == self._pinned:
            return True
        return self.filter.passes(run, self._run_store.flags(run_id))

    def _enter(self, run: RunSnapshot) -> str:
        """Record a new or changed run; return its group key."""
        run_id, group = run.run_id, run.meta.group
        if self._passes(run):
            self._hidden.discard(run_id)
            self._measure(run)
        else:
            self._hidden.add(run_id)
        is_known = run_id in self._group_keys or run_id in self._rows_by_group
        if group is not None and group.size > 1 and not is_known and not run.foreign:
            group_key = self._group_keys[run_id] = _SEVERAL + group.id
            self._siblings.setdefault(group_key, set()).add(run_id)
        return self.group_key_of(run_id)

    def _measure(self, run: RunSnapshot) -> None:
        extent = self.extent.including(run)
        if extent is not self.extent:
            self.extent = extent
            self.order += 1

    def take_changing(self, run_ids: Iterable[str]) -> None:
        """Show the column of changes once a shown run has some while it runs."""
        if CHANGES not in self.extent.empty:
            return
        changing = self._run_store.changing
        if any(has_changes(changing.get(run_id)) for run_id in run_ids if run_id not in self._hidden):
            self.extent = self.extent.with_column(CHANGES)
            self.order += 1

    def _leave(self, run_id: str) -> str:
        """Forget a removed run; return the key of its group."""
        self._hidden.discard(run_id)
        group_key = self._group_keys.pop(run_id, run_id)
        if siblings := self._siblings.get(group_key):
            siblings.discard(run_id)
            if not siblings:
                del self._siblings[group_key]
                self.folded.discard(group_key)
        return group_key

    def _rebuild(self, group_keys: dict[str, None]) -> None:
        """Compute the rows of these groups again, and move the changed ones."""
        before = self._rows_by_group
        changed = {key: rows for key in group_keys if (rows := self._rows_of(key)) != before.get(key, ())}
        if not changed:
            return
        self.order += 1
        if len(changed) > BULK:
            self._rows = [key for key in self._rows if key[_GROUP_KEY] not in changed]
            self._rows += (key for rows in changed.values() for key in rows)
            self._rows.sort()
        else:
            for group_key, rows in changed.items():
                self._move(self._rows_by_group.get(group_key, ()), rows)
        self._rows_by_group.update(changed)
        for group_key in [group_key for group_key, rows in changed.items() if not rows]:
            del self._rows_by_group[group_key]

    def _move(self, before: tuple[RowKey, ...], after: tuple[RowKey, ...]) -> None:
        if before:
            start = bisect_left(self._rows, before[0])
            del self._rows[start : start + len(before)]
        if after:
            start = bisect_left(self._rows, after[0])
            self._rows[start:start] = after

    def _rows_of(self, group_key: str) -> tuple[RowKey, ...]:
        siblings = self._siblings.get(group_key, {group_key})
        shown = [run for run_id in siblings - self._hidden if (run := self._run_store.get(run_id))]
        if len(shown) < 2:
            self._groups.pop(group_key, None)
            return tuple(self._lone_key(run, group_key) for run in shown)
        shown.sort(key=order_in_group)
        group = self._groups[group_key] = summarize(shown, len(siblings))
        whole = (*sort_key(shown, group.status, self.sort, backwards=self.backwards), group_key)
        head = (*whole, HEAD, "")
        if group_key in self.folded:
            return (head,)
        return (head, *((*whole, index, run_id) for index, run_id in enumerate(group.members)))
