"""The agent of a host, independent of the carrier: it starts runs for relays, reports their progress, and stops them.
Runs continue without it, and a new agent manages everything it finds in the spool.
"""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any, TypeVar

from msgspec import Struct

from .. import paths
from ..errors import SubdeckError, in_one_line
from ..project import talk
from ..project.liveness import ask_to_stop, reconcile
from ..run import artifacts
from ..run.inbox import EntryKind, InboxClosed, InboxEntry, pass_on
from ..run.model import StopRequest
from ..run.proven import has_result
from ..run.snapshot import Queued, RunSnapshot
from ..runners.forker import Forker
from ..system import files, processes
from ..system.log import log_fault
from ..text.decoder import UNDECODABLE, decode, why
from ..text.plain import one_line
from ._arrival import Arrived, Destination, Refused, reap_wrappers, take_in
from ._facts import examined, fitting_name, host_facts
from ._full_disk import is_of_full_disk
from ._mirror import Lacking, lacking
from ._spool import Offers, Spool, SpoolRoot, Terms
from .code.host_code import HostCode
from .protocol import (
    MOST_RUNS,
    PROTOCOL,
    Ack,
    Answer,
    BadMessage,
    CodePiece,
    CodeSaid,
    Examine,
    Examined,
    Fetched,
    FetchPiece,
    Hold,
    HostFacts,
    Message,
    Pull,
    Pulled,
    Said,
    Start,
    Stop,
    Verb,
    decode_asked,
    encode,
)

SWEEP_S = 0.02
"""Seconds between checks of the activity files while runs are open; longer if there are many."""
SWEEP_SHARE = 0.1
"""Most of one processor that these checks may use."""
IDLE_SWEEP_S = 0.25
LEASE_S = 1.0
"""Seconds between lease renewals."""
PROOF_S = 2.0
"""Seconds between checks that a process is responsible for each open run."""
PURGE_S = 600.0
MISSING_S = 0.25
"""Longest wait of a pull that asks for a run which is not here, in seconds."""
TAKING_S = 60.0
"""Seconds that a living wrapper has to take its run."""
LOOK_AGAIN_S = 0.02
_LONGEST_WHY = 1000

T = TypeVar("T")


