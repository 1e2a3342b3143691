"""Orphaned runs: a host has them, but they are not open here: they have finished, or were abandoned or deleted."""

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
from .journal import Journal
from .runs import ALL_OF_IT, RELAY, RemoteRun
from .slots import Host
from .transfers import BackgroundTasks, Transfers

MOST_AT_ONCE = 50
"""Most orphaned runs handled per answer of a host."""
WAITED_S = 600.0
"""Seconds that a relay without open runs waits for a host to end its orphaned runs."""
_WRITERS_HERE = (artifacts.GIVEN_UP_BY, RELAY)
"""Writers of results that give way to the host's result, or get it added beside them."""


class Orphans:
    def __init__(self, project: paths.Project, transfers: Transfers, tasks: BackgroundTasks, journal: Journal) -> None:
        self._project = project
        self._transfers = transfers
        self._tasks = tasks
        self._journal = journal
        self._abandoned: dict[str, RemoteRun] = {}

    def get(self, run_id: str) -> RemoteRun | None:
        """Return an abandoned run whose host has not reported its result yet."""
        return self._abandoned.get(run_id)

    def remain_on(self, hosts: Iterable[Host]) -> bool:
        """Return whether an online host still has abandoned or deleted runs, and may soon have ended them."""
        return any(
            host.can_be_asked and host.orphans_since is not None and time.monotonic() - host.orphans_since < WAITED_S
            for host in hosts
        )

    def have(self, host: Host) -> Mapping[str, Have]:
        """Return what is mirrored of a host's orphaned runs; files of deleted runs are no longer needed."""
        waiting = [run for run in self._abandoned.values() if run.is_at(host.spool, host.via) and not run.is_ending]
        return dict.fromkeys(host.deleted & host.known, ALL_OF_IT) | {run.id: run.have() for run in waiting}

    def forget_deleted(self) -> None:
        """Stop waiting for the results of abandoned runs that were deleted."""
        for run in list(self._abandoned.values()):
            self._tasks.guard(run, self._drop_deleted)

    def _drop_deleted(self, run: RemoteRun) -> None:
        if not files.is_there(run.run_dir):
            self.drop(run)

    def drop(self, run: RemoteRun) -> None:
        """Stop waiting for the result of an abandoned run."""
        self._abandoned.pop(run.id, None)

    def acknowledge(self, host: Host, run_id: str) -> None:
        """Let a host remove a run."""
        self._tasks.run("ack", _there(run_id, host), partial(self._transfers.acknowledge, host, run_id))

    def handle(self, host: Host, run_ids: Collection[str]) -> None:
        """Stop or acknowledge a host's orphaned runs, a limited number at a time."""
        host.stopped_orphans &= host.known
        host.deleted &= host.known
        if len(run_ids) > MOST_AT_ONCE:
            run_ids = random.sample(tuple(run_ids), MOST_AT_ONCE)  # random, so that every run is handled eventually
        for run_id in run_ids:
            try:
                if run_id in self._abandoned:
                    self._stop(host, run_id, "abandoned")
                else:
                    self._find(host, run_id)
            except OSError as error:
                self._journal.note(f"{run_id}: {error}")
        if host.known.isdisjoint(self._abandoned.keys() | host.deleted):
            host.orphans_since = None
        elif host.orphans_since is None:
            host.orphans_since = time.monotonic()

    def _find(self, host: Host, run_id: str) -> None:
        """Read the state of a run here, and act on it. Raises OSError."""
        run_dir = self._project.run_dir(run_id)
        if not files.is_there(run_dir):
            if files.is_there(self._project.runs):
                host.deleted.add(run_id)
                self._stop(host, run_id, "deleted")
            return
        host.deleted.discard(run_id)
        host.stopped_orphans.discard(run_id)
        result = artifacts.read_result(run_dir, certain=True)
        if result is None:
            return  # it has just been launched
        is_late = files.is_there(os.path.join(run_dir, paths.LATE_RESULT))
        was_written_here = result.written_by in _WRITERS_HERE
        meta = artifacts.read_meta(run_dir, certain=True) if was_written_here and not is_late else None
        if meta is None:
            self.acknowledge(host, run_id)
            return
        run = RemoteRun(self._project, run_id, meta)
        run.open()
        run.is_abandoned = True
        if run.is_at(host.spool, host.via):
            self._abandoned[run_id] = run
            self._stop(host, run_id, "abandoned")

    def _stop(self, host: Host, run_id: str, why: str) -> None:
        """Send a stop request for an orphaned run, once per host."""
        if run_id not in host.stopped_orphans:
            self._tasks.run("stop", _there(run_id, host), partial(self._send_stop, host, run_id, why))

    async def _send_stop(self, host: Host, run_id: str, why: str) -> None:
        await self._transfers.stop_orphan(host, run_id, why)
        host.stopped_orphans.add(run_id)


def _there(run_id: str, host: Host) -> str:
    """Return the name of a task for a run on a host: each host with that run has its own."""
    return f"{run_id} on {host.spool[:8]}"
