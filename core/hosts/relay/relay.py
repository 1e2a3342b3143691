"""The relay: places a project's runs on hosts, mirrors their files, and holds their locks while they live.

It may be killed at any moment, and another one continues: all its state is in the runs' files and on the hosts.
"""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Callable
from functools import partial

from ... import paths
from ...config.host_settings import HostsSettings
from ...project.ownership import ring
from ...run.placement import Place, PlaceState
from ...run.signature import make_key
from ...system import files, processes
from ...text.plain import one_line
from .._carrier import Carrier, Link
from ..protocol import Have, Pulled
from .connections import CarrierSet, Connections
from .journal import Journal
from .orphans import Orphans
from .runs import InvalidContent, OpenRuns, RemoteRun
from .scheduler import Scheduler
from .slots import Host, Hosts
from .transfers import AGAIN_S, BackgroundTasks, Transfers

TICK_S = 0.2
"""Seconds between ticks."""
SOON_S = 0.02
"""Delay before a freed slot is assigned, so that slots freed soon after are assigned with it."""
IDLE_S = 30.0
"""Seconds without runs after which the relay exits."""
NO_ROOM_S = 5.0
"""Seconds until a host without room for a run is asked again."""
_LEAST_PULL_S = 0.02


def relay_id(project: paths.Project) -> str:
    """Return the name of a project's relay on the hosts, the same for each of its processes.

    It depends on the user's key because containers of one image may share everything else, and must not see each
    other's runs. Raises SubdeckError if the key cannot be used.
    """
    who = f"{os.path.realpath(project.root)}\0{processes.machine_id() or processes.host()}\0{os.geteuid()}\0"
    return paths.hex_digest(who.encode("utf-8", "surrogateescape") + make_key(), 12)


