"""The relay: it finds hosts for the runs of a project, mirrors what they write there, and vouches for them.

It may be killed at any moment, and another one goes on: what it knows is in the files of the runs and on the hosts.
"""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Callable
from functools import partial

from ... import paths
from ...project.ownership import ring
from ...run.mark import make_key
from ...system import files, processes
from .._carrier import Carrier, Link
from ..protocol import Have, Pulled
from .connections import Connections
from .courier import Courier
from .desk import Desk
from .errands import AGAIN_S, Errands
from .journal import Journal
from .means import Means
from .places import Places
from .remote import Misfit, Remote
from .roster import Host, Roster
from .runs import Runs
from .strays import Strays

LOOK_S = 0.2
"""Seconds between two looks at what there is to do."""
SOON_S = 0.02
"""After which a slot that has become free is given away; what else becomes free meanwhile is, too."""
IDLE_S = 30.0
"""After its last run it waits so long for another."""
NO_ROOM_S = 5.0
"""After which a host that had no room for a run is asked again to start it."""
_LEAST_PULL_S = 0.02


def relay_id(project: paths.Project) -> str:
    """Name the relay of a project to the hosts: the same one for whoever starts it again.

    By the user's key, too: containers of one image may have all else in common, and are not to see each other's runs.
    Raises SubdeckError where the key cannot be used.
    """
    who = f"{os.path.realpath(project.root)}\0{processes.machine_id() or processes.host()}\0{os.geteuid()}\0"
    return paths.hex_digest(who.encode("utf-8", "surrogateescape") + make_key(), 12)


