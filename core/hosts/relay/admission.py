"""Which of the runs that wait may have a slot now, and what the others wait for: pure, from what is known of the hosts.

The relay asks for no more slots than it knows to be free, because a cluster hands out at once what it is given, and
what lies on a host then waits behind long runs. The places of groups and of the project, which are locks on one
machine, are counted here for runs on hosts.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from msgspec import Struct

NO_HOST = "no host answers"


class Asking(Struct, frozen=True):
    """A run that has no permit, and what it asks for."""

    run: str
    group: str = ""
    max_parallel: int | None = None
    """How many of its group run at the same time."""
    max_running: int | None = None
    """How many runs of the project do."""
    host: str = ""
    needs: Mapping[str, float] = {}


class Placed(Struct, frozen=True):
    """A run that has a permit and no result."""

    run: str
    key: str = ""
    """Of its host; empty where that cannot be asked now."""
    group: str = ""
    needs: Mapping[str, float] = {}


class Room(Struct, frozen=True):
    """A host that can be asked now."""

    key: str
    name: str
    slots: int
    labels: Mapping[str, float] = {}
    others: int = 0
    """Slots that runs of other operators hold."""


class Ruling(Struct, frozen=True):
    """What becomes of a run that waits."""

    key: str = ""
    """Of the host whose free slot it is meant for; empty where it gets none yet."""
    why: str = ""
    """What it waits for beside its turn, in words."""
    passed_over: bool = False
    """Whether it stands in nobody's way: no host that answers could ever take it."""


class _Stock:
    """What is left of each host."""

    def __init__(
        self, rooms: Sequence[Room], placed: Iterable[Placed], names: Mapping[str, str], why_none: str
    ) -> None:
        self._why_none = why_none
        self._names = {room.name: "" for room in rooms} | dict(names)
        self._rooms = {room.key: room for room in rooms}
        self._slots = {room.key: room.slots - room.others for room in rooms}
        self._labels = {room.key: Counter(room.labels) for room in rooms}
        for run in placed:
            if run.key in self._rooms:
                self.take(run.key, run.needs)

    def take(self, key: str, needs: Mapping[str, float]) -> None:
        self._slots[key] -= 1
        self._labels[key].subtract(needs)

    def fitting(self, run: Asking, before: str) -> str | None:
        """Return the key of the host with most room for a run, or of the one it was meant for before; None for none."""
        fits = [
            key
            for key, room in self._rooms.items()
            if self._slots[key] > 0
            and run.host in ("", room.name)
            and all(self._labels[key][name] >= count for name, count in run.needs.items())
        ]
        return before if before in fits else max(fits, key=lambda key: self._slots[key], default=None)

    def why_never(self, run: Asking) -> str:
        """Say why no host could take a run even if it were idle; empty where one could."""
        if not self._rooms:
            return self._why_none
        rooms = [room for room in self._rooms.values() if run.host in ("", room.name)]
        if not rooms and run.host in self._names:
            return self._names[run.host] or f"{run.host} does not answer"
        if not rooms:
            return f"unknown host {run.host} (hosts: {', '.join(sorted(self._names))})"
        for name, count in run.needs.items():
            if not any(room.labels.get(name, 0.0) >= count for room in rooms):
                amount = name if count == 1 else f"{count:g} {name}"
                return f"{run.host} does not have {amount}" if run.host else f"no host has {amount}"
        if any(all(room.labels.get(name, 0.0) >= count for name, count in run.needs.items()) for room in rooms):
            return ""
        return f"no host has {', '.join(f'{name}={count:g}' for name, count in run.needs.items())}"


def admit(
    waiting: Sequence[Asking],
    placed: Sequence[Placed],
    rooms: Sequence[Room],
    names: Mapping[str, str] = {},
    *,
    why_none: str = NO_HOST,
    max_running: int | None = None,
    held: bool = False,
    before: Mapping[str, Ruling] = {},
) -> dict[str, Ruling]:
    """Rule on each run that waits, given in their turn.

    `names` are those of all hosts that were ever heard of, with why one takes no runs now; `why_none` says why there is
    no room, `max_running` is the settings' cap for runs on hosts, `before` what was ruled the last time. A run that no
    host could ever take stands in nobody's way. Where an older run waits for a label, a later one does not get it
    first.
    """
    stock = _Stock(rooms, placed, names, why_none)
    groups = Counter(run.group for run in placed if run.group)
    running = len(placed)
    contended: set[str] = set()
    rulings: dict[str, Ruling] = {}
    for run in waiting:
        if why := stock.why_never(run):
            rulings[run.run] = Ruling(why=why, passed_over=bool(rooms))
            continue
        why = _capped(run, groups, running, max_running)
        meant = before[run.run].key if run.run in before else ""
        key = None if held or why or contended & run.needs.keys() else stock.fitting(run, meant)
        if key is None:
            rulings[run.run] = Ruling(why=why)
            if not why:
                contended |= run.needs.keys()
            continue
        stock.take(key, run.needs)
        running += 1
        if run.group:
            groups[run.group] += 1
        rulings[run.run] = Ruling(key)
    return rulings


def _capped(run: Asking, groups: Mapping[str, int], running: int, max_running: int | None) -> str:
    """Say which cap keeps a run waiting, in words; empty where none does."""
    if run.max_parallel is not None and run.group and groups.get(run.group, 0) >= run.max_parallel:
        return f"limit of {run.max_parallel} parallel runs in its group reached"
    if run.max_running is not None and running >= run.max_running:
        return f"limit of {run.max_running} parallel runs in the project reached"
    if max_running is not None and running >= max_running:
        return f"limit of {max_running} parallel runs on hosts reached"
    return ""