class HostAgent:
    """Lives in one event loop; call `answer` and `run` in it."""

    def __init__(
        self,
        root: str,
        *,
        slots: int,
        labels: Mapping[str, float] | None = None,
        carrier: str = "",
        name: str = "",
        expiry: Callable[[], float] = float,
    ) -> None:
        """Open the spool and manage its runs.

        `name` replaces the machine's name; `expiry` returns when the carrier's certificates expire. Raises SpoolBusy if
        another agent has the spool, SubdeckError if it is unusable.
        """
        self._root = SpoolRoot(root)
        self.slots = slots
        self.labels = dict(labels or {})
        self.carrier = carrier
        self._expiry = expiry
        self.spool_id = self._root.id
        self.name = fitting_name(name or processes.host())
        self._files = HostCode(self._root.path)
        self._forker = Forker()
        self._spools = {relay: Spool(self._root, relay) for relay in self._root.relays()}
        self._offers = Offers()
        self._holders: dict[tuple[str, str], asyncio.Future[None]] = {}
        """By relay and run: resolved when a later ticket holds the slot."""
        self._arriving: dict[tuple[str, str], asyncio.Task[Answer]] = {}
        self._tasks: set[asyncio.Task[Any]] = set()
        self._quick = ThreadPoolExecutor(4, "subdeck-quick")
        self._slow = ThreadPoolExecutor(2, "subdeck-slow")
        """For work that may take seconds: ending what dead wrappers left, removing old files."""
        self._delivering = asyncio.Lock()
        self._proving = False
        self._tidying = False
        self._answers: dict[Verb, Callable[[Any], Awaitable[Struct]]] = {
            Verb.PULL: self._pull,
            Verb.START: self._start,
            Verb.STOP: self._stop,
            Verb.ACK: self._ack,
            Verb.MESSAGE: self._message,
            Verb.HOLD: self._hold,
            Verb.EXAMINE: self._examine,
            Verb.CODE: self._code,
            Verb.FETCH: self._fetch,
        }

    @property
    def has_open_runs(self) -> bool:
        return any(spool.open for spool in self._spools.values()) or bool(self._arriving)

    @property
    def facts(self) -> HostFacts:
        used = sum(len(spool.open) for spool in self._spools.values())
        return host_facts(slots=self.slots, used=used, labels=self.labels, carrier=self.carrier)

    async def answer(self, verb: Verb, message: bytes) -> bytes:
        """Carry out a message. Answer REFUSED with a reason if it is invalid or fails; never raise."""
        try:
            asked = decode_asked(verb, message)
            return encode(await self._answers[verb](asked))
        except (BadMessage, KeyError) as error:
            return encode(Answer(Said.REFUSED, one_line(str(error), _LONGEST_WHY)))
        except Exception as error:
            log_fault(f"answering {verb}", error)
            reason = in_one_line(error) if isinstance(error, SubdeckError) else f"{type(error).__name__}: {error}"
            return encode(Answer(Said.REFUSED, one_line(f"{self.name}: {reason}", _LONGEST_WHY)))

    async def hold(self, relay: str, run_id: str) -> Said:
        """Offer a run and hold a slot for it until it has finished, or a later ticket for it holds one: tickets of a
        killed relay keep running here. A ticket runs this the whole time.
        """
        later = asyncio.get_running_loop().create_future()
        if (earlier := self._holders.get((relay, run_id))) and not earlier.done():
            earlier.set_result(None)
        self._holders[relay, run_id] = later
        holding = asyncio.create_task(self._hold_until_over(relay, run_id))
        try:
            await asyncio.wait((holding, later), return_when=asyncio.FIRST_COMPLETED)
            return holding.result() if holding.done() else Said.REPLACED
        finally:
            holding.cancel()
            await asyncio.wait((holding,))
            if self._holders.get((relay, run_id)) is later:
                del self._holders[relay, run_id]

    async def _hold_until_over(self, relay: str, run_id: str) -> Said:
        spool = self._spool(relay)
        is_here = run_id in spool.known or spool.was_delivered(run_id) or spool.was_removed(run_id)
        if not is_here and not await self._offers.hold(spool, run_id):
            return Said.NO_PERMIT
        await spool.over(run_id)
        return Said.OVER

    async def run(self) -> None:
        """Renew leases, notice news, and finish orphaned runs, until cancelled."""
        renewed = proved = purged = float("-inf")
        while True:
            now = time.monotonic()
            try:
                if now - renewed >= LEASE_S:
                    renewed = now
                    self._renew()
                for spool in self._spools.values():
                    spool.sweep()
                if now - proved >= PROOF_S and not self._proving:
                    proved = now
                    self._spawn(self._prove())
                    self._spawn(self._see_to_files())
                if now - purged >= PURGE_S:
                    purged = now
                    self._spawn(self._purge())
            except OSError as error:  # the disk may be full; the next round retries
                log_fault("managing the spool", error)
            pause = SWEEP_S if self.has_open_runs else IDLE_SWEEP_S
            await asyncio.sleep(max(pause, (time.monotonic() - now) / SWEEP_SHARE))

    def close(self) -> None:
        """Release the spool; runs continue."""
        for task in self._tasks:
            task.cancel()
        self._quick.shutdown(wait=False, cancel_futures=True)
        self._slow.shutdown(wait=False, cancel_futures=True)
        self._forker.close()
        self._root.close()

    # --- the verbs ---

    async def _pull(self, asked: Pull) -> Pulled:
        if asked.protocol != PROTOCOL:
            return Pulled(spool=self.spool_id, host=self.name, facts=self.facts)
        spool = self._spool(asked.relay)
        lease_left = spool.left()
        spool.hear()
        is_here = spool.known.issuperset(asked.have)
        deadline = time.monotonic() + (asked.wait if is_here else min(asked.wait, MISSING_S))
        generation, have = spool.generation, asked.have
        while True:
            missing = await self._in_thread(lacking, spool.project, have, asked.budget)
            seconds_left = deadline - time.monotonic()
            if missing or seconds_left <= 0 or self._offers.has_news(spool):
                break
            await spool.news(generation, min(seconds_left, 1.0))
            # After a timeout check all runs: an agent's output alone does not touch the activity file.
            changed = spool.changed_since(generation) if spool.generation != generation else asked.have.keys()
            generation = spool.generation
            have = {run_id: asked.have[run_id] for run_id in changed if run_id in asked.have}
        return self._pulled(spool, missing, lease_left)

    def _pulled(self, spool: Spool, missing: Lacking, lease_left: float | None) -> Pulled:
        return Pulled(
            spool=self.spool_id,
            host=self.name,
            facts=self.facts,
            known=tuple(sorted(spool.known)[:MOST_RUNS]),
            offers=self._offers.tell(spool)[:MOST_RUNS],
            chunks=missing.chunks,
            bells=missing.bells,
            ends=missing.ends,
            lease_left=lease_left,
        )

    async def _start(self, asked: Start) -> Answer:
        if asked.spool != self.spool_id:
            return Answer(Said.NOT_MINE)
        key = (asked.relay, asked.run)
        if key not in self._arriving:
            self._arriving[key] = self._spawn(self._arrive(asked))
            self._arriving[key].add_done_callback(lambda _: self._arriving.pop(key, None))
        return await asyncio.shield(self._arriving[key])

    async def _arrive(self, asked: Start) -> Answer:
        spool = self._spool(asked.relay)
        spool.hear()
        if asked.run in spool.known or spool.was_delivered(asked.run):
            return Answer(Said.KNOWN)
        if spool.was_removed(asked.run):
            why = "it finished there long ago and was removed, because its result was not fetched"
            return Answer(Said.REFUSED, why)
        try:
            directory = await self._files.prepare(asked.run, asked.code) if asked.code else None
            arrived = await self._in_thread(self._take_in, spool, asked, directory)
        except (Refused, SubdeckError, OSError) as error:
            is_full = is_of_full_disk(error)
            if not is_full and not isinstance(error, Refused):
                raise
            await self._files.forget(asked.run)
            why = str(error) if isinstance(error, Refused) else in_one_line(error)
            return Answer(Said.NOT_NOW if is_full else Said.REFUSED, one_line(why, _LONGEST_WHY))
        finally:
            self._offers.settle(spool, asked.run)
        spool.add(asked.run)
        if arrived:
            self._spawn(self._let_go(spool, asked.run, arrived))
        return Answer(Said.KNOWN)

    def _take_in(self, spool: Spool, asked: Start, directory: str | None) -> Arrived | None:
        spool.make()
        spool.keep_terms(Terms(asked.lease_operator, asked.keep, asked.keep_unused))
        spool.renew()  # before anything starts that would find an expired lease
        destination = Destination(self.name, spool.project, self.slots, self._root.slots, spool.lease, self._forker)
        return take_in(asked, destination, directory)

    async def _let_go(self, spool: Spool, run_id: str, arrived: Arrived) -> None:
        """Hold a run until its wrapper does; if the wrapper exits first, finish the run."""
        deadline = time.monotonic() + TAKING_S
        try:
            while not arrived.is_taken and time.monotonic() < deadline:
                await asyncio.sleep(LOOK_AGAIN_S)
        finally:
            os.close(arrived.lock)
        if arrived.has_gone():
            await self._slowly(self._look_after, spool, (run_id,))

    async def _stop(self, asked: Stop) -> Answer:
        spool = self._spool(asked.relay)
        if asked.run not in spool.known:
            return Answer(Said.UNKNOWN)
        try:
            request = decode(asked.request, StopRequest)
        except UNDECODABLE as error:
            return Answer(Said.REFUSED, f"cannot read the stop request: {why(error)}")
        await self._in_thread(_ask_to_stop, spool.project, asked.run, request)
        return Answer(Said.TOLD)

    async def _ack(self, asked: Ack) -> Answer:
        spool = self._spool(asked.relay)
        async with self._delivering:  # a relay may acknowledge a run twice at once
            if asked.run not in spool.known:
                return Answer(Said.UNKNOWN)
            if not spool.has_ended(asked.run):
                return Answer(Said.REFUSED, "it has not finished")
            await self._in_thread(spool.deliver, asked.run)
            spool.forget(asked.run)
        await self._files.forget(asked.run)
        return Answer(Said.TOLD)

    async def _message(self, asked: Message) -> Answer:
        spool = self._spool(asked.relay)
        if asked.run not in spool.known:
            return Answer(Said.UNKNOWN)
        try:
            entry = decode(asked.entry, InboxEntry)
        except UNDECODABLE as error:
            return Answer(Said.REFUSED, f"cannot read the message: {why(error)}")
        if entry.kind == EntryKind.TAKE_OVER:
            return Answer(Said.REFUSED, "a run on another machine cannot be opened in the agent")
        try:
            await self._in_thread(_pass_on, spool.project, asked.run, entry)
        except InboxClosed:
            return Answer(Said.REFUSED, "it accepts no more messages")
        return Answer(Said.TOLD)

    async def _hold(self, asked: Hold) -> Answer:
        return Answer(await self.hold(asked.relay, asked.run))

    async def _examine(self, asked: Examine) -> Examined:
        there = {"host": self.name, "spool": self._root.path, "facts": self.facts, "expiry": self._expiry}
        return await self._slowly(partial(examined, asked, **there))

    async def _code(self, asked: CodePiece) -> CodeSaid:
        self._spool(asked.relay).hear()
        return await self._files.answer_code(asked)

    async def _fetch(self, asked: FetchPiece) -> Fetched:
        spool = self._spool(asked.relay)
        if not spool.has_ended(asked.run):
            is_here = spool.has(asked.run)
            return Fetched(why="it has not finished" if is_here else f"{self.name} no longer knows the run")
        return await self._files.answer_fetch(asked.run, asked.offset)

    # --- periodic work ---

    def _renew(self) -> None:
        for spool in self._spools.values():
            if spool.open:
                spool.renew()

    async def _prove(self) -> None:
        """Finish the runs that no process is responsible for."""
        self._proving = True
        try:
            await self._slowly(reap_wrappers)
            for spool in tuple(self._spools.values()):
                if spool.open:
                    await self._slowly(self._look_after, spool, tuple(spool.open))
        finally:
            self._proving = False

    def _look_after(self, spool: Spool, run_ids: tuple[str, ...]) -> None:
        for run_id in run_ids:
            run_dir = spool.project.run_dir(run_id)
            reconcile(spool.project, run_id, by="host", is_sole=True)
            if has_result(run_dir):
                files.remove(f"{run_dir}/{paths.ENVIRONMENT}")

    async def _see_to_files(self) -> None:
        """Store the results of finished runs, which frees their trees, and forget the files of removed runs."""
        if self._tidying:
            return
        self._tidying = True
        try:
            arriving = {run_id for _, run_id in self._arriving}
            for run_id in set(self._files.runs) - arriving:
                spool = next((spool for spool in self._spools.values() if spool.has(run_id)), None)
                if spool is None:
                    await self._files.forget(run_id)
                elif run_id in self._files.unfinished and spool.has_ended(run_id):
                    await self._files.finish(run_id)
        finally:
            self._tidying = False

    async def _purge(self) -> None:
        for spool in tuple(self._spools.values()):
            await self._slowly(spool.purge)
        unused = max((spool.terms.unused for spool in self._spools.values()), default=Terms().unused)
        await self._files.purge(unused)

    def _spool(self, relay: str) -> Spool:
        if relay not in self._spools:
            self._spools[relay] = Spool(self._root, relay)
        return self._spools[relay]

    def _spawn(self, work: Coroutine[Any, Any, T]) -> asyncio.Task[T]:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._take_end)
        return task

    def _take_end(self, task: asyncio.Task[Any]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (fault := task.exception()):
            log_fault("managing the runs of a host", fault)

    async def _in_thread(self, work: Callable[..., T], *arguments: object) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._quick, partial(work, *arguments))

    async def _slowly(self, work: Callable[..., T], *arguments: object) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._slow, partial(work, *arguments))


def _ask_to_stop(project: paths.Project, run_id: str, request: StopRequest) -> None:
    """Write a stop request and wake the wrapper. Raises SubdeckError if it cannot be written."""
    meta = artifacts.read_meta(project.run_dir(run_id))
    if meta is None:
        meta = artifacts.unreadable_meta(project.run_dir(run_id))
    run = RunSnapshot(meta=meta, state=Queued())
    ask_to_stop(project, run, force=request.force, by=request.by, reason=request.reason)


def _pass_on(project: paths.Project, run_id: str, entry: InboxEntry) -> None:
    run_dir = project.run_dir(run_id)
    if pass_on(run_dir, entry):
        talk.wake(run_id, run_dir)
