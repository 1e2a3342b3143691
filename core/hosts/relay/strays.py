"""What hosts have of runs that are not open here any more: they were delivered, given up or deleted."""

from __future__ import annotations

import os
import random
import time
from collections.abc import Collection, Iterable, Mapping
from functools import partial

from ... import paths
from ...run import artifacts
from ...system import files
from ..protocol import Have
from .courier import Courier
from .errands import Errands
from .journal import Journal
from .remote import ALL_OF_IT, ENDED_BY, Remote
from .roster import Host

MOST_AT_ONCE = 50
"""Runs of a host that are seen to after one of its answers; the next ones after the next."""
WAITED_S = 600.0
"""How long a relay that has nothing else to do waits for a host to let go of such runs."""
_OWN_ENDS = (artifacts.GIVEN_UP_BY, ENDED_BY)
"""Who writes ends that the host of a run may know better."""


class Strays:
    def __init__(self, project: paths.Project, courier: Courier, errands: Errands, journal: Journal) -> None:
        self._project = project
        self._courier = courier
        self._errands = errands
        self._journal = journal
        self._given_up: dict[str, Remote] = {}

    def get(self, run_id: str) -> Remote | None:
        """Return a run that was given up, and whose host has not told yet how it ended."""
        return self._given_up.get(run_id)

    def are_on(self, hosts: Iterable[Host]) -> bool:
        """Return whether a host that can be asked still has one that was given up or deleted, and may let go of it."""
        return any(
            host.can_be_asked and host.strays_since is not None and time.monotonic() - host.strays_since < WAITED_S
            for host in hosts
        )

    def have(self, host: Host) -> Mapping[str, Have]:
        """Return what is here of those that a host has: of the deleted ones all that anybody wants."""
        there = [run for run in self._given_up.values() if run.is_at(host.spool, host.via) and not run.is_ending]
        return dict.fromkeys(host.deleted & host.known, ALL_OF_IT) | {run.id: run.have() for run in there}

    def look(self) -> None:
        """Wait no longer for the ends of those that were deleted since."""
        for remote in list(self._given_up.values()):
            self._errands.guard(remote, self._forget_deleted)

    def _forget_deleted(self, remote: Remote) -> None:
        """Wait no longer for the end of one that is not here any more. Raises OSError."""
        if not files.is_there(remote.run_dir):
            self.drop(remote)

    def drop(self, remote: Remote) -> None:
        """Wait no longer for the end of a run that was given up."""
        self._given_up.pop(remote.id, None)

    def acknowledge(self, host: Host, run_id: str) -> None:
        """Let a host know that nothing of a run is wanted any more."""
        self._errands.run("ack", _there(run_id, host), partial(self._courier.ack, host, run_id))

    def see_to(self, host: Host, run_ids: Collection[str]) -> None:
        """Do what is due about the runs that a host has and that are not open here: about a few of them at a time."""
        host.told &= host.known
        host.deleted &= host.known
        if len(run_ids) > MOST_AT_ONCE:
            run_ids = random.sample(tuple(run_ids), MOST_AT_ONCE)  # each gets its turn, whatever else it says
        for run_id in run_ids:
            try:
                if run_id in self._given_up:
                    self._end_there(host, run_id, "abandoned")
                else:
                    self._find(host, run_id)
            except OSError as error:
                self._journal.note(f"{run_id}: {error}")
        if host.known.isdisjoint(self._given_up.keys() | host.deleted):
            host.strays_since = None
        elif host.strays_since is None:
            host.strays_since = time.monotonic()

    def _find(self, host: Host, run_id: str) -> None:
        """Find out what became of a run here, and act on it. Raises OSError."""
        run_dir = self._project.run_dir(run_id)
        if not files.is_there(run_dir):
            if files.is_there(self._project.runs):
                host.deleted.add(run_id)
                self._end_there(host, run_id, "deleted")
            return
        host.deleted.discard(run_id)
        host.told.discard(run_id)
        result = artifacts.read_result(run_dir, certain=True)
        if result is None:
            return  # it is not taken up yet
        is_late = files.is_there(os.path.join(run_dir, paths.LATE_RESULT))
        is_own = result.written_by in _OWN_ENDS
        meta = artifacts.read_meta(run_dir, certain=True) if is_own and not is_late else None
        if meta is None:
            self.acknowledge(host, run_id)
            return
        run = Remote(self._project, run_id, meta)
        run.open()
        run.is_given_up = True
        if run.is_at(host.spool, host.via):
            self._given_up[run_id] = run
            self._end_there(host, run_id, "abandoned")

    def _end_there(self, host: Host, run_id: str, why: str) -> None:
        """Have a host end a run that nobody waits for any more, unless it has heard that."""
        if run_id not in host.told:
            self._errands.run("stop", _there(run_id, host), partial(self._ended_there, host, run_id, why))

    async def _ended_there(self, host: Host, run_id: str, why: str) -> None:
        await self._courier.end_there(host, run_id, why)
        host.told.add(run_id)


def _there(run_id: str, host: Host) -> str:
    """Name a run on a host: what one host says of a run is not what another one says of it."""
    return f"{run_id} on {host.spool[:8]}"
