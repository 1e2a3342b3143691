"""Decides which waiting runs get a free slot now, and why the others wait.

`schedule` is pure: it uses only what hosts have reported. It assigns no more slots than are known to be free, because a
cluster hands out tickets at once, and a ticket waiting on a host queues behind long runs. Limits of groups and of the
project, which are locks on one machine, are counted here for runs on hosts.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence

from msgspec import Struct

from ... import paths
from ...project.queue import read_state
from .._carrier import Wish
from .connections import CarrierSet
from .runs import RemoteRun
from .slots import Capacity, Hosts

NO_HOST = "no host answers"


class WaitingRun(Struct, frozen=True):
    """A run without a permit, and what it requires."""

    run: str
    group: str = ""
    max_parallel: int | None = None
    """Most runs of its group at the same time."""
    max_running: int | None = None
    """Most runs of the project at the same time."""
    host: str = ""
    needs: Mapping[str, float] = {}


class PlacedRun(Struct, frozen=True):
    """A run with a permit and without a result."""

    run: str
    key: str = ""
    """The handle of its host; empty if it is offline."""
    group: str = ""
    needs: Mapping[str, float] = {}


class Decision(Struct, frozen=True):
    """The decision on a waiting run."""

    key: str = ""
    """The handle of the host with the assigned slot; empty if it has to wait."""
    why: str = ""
    """What it waits for other than its turn, in words."""
    passed_over: bool = False
    """Whether younger runs may start first, because no online host could ever take it."""


class _FreeSlots:
    """The free slots and labels of each host."""

    def __init__(
        self, capacities: Sequence[Capacity], placed: Iterable[PlacedRun], names: Mapping[str, str], why_none: str
    ) -> None:
        self._why_none = why_none
        self._names = {capacity.name: "" for capacity in capacities} | dict(names)
        self._capacities = {capacity.key: capacity for capacity in capacities}
        self._slots = {capacity.key: capacity.slots - capacity.others for capacity in capacities}
        self._labels = {capacity.key: Counter(capacity.labels) for capacity in capacities}
        for run in placed:
            if run.key in self._capacities:
                self.take(run.key, run.needs)

    def take(self, key: str, needs: Mapping[str, float]) -> None:
        self._slots[key] -= 1
        self._labels[key].subtract(needs)

    def best_host(self, run: WaitingRun, before: str) -> str | None:
        """Return the fitting host with the most free slots, or the one assigned before; None if none fits."""
        fits = [
            key
            for key, capacity in self._capacities.items()
            if self._slots[key] > 0
            and run.host in ("", capacity.name)
            and all(self._labels[key][name] >= count for name, count in run.needs.items())
        ]
        return before if before in fits else max(fits, key=lambda key: self._slots[key], default=None)

    def why_impossible(self, run: WaitingRun) -> str:
        """Return why no host could take a run even when idle; empty if one could."""
        if not self._capacities:
            return self._why_none
        capacities = [capacity for capacity in self._capacities.values() if run.host in ("", capacity.name)]
        if not capacities and run.host in self._names:
            return self._names[run.host] or f"{run.host} does not answer"
        if not capacities:
            return f"unknown host {run.host} (hosts: {', '.join(sorted(self._names))})"
        for name, count in run.needs.items():
            if not any(capacity.labels.get(name, 0.0) >= count for capacity in capacities):
                amount = name if count == 1 else f"{count:g} {name}"
                return f"{run.host} does not have {amount}" if run.host else f"no host has {amount}"
        if any(all(host.labels.get(name, 0.0) >= count for name, count in run.needs.items()) for host in capacities):
            return ""
        return f"no host has {', '.join(f'{name}={count:g}' for name, count in run.needs.items())}"


def schedule(
    waiting: Sequence[WaitingRun],
    placed: Sequence[PlacedRun],
    capacities: Sequence[Capacity],
    names: Mapping[str, str] = {},
    *,
    why_none: str = NO_HOST,
    max_running: int | None = None,
    held: bool = False,
    before: Mapping[str, Decision] = {},
) -> dict[str, Decision]:
    """Decide on each waiting run, given in queue order.

    `names` are all hosts ever seen, each with the reason if it takes no runs now. `why_none` is the reason if there is
    no capacity, `max_running` the settings' limit of runs on hosts, `before` the last decisions. A run that no host
    could ever take does not block others. While an older run waits for a label, no younger run gets it first.
    """
    free = _FreeSlots(capacities, placed, names, why_none)
    groups = Counter(run.group for run in placed if run.group)
    running = len(placed)
    contended: set[str] = set()
    decisions: dict[str, Decision] = {}
    for run in waiting:
        if why := free.why_impossible(run):
            decisions[run.run] = Decision(why=why, passed_over=bool(capacities))
            continue
        why = _reached_limit(run, groups, running, max_running)
        assigned = before[run.run].key if run.run in before else ""
        key = None if held or why or contended & run.needs.keys() else free.best_host(run, assigned)
        if key is None:
            decisions[run.run] = Decision(why=why)
            if not why:
                contended |= run.needs.keys()
            continue
        free.take(key, run.needs)
        running += 1
        if run.group:
            groups[run.group] += 1
        decisions[run.run] = Decision(key)
    return decisions


def _reached_limit(run: WaitingRun, groups: Mapping[str, int], running: int, max_running: int | None) -> str:
    """Return the limit that keeps a run waiting, in words; empty if none does."""
    if run.max_parallel is not None and run.group and groups.get(run.group, 0) >= run.max_parallel:
        return f"limit of {run.max_parallel} parallel runs in its group reached"
    if run.max_running is not None and running >= run.max_running:
        return f"limit of {run.max_running} parallel runs in the project reached"
    if max_running is not None and running >= max_running:
        return f"limit of {max_running} parallel runs on hosts reached"
    return ""


class Scheduler:
    """Assigns the free slots, and requests a ticket from the carriers for each assigned run."""

    def __init__(self, project: paths.Project, hosts: Hosts) -> None:
        self._project = project
        self._hosts = hosts
        self._decisions: dict[str, Decision] = {}

    def decision(self, run_id: str) -> Decision:
        """Return the last decision on a run."""
        return self._decisions.get(run_id, Decision())

    def may_start(self, run_id: str) -> bool:
        """Return whether a run may take an offered slot: it was assigned one, and the queue is not paused."""
        return bool(self.decision(run_id).key) and not read_state(self._project.slots).held

    def forget(self, run_id: str) -> None:
        self._decisions.pop(run_id, None)

    def assign_slots(self, runs: Collection[RemoteRun], carrier_set: CarrierSet) -> None:
        """Decide on all waiting runs, and request tickets for runs that hold or were assigned a slot."""
        queue = read_state(self._project.slots)
        positions = {run_id: number for number, run_id in enumerate(queue.order)}
        without_permit = [run for run in runs if run.permit is None]
        without_permit.sort(key=lambda run: (positions.get(run.id, len(positions)), *run.age))
        waiting, placed = [_waiting(run) for run in without_permit], self._placed(runs)
        self._decisions = schedule(
            waiting,
            placed,
            self._hosts.capacities(),
            self._hosts.names,
            why_none=next(iter((*carrier_set.all_faults, *self._hosts.faults)), "").partition(": ")[2] or NO_HOST,
            max_running=carrier_set.settings.max_running,
            held=queue.held,
            before=self._decisions,
        )
        wishes = {run.run: (run.key, Wish(run.run, _carrier_key(run.key), run.needs)) for run in placed if run.key}
        for run in waiting:
            if key := self._decisions[run.run].key:
                is_bound = run.host or self._hosts.has_unfit
                wishes[run.run] = (key, Wish(run.run, _carrier_key(key) if is_bound else "", run.needs))
        for carrier in carrier_set.carriers:
            carrier.want({run: wish for run, (key, wish) in wishes.items() if key.startswith(f"{carrier.name} ")})

    def _placed(self, runs: Collection[RemoteRun]) -> list[PlacedRun]:
        placed: list[PlacedRun] = []
        for run in runs:
            if run.permit is not None:
                host = self._hosts.host_of(run)
                group = run.meta.group.id if run.meta.group else ""
                placed.append(PlacedRun(run.id, host.handle if host else "", group, run.meta.needs))
        return placed


def _waiting(run: RemoteRun) -> WaitingRun:
    meta = run.meta
    group, most = (meta.group.id, meta.group.max_parallel) if meta.group else ("", None)
    return WaitingRun(run.id, group, most, meta.max_running, meta.host, meta.needs)


def _carrier_key(handle: str) -> str:
    """Return the carrier's key of a host."""
    return handle.partition(" ")[2]
