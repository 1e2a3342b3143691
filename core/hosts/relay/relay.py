"""The relay: it finds hosts for the runs of a project, mirrors what they write there, and vouches for them.

It may be killed at any moment, and another one goes on: what it knows is in the files of the runs and on the hosts.
"""

from __future__ import annotations

import asyncio
import os
import time
from collections import defaultdict
from collections.abc import Callable, Collection, Coroutine
from functools import partial
from typing import Any

from ... import paths
from ...config.host_settings import HostsSettings
from ...errors import SubdeckError
from ...project.ownership import ring
from ...run import artifacts
from ...run.mark import Verifier, make_key
from ...run.model import RunnerKind
from ...system import files, processes
from ...system.log import log_fault
from ..carrier import Carrier, Link, OutOfReach
from ..protocol import WAIT_S, BadMessage, Have, Pull, Pulled, Verb, decode_answer, encode, other_version
from .courier import Courier
from .desk import Desk
from .journal import Journal
from .means import Means
from .places import Places
from .remote import ALL_OF_IT, ENDED_BY, Misfit, Remote
from .roster import Host, Roster

LOOK_S = 0.2
"""Seconds between two looks at what there is to do."""
SOON_S = 0.02
"""After which a slot that has become free is given away; what else becomes free meanwhile is, too."""
IDLE_S = 30.0
"""After its last run it waits so long for another."""
AGAIN_S = 1.0
"""After what failed it is tried again."""
NO_ROOM_S = 5.0
"""After which a host that had no room for a run is asked again to start it."""
SWEEP_S = 60.0
"""Between two looks at all runs of the project: one may have lost its record in `active/`, or have been changed without
a trace in the time of its directory.
"""
TICK_S = 0.1
"""The most by which the time of a change is coarser than the changes: one that comes later is another time."""
SETTINGS_S = 2.0
_OWN_ENDS = (artifacts.GIVEN_UP_BY, ENDED_BY)
"""Who writes ends that the host of a run may know better."""
CANCEL_S = 0.5
"""After which what was cancelled and goes on is cancelled again."""
_LEAST_PULL_S = 0.02
_MOST_PATIENCE_S = 10.0
"""How much longer than its wait a pull may take, at least."""


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
        self._find_means = means
        self._means = Means(HostsSettings(), ())
        self._journal = journal
        self._courier = Courier(project, self.id, journal)
        self._remotes: dict[str, Remote] = {}
        """Open runs."""
        self._at: defaultdict[str, dict[str, Remote]] = defaultdict(dict)
        """Of them those with a permit, by the spool that it is for."""
        self._given_up: dict[str, Remote] = {}
        self._deleted: set[str] = set()
        """Runs that are on a host, and whose directory is not here any more."""
        self._told: set[str] = set()
        """Those of both whose host has heard that they are to end."""
        self._not_ours: set[str] = set()
        """Names in `active/` that no relay cares for."""
        self._seen: dict[str, tuple[int, float | None]] = {}
        """When the directory of a run was last changed, as it was looked at, and when that was seen first; None once it
        was looked at so long after that nothing more can have come at that time.
        """
        self._roster = Roster(project)
        self._desk = Desk(project, self._roster)
        self._places = Places(self._roster)
        self._tasks: dict[tuple[str, str], asyncio.Task[None]] = {}
        self._again: dict[tuple[str, str], float] = {}
        """When what failed may be tried again."""
        self._carrying: list[asyncio.Task[None]] = []
        self._admission: asyncio.TimerHandle | None = None
        """Of the next look at the slots that is not waited for."""
        self._swept = self._read_settings = 0.0

    async def run(self, *, idle: float = IDLE_S) -> None:
        """Work until there has been nothing to do for so many seconds, or the project is gone."""
        busy = time.monotonic()
        try:
            self._renew_means()
            while time.monotonic() - busy < idle and self._has_project():
                self.look()
                if self._remotes or self._has_remains():
                    busy = time.monotonic()
                await asyncio.sleep(LOOK_S)
        finally:
            await self._let_go()

    def _has_remains(self) -> bool:
        """Return whether a host that can be asked still has something of a run that was given up or deleted."""
        remains = self._given_up.keys() | self._deleted
        return any(host.can_be_asked and not host.known.isdisjoint(remains) for host in self._roster)

    def _has_project(self) -> bool:
        """Return whether the project is there, as far as that can be told."""
        try:
            return files.is_there(self.project.runs)
        except OSError:
            return True

    async def _let_go(self) -> None:
        if self._admission:
            self._admission.cancel()
        await _ended([*self._tasks.values(), *self._carrying])
        for remote in self._remotes.values():
            remote.vouch(False)

    def look(self) -> None:
        """Do all that is due: take up new runs, let go of those that ended, pass on wishes, ask for slots."""
        self._take_up()
        for remote in list(self._remotes.values()):
            self._guarded(remote, self._tend)
        for remote in list(self._given_up.values()):
            self._guarded(remote, self._forget_deleted)
        self._follow_links()
        self._admit()
        for remote in list(self._remotes.values()):
            self._guarded(remote, self._vouch)
        self._write_hosts()
        if time.monotonic() - self._read_settings > SETTINGS_S:
            self._read_settings = time.monotonic()
            self._renew_means()

    def has_work(self) -> bool:
        """Return whether there is a run that nobody has taken up."""
        self._take_up()
        return bool(self._remotes)

    def _guarded(self, remote: Remote, act: Callable[[Remote], None]) -> None:
        try:
            act(remote)
        except Exception as error:  # whatever is wrong with one run, the others are seen to
            self._note_fault(remote.id, error)

    def _note_fault(self, what: str, error: Exception) -> None:
        """Write down what went wrong; what nobody expects with its traceback, where somebody wants a log."""
        if not isinstance(error, (OutOfReach, BadMessage, Misfit, SubdeckError, OSError)):
            log_fault(what, error)
        self._journal.note(f"{what}: {error or type(error).__name__}")

    # --- the runs of the project ---

    def _take_up(self) -> None:
        """Find runs that were left for a relay."""
        names = artifacts.run_ids(self.project.active)
        if time.monotonic() - self._swept > SWEEP_S:
            self._swept = time.monotonic()
            self._seen.clear()
            names = [*names, *artifacts.run_ids(self.project.runs)]
        new = [name for name in names if name not in self._remotes and name not in self._not_ours]
        verifier = Verifier()
        for name in sorted(new):
            try:
                if remote := self._taken_up(name, verifier):
                    self._remotes[name] = remote
                    self._index(remote)
            except OSError as error:
                self._journal.note(f"{name} cannot be read: {error}")

    def _taken_up(self, name: str, verifier: Verifier) -> Remote | None:
        """Return a run that is ours to care for; None for any other. Raises OSError."""
        run_dir = self.project.run_dir(name)
        if os.path.exists(f"{run_dir}/{paths.RESULT}"):
            self._not_ours.add(name)
            return None
        meta, is_own = artifacts.read_owned_meta(run_dir, verifier, certain=True)
        if meta is None or not is_own or not files.exists(f"{run_dir}/{paths.RUNNER}"):
            return None  # its launcher may be still at it
        if meta.runner != RunnerKind.HOSTS or meta.is_newer:
            self._not_ours.add(name)
            return None
        remote = Remote(self.project, name, meta)
        remote.open()
        return remote

    def _tend(self, remote: Remote) -> None:
        """See to a run by what its directory says. Raises OSError."""
        if remote.is_ending:
            return
        try:
            changed = os.stat(remote.run_dir).st_mtime_ns
        except FileNotFoundError:
            self._drop(remote)
            return
        now = time.monotonic()
        seen, since = self._seen.get(remote.id, (0, None))
        if changed != seen or since is not None:
            if os.path.exists(f"{remote.run_dir}/{paths.RESULT}"):
                self._drop(remote)
                return
            remote.look()
            self._index(remote)
            since = now if since is None or changed != seen else since
            self._seen[remote.id] = (changed, None if now - since > TICK_S else since)
        if remote.is_cancelled or (remote.stop_wanted and remote.permit is None):
            self._do("cancel", remote.id, partial(self._cancel, remote))
            return
        if remote.is_put_off_for_good:
            self._again.pop(("start", remote.id), None)
        host = self._roster.get(remote.spool)
        if host is None or not host.can_be_asked or remote.id not in host.known:
            return
        if remote.stop_wanted and remote.stop_wanted != remote.stop_told:
            self._do("stop", remote.id, partial(self._courier.stop, host, remote))
        if remote.unsent:
            self._do("message", remote.id, partial(self._courier.send, host, remote))

    async def _cancel(self, remote: Remote) -> None:
        """Keep a run from starting anywhere, and end it, unless it has just got a host. Raises OSError."""
        if await asyncio.to_thread(remote.cancel):
            self._drop(remote)
        else:
            self._index(remote)

    def _forget_deleted(self, remote: Remote) -> None:
        """Wait no longer for the end of a run that was given up, and deleted since. Raises OSError."""
        if not files.is_there(remote.run_dir):
            del self._given_up[remote.id]

    def _index(self, remote: Remote) -> None:
        if remote.spool:
            self._at[remote.spool][remote.id] = remote

    def _drop(self, remote: Remote) -> None:
        """Care no more for a run that has a result, or was deleted."""
        self._remotes.pop(remote.id, None)
        self._at[remote.spool].pop(remote.id, None)
        self._seen.pop(remote.id, None)
        self._desk.forget(remote.id)
        remote.leave()
        self._admit_soon()
        self._guarded(remote, self._settle_work)

    def _settle_work(self, remote: Remote) -> None:
        """Let go what was kept for a run until its end; what was deleted may come back as it was. Raises OSError."""
        if files.is_there(remote.run_dir):
            self._do("settle", remote.id, partial(self._courier.settle, remote.id))

    # --- slots ---

    def _admit_soon(self) -> None:
        """Look at the slots before the next look at all else: one has become free."""
        if self._admission is None:
            self._admission = asyncio.get_running_loop().call_later(SOON_S, self._admit)

    def _admit(self) -> None:
        if self._admission:
            self._admission.cancel()
            self._admission = None
        self._desk.admit(self._remotes.values(), self._means)

    # --- what readers see ---

    def _vouch(self, remote: Remote) -> None:
        """Hold the lock of a run as long as its life is certain, and say where it is. Raises OSError."""
        if remote.is_ending or remote.id not in self._remotes:
            return
        if ("permit", remote.id) in self._tasks or ("cancel", remote.id) in self._tasks:
            return  # it is just being settled where it goes
        self._tell_place(remote)

    def _tell_place(self, remote: Remote) -> None:
        self._places.tell(remote, self._desk.ruling(remote.id), self._means.settings)

    def _write_hosts(self) -> None:
        runs = {spool: len(there) for spool, there in self._at.items()}
        try:
            self._roster.write(self.project, self._means.settings, runs, self._means.all_faults)
        except OSError as error:
            self._journal.note(f"what is known of the hosts cannot be written: {error}")

    # --- carriers and links ---

    async def _carry(self) -> None:
        """Have the carriers work that there are now, and no others."""
        await _ended(self._carrying)
        self._roster.forget_faults()
        self._carrying = [asyncio.create_task(carrier.run()) for carrier in self._means.carriers]

    def _renew_means(self) -> None:
        means = self._find_means()
        if means is self._means:
            return
        is_same = means.carriers == self._means.carriers
        self._means = means
        if not is_same:
            self._do("carry", "carriers", self._carry)

    def _follow_links(self) -> None:
        """See that each host that can be asked is."""
        for carrier in self._means.carriers:
            for link in carrier.links.values():
                self._do("follow", f"{carrier.name} {link.key}", partial(self._follow, carrier, link))

    async def _follow(self, carrier: Carrier, link: Link) -> None:
        """Take in what a host has to say, as long as it can be asked. Raises OutOfReach, BadMessage."""
        try:
            await self._follow_on(carrier, link)
        except BadMessage as error:
            self._roster.misunderstand(carrier, link, str(error))
            raise

    async def _follow_on(self, carrier: Carrier, link: Link) -> None:
        spool = ""
        while link.key in carrier.links and carrier in self._means.carriers:
            began, pulled = time.monotonic(), await self._pull(carrier, link, spool)
            if why := other_version(pulled.protocol, pulled.facts.subdeck):
                raise BadMessage(why)
            spool = pulled.spool
            pause = self._take_in(carrier, link, pulled) - (time.monotonic() - began)
            await asyncio.sleep(max(0.0, pause))

    async def _pull(self, carrier: Carrier, link: Link, spool: str) -> Pulled:
        reach = self._means.settings.reach
        wait = min(WAIT_S, reach / 3) if spool else 0.0
        message = encode(Pull(self.id, self._have(spool), wait))
        answer = await carrier.call(link.key, Verb.PULL, message, wait + max(reach, _MOST_PATIENCE_S))
        return decode_answer(Verb.PULL, answer)

    def _have(self, spool: str) -> dict[str, Have]:
        """Return what is here of the runs that a spool has the permit for."""
        if not spool:
            return {}
        runs = (*self._at[spool].values(), *self._given_up.values())
        host = self._roster.get(spool)
        deleted = dict.fromkeys(self._deleted & (host.known if host else frozenset()), ALL_OF_IT)
        return deleted | {run.id: run.have() for run in runs if run.spool == spool and not run.is_ending}

    def _take_in(self, carrier: Carrier, link: Link, pulled: Pulled) -> float:
        """Take in an answer; return after how many seconds at least the host is asked again."""
        ours = len(self._at[pulled.spool].keys() & set(pulled.known))
        former = self._roster.get(pulled.spool)
        if former is None or pulled.facts.used < former.facts.used:
            self._admit_soon()
        host = self._roster.hear(carrier, link, pulled, ours)
        is_fine = self._mirror(host, pulled)
        known = host.known
        for run in list(self._at[host.spool].values()):
            self._guarded(run, lambda run: self._hear_of(host, run))
        for end in pulled.ends:
            if end.run in self._deleted:
                self._do("ack", end.run, partial(self._courier.ack, host, end.run))
            elif run := self._run_at(end.run, host):
                self._do("end", end.run, partial(self._end, host, run, end.result))
        for run_id in known - self._remotes.keys():
            if run_id in self._given_up:
                self._end_there(host, run_id, "given up")
            else:
                self._settle(host, run_id)
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
        elif ("start", run.id) in self._tasks:
            run.hear()  # its files are on their way, or are being laid out there
        elif not run.is_ending:
            if run.not_now:
                run.hear()
            self._start(host, run)

    def _run_at(self, run_id: str, host: Host) -> Remote | None:
        """Return a run that a host may say something of: it alone has the permit."""
        run = self._remotes.get(run_id) or self._given_up.get(run_id)
        return run if run and run.spool == host.spool and not run.is_ending else None

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
                self._guarded(run, lambda run: run.ring(bells.get(run.id)))
        for run in written.values():
            self._guarded(run, Remote.tell_spending)
        return is_fine

    def _start(self, host: Host, run: Remote) -> None:
        """Have a run started where it has the permit for; one that was there once is never started again."""
        before = run.trouble
        if run.was_started:
            run.trouble = f"{host.name} does not know it any more"
        elif run.permit and run.permit.host != host.name:
            run.trouble = f"its spool was on {run.permit.host}, and is on {host.name}"
        elif host.why_not:
            run.trouble = host.why_not
        else:
            self._do("start", run.id, partial(self._started, host, run))
            return
        if run.trouble != before:
            self._journal.note(f"{run.id}: {run.trouble}")

    async def _started(self, host: Host, run: Remote) -> None:
        self._again["start", run.id] = time.monotonic() + AGAIN_S  # until its wrapper has it, and its host tells of it
        end = None if run.is_put_off_for_good else await self._courier.start(host, run, self._means.settings)
        if run.is_put_off_for_good:
            end = run.stopped_result("before it was started")
        elif run.not_now:
            self._again["start", run.id] = time.monotonic() + NO_ROOM_S
            self._journal.note(f"{run.id}: {run.not_now}")
        if end:
            await asyncio.to_thread(run.end, end)
            self._drop(run)

    def _offered(self, host: Host, run_id: str) -> None:
        """Give a run that got a slot the permit for that host; it is started there at once."""
        run = self._remotes.get(run_id)
        if run is None or run.permit or run.stop_wanted or not self._desk.ruling(run_id).key:
            return
        if not self._roster.takes_runs(host):
            return
        if not host.suits(run.meta):
            self._journal.note(f"{host.name} offers a slot for {run_id}, which is not for that host")
        else:
            self._do("permit", run_id, partial(self._permit, host, run))

    async def _permit(self, host: Host, run: Remote) -> None:
        """Write the permit, and have the run started by it. Raises OSError."""
        is_permitted = await asyncio.to_thread(run.permit_to, host.spool, host.name)
        if run.id not in self._remotes or run.is_ending:
            return
        self._index(run)
        if not is_permitted:
            return
        run.hear()
        self._guarded(run, self._tell_place)
        self._guarded(run, lambda run: self._start(host, run))

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
            self._given_up.pop(run.id, None)
            ring(self.project)
        if run.id in self._remotes:
            self._drop(run)
        self._not_ours.add(run.id)
        self._do("ack", run.id, partial(self._courier.ack, host, run.id))

    def _settle(self, host: Host, run_id: str) -> None:
        """See to a run that a host has and that is not open here: it was delivered, given up or deleted."""
        run_dir = self.project.run_dir(run_id)
        try:
            if not files.is_there(run_dir):
                if not files.is_there(self.project.runs):
                    return
                self._deleted.add(run_id)
                self._end_there(host, run_id, "deleted")
                return
            self._deleted.discard(run_id)
            self._told.discard(run_id)
            result = artifacts.read_result(run_dir, certain=True)
            if result is None:
                return  # it is not taken up yet
            is_late = files.is_there(os.path.join(run_dir, paths.LATE_RESULT))
            is_own = result.written_by in _OWN_ENDS
            meta = artifacts.read_meta(run_dir, certain=True) if is_own and not is_late else None
            if meta is None:
                self._do("ack", run_id, partial(self._courier.ack, host, run_id))
                return
            run = Remote(self.project, run_id, meta)
            run.open()
            run.is_given_up = True
            if run.spool == host.spool:
                self._given_up[run_id] = run
                self._end_there(host, run_id, "given up")
        except OSError as error:
            self._journal.note(f"{run_id}: {error}")

    def _end_there(self, host: Host, run_id: str, why: str) -> None:
        """Have a host end a run that nobody waits for any more, unless it has heard that."""
        if run_id not in self._told:
            self._do("stop", run_id, partial(self._ended_there, host, run_id, why))

    async def _ended_there(self, host: Host, run_id: str, why: str) -> None:
        await self._courier.end_there(host, run_id, why)
        self._told.add(run_id)

    # --- what takes time ---

    def _do(self, what: str, name: str, work: Callable[[], Coroutine[Any, Any, None]]) -> None:
        """Do it beside all else, unless it is being done, or has failed just now."""
        key = (what, name)
        if key in self._tasks or self._again.get(key, 0.0) > time.monotonic():
            return
        self._again.pop(key, None)
        self._tasks[key] = asyncio.create_task(self._done(key, work))

    async def _done(self, key: tuple[str, str], work: Callable[[], Coroutine[Any, Any, None]]) -> None:
        try:
            await work()
        except Exception as error:
            self._again[key] = time.monotonic() + AGAIN_S
            self._note_fault(" ".join(key), error)
        finally:
            self._tasks.pop(key, None)


async def _ended(tasks: Collection[asyncio.Task[None]]) -> None:
    """End tasks, however often it takes: what they wait in may take one cancellation for its own."""
    waiting = {task for task in tasks if not task.done()}
    while waiting:
        for task in waiting:
            task.cancel()
        _, waiting = await asyncio.wait(waiting, timeout=CANCEL_S)