class Relay:
    def __init__(self, project: paths.Project, load_carriers: Callable[[], CarrierSet], journal: Journal) -> None:
        """`load_carriers` is called repeatedly; its carriers replace those of the last call."""
        self.project = project
        self.id = relay_id(project)
        self._journal = journal
        self._tasks = BackgroundTasks(journal)
        self._transfers = Transfers(project, self.id)
        self._runs = OpenRuns(project, journal)
        self._orphans = Orphans(project, self._transfers, self._tasks, journal)
        self._hosts = Hosts(project, journal.note)
        self._scheduler = Scheduler(project, self._hosts)
        self._connections = Connections(self.id, load_carriers, self._hosts, self._tasks, self._have, self._take_answer)
        self._assignment: asyncio.TimerHandle | None = None
        """The assignment of slots scheduled before the next tick."""
        self._began = time.monotonic()

    async def run(self, *, idle: float = IDLE_S) -> None:
        """Work until there has been no run for `idle` seconds, or the project was removed."""
        busy = time.monotonic()
        try:
            while self._has_project():
                self.tick()
                if self._runs.all or self._orphans.remain_on(self._hosts):
                    busy = time.monotonic()
                elif time.monotonic() - busy >= idle:  # it may have been stopped since the last tick
                    break
                await asyncio.sleep(TICK_S)
        finally:
            await self._shut_down()

    def _has_project(self) -> bool:
        """Return whether the project exists; True if that cannot be checked."""
        try:
            return files.is_there(self.project.runs)
        except OSError:
            return True

    async def _shut_down(self) -> None:
        if self._assignment:
            self._assignment.cancel()
        await asyncio.gather(self._tasks.end(), self._connections.end())
        for run in self._runs.all:
            run.hold_lock(False)

    def tick(self) -> None:
        """Do everything due: find new runs, drop finished ones, send stop requests and messages, assign slots."""
        self._connections.keep_up()
        self._runs.find_new()
        for run in self._runs.all:
            self._tasks.guard(run, self._advance)
        self._orphans.forget_deleted()
        self._assign_slots()
        for run in self._runs.all:
            self._tasks.guard(run, self._report)
        self._write_hosts()

    def has_work(self) -> bool:
        """Return whether the project has an open run."""
        self._runs.find_new()
        return bool(self._runs.all)

    # --- the runs of the project ---

    def _advance(self, run: RemoteRun) -> None:
        """Act on the files in the directory of a run. Raises OSError."""
        if run.is_ending:
            return
        if not self._runs.refresh(run):
            self._drop(run)
            return
        if run.is_cancelled or (run.stop_request and run.permit is None):
            self._tasks.run("cancel", run.id, partial(self._cancel, run))
            return
        if run.is_put_off_for_good:
            self._tasks.allow("start", run.id)
        host = self._hosts.host_of(run)
        if host is None or not host.can_be_asked or run.id not in host.known:
            return
        if run.stop_request and run.stop_request != run.stop_sent:
            self._tasks.run("stop", run.id, partial(self._transfers.send_stop, host, run))
        if run.unsent:
            self._tasks.run("message", run.id, partial(self._transfers.send_messages, host, run))

    async def _cancel(self, run: RemoteRun) -> None:
        """Rule out every start of a run and finish it, unless it has just been permitted. Raises OSError."""
        if await asyncio.to_thread(run.cancel):
            self._drop(run)
        else:
            self._runs.index(run)

    def _drop(self, run: RemoteRun) -> None:
        """Drop a run that has a result or was deleted."""
        self._runs.drop(run)
        self._scheduler.forget(run.id)
        run.clean_up()
        self._assign_slots_soon()
        self._tasks.guard(run, self._release_code)

    def _release_code(self, run: RemoteRun) -> None:
        """Release a finished run's files; keep a deleted run's, because it may be restored. Raises OSError."""
        if files.is_there(run.run_dir):
            self._tasks.run("settle", run.id, partial(self._transfers.release_code, run.id))

    # --- slots ---

    def _assign_slots_soon(self) -> None:
        """Assign slots before the next tick, because one has become free."""
        if self._assignment is None:
            self._assignment = asyncio.get_running_loop().call_later(SOON_S, self._assign_slots)

    def _assign_slots(self) -> None:
        if self._assignment:
            self._assignment.cancel()
            self._assignment = None
        self._scheduler.assign_slots(self._runs.all, self._connections.carrier_set)

    # --- state for readers ---

    def _report(self, run: RemoteRun) -> None:
        """Report a run's place, unless it is just being decided. Raises OSError."""
        if run.is_ending or run.id not in self._runs:
            return
        if self._tasks.is_running("permit", run.id) or self._tasks.is_running("cancel", run.id):
            return
        self._report_place(run)

    def _report_place(self, run: RemoteRun) -> None:
        """Hold a run's lock while it certainly lives, and write its place for readers. Raises OSError."""
        if run.permit is None:
            run.hold_lock(True)
            decision = self._scheduler.decision(run.id)
            place = Place(PlaceState.WAITS, why=decision.why, passed_over=decision.passed_over, since=paths.now_iso())
        else:
            place = self._place_of(run, self._connections.carrier_set.settings)
            run.hold_lock(place is not None and place.state is PlaceState.PLACED)
        if place is not None and run.show(place):
            run.ring()

    def _place_of(self, run: RemoteRun, settings: HostsSettings) -> Place | None:
        """Return the place of a run with a permit; None while it is too early to expect a report on it."""
        now = time.monotonic()
        host = self._hosts.host_of(run)
        name = host.name if host else run.permit.host if run.permit else ""
        address = host.reached_by(settings) if host else settings.attach.get(name, "")
        if run.last_seen is not None and now - run.last_seen < settings.unreachable_after:
            return Place(PlaceState.PLACED, name, paths.now_iso(), run.problem, paths.now_iso(), address=address)
        if run.last_seen is None and now - self._began < settings.unreachable_after:
            return None
        heard_at = run.last_seen_at or (run.place.heard_at if run.place else "")
        why = run.problem if run.problem != run.why_put_off else ""  # it may have room again
        if host is None and run.permit and self._hosts.get(run.spool):
            why = f"its host was {one_line(run.permit.via, 80)}, where another one is now"
        return Place(PlaceState.OUT_OF_REACH, name, paths.now_iso(), why, heard_at, address=address)

    def _write_hosts(self) -> None:
        carrier_set = self._connections.carrier_set
        try:
            self._hosts.write(self.project, carrier_set.settings, self._runs.counts, carrier_set.all_faults)
        except OSError as error:
            self._journal.note(f"cannot write the state of the hosts: {error}")

    # --- the answers of hosts ---

    def _have(self, spool: str, via: str) -> dict[str, Have]:
        """Return what is mirrored of the runs with a permit for a spool at that address."""
        if not spool:
            return {}
        host = self._hosts.get(spool)
        runs = {run.id: run.have() for run in self._runs.at(spool, via).values() if not run.is_ending}
        return {**(self._orphans.have(host) if host else {}), **runs}

    def _take_answer(self, carrier: Carrier, link: Link, pulled: Pulled) -> float:
        """Handle an answer; return the seconds until the host may be asked again."""
        open_runs = len(self._runs.at(pulled.spool, carrier.address(link.key)).keys() & set(pulled.known))
        former = self._hosts.get(pulled.spool)
        if former is None or pulled.facts.used < former.facts.used:
            self._assign_slots_soon()
        host = self._hosts.update(carrier, link, pulled, open_runs)
        is_mirrored = self._mirror(host, pulled)
        for run in self._runs.at(host.spool, host.via).values():
            self._tasks.guard(run, lambda run: self._note_report(host, run))
        for end in pulled.ends:
            if end.run in host.deleted:
                self._orphans.acknowledge(host, end.run)
            elif run := self._run_at(end.run, host):
                self._tasks.run("end", end.run, partial(self._end, host, run, end.result))
        self._orphans.handle(host, host.known - self._runs.ids)
        for run_id in pulled.offers:
            self._take_offer(host, run_id)
        if not is_mirrored:
            return AGAIN_S
        return _LEAST_PULL_S if pulled.chunks or pulled.bells else 5 * _LEAST_PULL_S

    def _note_report(self, host: Host, run: RemoteRun) -> None:
        """Note whether a host's answer lists a run; if it does not, start the run. Raises OSError."""
        if run.id in host.known:
            run.note_contact()
            run.note_started()
        elif self._tasks.is_running("start", run.id):
            run.note_contact()  # its files are being sent or prepared there
        elif not run.is_ending:
            if run.why_put_off:
                run.note_contact()
            self._start(host, run)

    def _run_at(self, run_id: str, host: Host) -> RemoteRun | None:
        """Return a run if this host has its permit, so that it may report on it."""
        run = self._runs.get(run_id) or self._orphans.get(run_id)
        return run if run and run.is_at(host.spool, host.via) and not run.is_ending else None

    def _mirror(self, host: Host, pulled: Pulled) -> bool:
        """Write the file chunks that a host has sent; return whether all were written."""
        is_mirrored, written = True, dict[str, RemoteRun]()
        for chunk in pulled.chunks:
            run = self._run_at(chunk.run, host)
            try:
                if run and run.take(chunk):
                    written[run.id] = run
            except (InvalidContent, OSError) as error:
                is_mirrored = False
                self._journal.note(f"{chunk.run} on {host.name}: {error}")
        bells = {bell.run: bell.content for bell in pulled.bells}
        for run_id in written.keys() | bells.keys():
            if run := self._run_at(run_id, host):
                self._tasks.guard(run, lambda run: run.ring(bells.get(run.id)))
        for run in written.values():
            self._tasks.guard(run, RemoteRun.report_costs)
        return is_mirrored

    def _start(self, host: Host, run: RemoteRun) -> None:
        """Start a run on its permitted host; never start one a second time."""
        before = run.problem
        if run.was_started:
            run.problem = f"{host.name} no longer knows the run"
        elif run.permit and not run.permit.via and run.permit.host != host.name:
            run.problem = f"its spool moved from {run.permit.host} to {host.name}"
        elif host.why_not:
            run.problem = host.why_not
        else:
            self._tasks.run("start", run.id, partial(self._send_start, host, run))
            return
        if run.problem != before:
            self._journal.note(f"{run.id}: {run.problem}")

    async def _send_start(self, host: Host, run: RemoteRun) -> None:
        self._tasks.put_off("start", run.id, AGAIN_S)  # until the wrapper holds it and the host reports it
        settings = self._connections.carrier_set.settings
        result = None if run.is_put_off_for_good else await self._transfers.start_run(host, run, settings)
        if run.is_put_off_for_good:
            result = run.stopped_result("before it was started")
        elif run.why_put_off:
            self._tasks.put_off("start", run.id, NO_ROOM_S)
            self._journal.note(f"{run.id}: {run.why_put_off}")
        if result:
            await asyncio.to_thread(run.end, result)
            self._drop(run)

    def _take_offer(self, host: Host, run_id: str) -> None:
        """Use the slot that a host offers a run, if it was assigned: permit the run to start there."""
        run = self._runs.get(run_id)
        if run is None or run.permit or run.stop_request or not self._scheduler.may_start(run_id):
            return
        if not self._hosts.takes_runs(host):
            return
        if not host.suits(run.meta):
            self._journal.note(f"{host.name} offers a slot for {run_id}, which is not for that host")
        else:
            self._tasks.run("permit", run_id, partial(self._permit, host, run))

    async def _permit(self, host: Host, run: RemoteRun) -> None:
        """Write the permit and start the run. Raises OSError."""
        is_permitted = await asyncio.to_thread(run.permit_to, host.spool, host.name, host.via)
        if run.id not in self._runs or run.is_ending:
            return
        self._runs.index(run)
        if not is_permitted:
            return
        run.note_contact()
        self._tasks.guard(run, self._report_place)
        self._tasks.guard(run, lambda run: self._start(host, run))

    async def _end(self, host: Host, run: RemoteRun, content: bytes) -> None:
        """Publish a run's result, and acknowledge it to the host. Raises InvalidContent, OSError."""
        run.is_ending = True
        try:
            await self._transfers.finish_run(host, run, content)
        except InvalidContent as error:
            run.problem = f"{host.name}: {error}"
            raise
        finally:
            run.is_ending = False
        if run.is_abandoned:
            self._orphans.drop(run)
            ring(self.project)
        if run.id in self._runs:
            self._drop(run)
        self._runs.close(run.id)
        self._orphans.acknowledge(host, run.id)