class Relay:
    def __init__(self, project: paths.Project, means: Callable[[], Means], journal: Journal) -> None:
        """`means` is asked again and again; another answer than before, and other carriers are taken."""
        self.project = project
        self.id = relay_id(project)
        self._journal = journal
        self._errands = Errands(journal)
        self._courier = Courier(project, self.id, journal)
        self._runs = Runs(project, journal)
        self._strays = Strays(project, self._courier, self._errands, journal)
        self._roster = Roster(project, journal.note)
        self._desk = Desk(project, self._roster)
        self._places = Places(self._roster)
        self._connections = Connections(self.id, means, self._roster, self._errands, self._have, self._take_in)
        self._admission: asyncio.TimerHandle | None = None
        """Of the next look at the slots that is not waited for."""

    async def run(self, *, idle: float = IDLE_S) -> None:
        """Work until there has been nothing to do for so many seconds, or the project is gone."""
        busy = time.monotonic()
        try:
            while time.monotonic() - busy < idle and self._has_project():
                self.look()
                if self._runs.all or self._strays.are_on(self._roster):
                    busy = time.monotonic()
                await asyncio.sleep(LOOK_S)
        finally:
            await self._let_go()

    def _has_project(self) -> bool:
        """Return whether the project is there, as far as that can be told."""
        try:
            return files.is_there(self.project.runs)
        except OSError:
            return True

    async def _let_go(self) -> None:
        if self._admission:
            self._admission.cancel()
        await asyncio.gather(self._errands.end(), self._connections.end())
        for remote in self._runs.all:
            remote.vouch(False)

    def look(self) -> None:
        """Do all that is due: take up new runs, let go of those that ended, pass on wishes, ask for slots."""
        self._connections.look()
        self._runs.take_up()
        for remote in self._runs.all:
            self._errands.guard(remote, self._tend)
        self._strays.look()
        self._admit()
        for remote in self._runs.all:
            self._errands.guard(remote, self._vouch)
        self._write_hosts()

    def has_work(self) -> bool:
        """Return whether there is a run that nobody has taken up."""
        self._runs.take_up()
        return bool(self._runs.all)

    # --- the runs of the project ---

    def _tend(self, remote: Remote) -> None:
        """See to a run by what its directory says. Raises OSError."""
        if remote.is_ending:
            return
        if not self._runs.look(remote):
            self._drop(remote)
            return
        if remote.is_cancelled or (remote.stop_wanted and remote.permit is None):
            self._errands.run("cancel", remote.id, partial(self._cancel, remote))
            return
        if remote.is_put_off_for_good:
            self._errands.allow("start", remote.id)
        host = self._roster.host_of(remote)
        if host is None or not host.can_be_asked or remote.id not in host.known:
            return
        if remote.stop_wanted and remote.stop_wanted != remote.stop_told:
            self._errands.run("stop", remote.id, partial(self._courier.stop, host, remote))
        if remote.unsent:
            self._errands.run("message", remote.id, partial(self._courier.send, host, remote))

    async def _cancel(self, remote: Remote) -> None:
        """Keep a run from starting anywhere, and end it, unless it has just got a host. Raises OSError."""
        if await asyncio.to_thread(remote.cancel):
            self._drop(remote)
        else:
            self._runs.index(remote)

    def _drop(self, remote: Remote) -> None:
        """Care no more for a run that has a result, or was deleted."""
        self._runs.drop(remote)
        self._desk.forget(remote.id)
        remote.leave()
        self._admit_soon()
        self._errands.guard(remote, self._settle_work)

    def _settle_work(self, remote: Remote) -> None:
        """Let go what was kept for a run until its end; what was deleted may come back as it was. Raises OSError."""
        if files.is_there(remote.run_dir):
            self._errands.run("settle", remote.id, partial(self._courier.settle, remote.id))

    # --- slots ---

    def _admit_soon(self) -> None:
        """Look at the slots before the next look at all else: one has become free."""
        if self._admission is None:
            self._admission = asyncio.get_running_loop().call_later(SOON_S, self._admit)

    def _admit(self) -> None:
        if self._admission:
            self._admission.cancel()
            self._admission = None
        self._desk.admit(self._runs.all, self._connections.means)

    # --- what readers see ---

    def _vouch(self, remote: Remote) -> None:
        """Hold the lock of a run as long as its life is certain, and say where it is. Raises OSError."""
        if remote.is_ending or remote.id not in self._runs:
            return
        if self._errands.is_running("permit", remote.id) or self._errands.is_running("cancel", remote.id):
            return  # it is just being settled where it goes
        self._tell_place(remote)

    def _tell_place(self, remote: Remote) -> None:
        self._places.tell(remote, self._desk.ruling(remote.id), self._connections.means.settings)

    def _write_hosts(self) -> None:
        means = self._connections.means
        try:
            self._roster.write(self.project, means.settings, self._runs.counts, means.all_faults)
        except OSError as error:
            self._journal.note(f"cannot write the state of the hosts: {error}")

    # --- what hosts say ---

    def _have(self, spool: str, via: str) -> dict[str, Have]:
        """Return what is here of the runs that a spool at that address has the permit for."""
        if not spool:
            return {}
        host = self._roster.get(spool)
        runs = {run.id: run.have() for run in self._runs.at(spool, via).values() if not run.is_ending}
        return {**(self._strays.have(host) if host else {}), **runs}

    def _take_in(self, carrier: Carrier, link: Link, pulled: Pulled) -> float:
        """Take in an answer; return after how many seconds at least the host is asked again."""
        ours = len(self._runs.at(pulled.spool, carrier.address(link.key)).keys() & set(pulled.known))
        former = self._roster.get(pulled.spool)
        if former is None or pulled.facts.used < former.facts.used:
            self._admit_soon()
        host = self._roster.hear(carrier, link, pulled, ours)
        is_fine = self._mirror(host, pulled)
        for run in self._runs.at(host.spool, host.via).values():
            self._errands.guard(run, lambda run: self._hear_of(host, run))
        for end in pulled.ends:
            if end.run in host.deleted:
                self._strays.acknowledge(host, end.run)
            elif run := self._run_at(end.run, host):
                self._errands.run("end", end.run, partial(self._end, host, run, end.result))
        self._strays.see_to(host, host.known - self._runs.ids)
        for run_id in pulled.offers:
            self._offered(host, run_id)
        if not is_fine:
            return AGAIN_S
        return _LEAST_PULL_S if pulled.chunks or pulled.bells else 5 * _LEAST_PULL_S

    def _hear_of(self, host: Host, run: Remote) -> None:
        """Note what a host that has just answered says of a run by knowing it or not. Raises OSError."""
        if run.id in host.known:
            run.hear()
            run.note_started()
        elif self._errands.is_running("start", run.id):
            run.hear()  # its files are on their way, or are being laid out there
        elif not run.is_ending:
            if run.not_now:
                run.hear()
            self._start(host, run)

    def _run_at(self, run_id: str, host: Host) -> Remote | None:
        """Return a run that a host may say something of: it alone has the permit."""
        run = self._runs.get(run_id) or self._strays.get(run_id)
        return run if run and run.is_at(host.spool, host.via) and not run.is_ending else None

    def _mirror(self, host: Host, pulled: Pulled) -> bool:
        """Write what a host has sent; return whether all could be."""
        is_fine, written = True, dict[str, Remote]()
        for chunk in pulled.chunks:
            run = self._run_at(chunk.run, host)
            try:
                if run and run.take(chunk):
                    written[run.id] = run
            except (Misfit, OSError) as error:
                is_fine = False
                self._journal.note(f"{chunk.run} on {host.name}: {error}")
        bells = {bell.run: bell.content for bell in pulled.bells}
        for run_id in written.keys() | bells.keys():
            if run := self._run_at(run_id, host):
                self._errands.guard(run, lambda run: run.ring(bells.get(run.id)))
        for run in written.values():
            self._errands.guard(run, Remote.tell_spending)
        return is_fine

    def _start(self, host: Host, run: Remote) -> None:
        """Have a run started where it has the permit for; one that was there once is never started again."""
        before = run.trouble
        if run.was_started:
            run.trouble = f"{host.name} no longer knows the run"
        elif run.permit and not run.permit.via and run.permit.host != host.name:
            run.trouble = f"its spool moved from {run.permit.host} to {host.name}"
        elif host.why_not:
            run.trouble = host.why_not
        else:
            self._errands.run("start", run.id, partial(self._started, host, run))
            return
        if run.trouble != before:
            self._journal.note(f"{run.id}: {run.trouble}")

    async def _started(self, host: Host, run: Remote) -> None:
        self._errands.put_off("start", run.id, AGAIN_S)  # until its wrapper has it, and its host tells of it
        settings = self._connections.means.settings
        end = None if run.is_put_off_for_good else await self._courier.start(host, run, settings)
        if run.is_put_off_for_good:
            end = run.stopped_result("before it was started")
        elif run.not_now:
            self._errands.put_off("start", run.id, NO_ROOM_S)
            self._journal.note(f"{run.id}: {run.not_now}")
        if end:
            await asyncio.to_thread(run.end, end)
            self._drop(run)

    def _offered(self, host: Host, run_id: str) -> None:
        """Give a run that got a slot the permit for that host; it is started there at once."""
        run = self._runs.get(run_id)
        if run is None or run.permit or run.stop_wanted or not self._desk.may_start(run_id):
            return
        if not self._roster.takes_runs(host):
            return
        if not host.suits(run.meta):
            self._journal.note(f"{host.name} offers a slot for {run_id}, which is not for that host")
        else:
            self._errands.run("permit", run_id, partial(self._permit, host, run))

    async def _permit(self, host: Host, run: Remote) -> None:
        """Write the permit, and have the run started by it. Raises OSError."""
        is_permitted = await asyncio.to_thread(run.permit_to, host.spool, host.name, host.via)
        if run.id not in self._runs or run.is_ending:
            return
        self._runs.index(run)
        if not is_permitted:
            return
        run.hear()
        self._errands.guard(run, self._tell_place)
        self._errands.guard(run, lambda run: self._start(host, run))

    async def _end(self, host: Host, run: Remote, content: bytes) -> None:
        """Publish the end of a run, and let its host know that all of it is here. Raises Misfit, OSError."""
        run.is_ending = True
        try:
            await self._courier.end(host, run, content)
        except Misfit as misfit:
            run.trouble = f"{host.name}: {misfit}"
            raise
        finally:
            run.is_ending = False
        if run.is_given_up:
            self._strays.drop(run)
            ring(self.project)
        if run.id in self._runs:
            self._drop(run)
        self._runs.close(run.id)
        self._strays.acknowledge(host, run.id)
