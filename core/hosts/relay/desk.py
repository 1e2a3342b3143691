"""Gives away the slots that are free: tells the carriers for which runs they are to get a ticket."""

from __future__ import annotations

from collections.abc import Collection

from ... import paths
from ...project.queue import read_state
from .._carrier import Wish
from .admission import NO_HOST, Asking, Placed, Ruling, admit
from .means import Means
from .remote import Remote
from .roster import Roster


class Desk:
    def __init__(self, project: paths.Project, roster: Roster) -> None:
        self._project = project
        self._roster = roster
        self._rulings: dict[str, Ruling] = {}

    def ruling(self, run_id: str) -> Ruling:
        """Return what was ruled on a run the last time."""
        return self._rulings.get(run_id, Ruling())

    def may_start(self, run_id: str) -> bool:
        """Return whether a slot that is offered to a run may be taken: it is meant to have one, and the queue is not
        held by now.
        """
        return bool(self.ruling(run_id).key) and not read_state(self._project.slots).held

    def forget(self, run_id: str) -> None:
        self._rulings.pop(run_id, None)

    def admit(self, runs: Collection[Remote], means: Means) -> None:
        """Rule on all runs that wait, and want a ticket for those that may go and for those that hold a slot."""
        queue = read_state(self._project.slots)
        turn = {run_id: number for number, run_id in enumerate(queue.order)}
        waiting = [run for run in runs if run.permit is None]
        waiting.sort(key=lambda run: (turn.get(run.id, len(turn)), *run.age))
        asking, placed = [_asking(run) for run in waiting], self._placed(runs)
        self._rulings = admit(
            asking,
            placed,
            self._roster.rooms(),
            self._roster.names,
            why_none=next(iter((*means.all_faults, *self._roster.faults)), "").partition(": ")[2] or NO_HOST,
            max_running=means.settings.max_running,
            held=queue.held,
            before=self._rulings,
        )
        wishes = {run.run: (run.key, Wish(run.run, _plain(run.key), run.needs)) for run in placed if run.key}
        for run in asking:
            if key := self._rulings[run.run].key:
                is_bound = run.host or self._roster.has_unfit
                wishes[run.run] = (key, Wish(run.run, _plain(key) if is_bound else "", run.needs))
        for carrier in means.carriers:
            carrier.want({run: wish for run, (key, wish) in wishes.items() if key.startswith(f"{carrier.name} ")})

    def _placed(self, runs: Collection[Remote]) -> list[Placed]:
        placed: list[Placed] = []
        for run in runs:
            if run.permit is not None:
                host = self._roster.host_of(run)
                group = run.meta.group.id if run.meta.group else ""
                placed.append(Placed(run.id, host.handle if host else "", group, run.meta.needs))
        return placed


def _asking(run: Remote) -> Asking:
    meta = run.meta
    group, most = (meta.group.id, meta.group.max_parallel) if meta.group else ("", None)
    return Asking(run.id, group, most, meta.max_running, meta.host, meta.needs)


def _plain(handle: str) -> str:
    """Return what its carrier calls a host."""
    return handle.partition(" ")[2]
