"""The spool: the directory where a host keeps its operators' runs. One agent owns it, and each relay has a project in
it. Runs are ordinary runs of that project and continue without the agent.
"""

from __future__ import annotations

import asyncio
import os
import re
import time
from collections.abc import Collection

import msgspec
from msgspec import Struct

from .. import paths
from ..errors import SubdeckError
from ..run import artifacts
from ..run.enumerations import Period
from ..run.proven import has_result
from ..system import files
from ..system.directory import Directory, opened
from ..system.record import read_record

LOOK_S = 1.0
"""Seconds between checks of all runs, however quiet their activity files are."""
UNBORN_S = 60.0
"""Seconds that a relay has to request a run again if the agent was killed while starting it."""
HANDOVER_S = 2.0
"""Seconds that a spool may stay locked after its agent has exited."""
UNFETCHED_S = 90 * 24 * 3600.0
"""Seconds that a finished run is kept if its operator does not fetch it."""
_ID = "id"
_LOCK = ".lock"
_SLOTS = ".slots"
_DONE = "done"
_GONE = "gone"
"""Directory with the name of each run removed without being fetched, kept forever: it must not start again."""
_LEASE = "lease"
_TERMS = "terms.json"
_STOP_THE_OTHER = "stop that process, or use another directory"


class SpoolBusy(SubdeckError):
    """Another agent has the spool."""


class Terms(Struct, frozen=True, omit_defaults=True):
    """What an operator last set for all their runs, in seconds; 0 for never."""

    operator: Period = 0.0
    """How long runs continue without contact."""
    keep: Period = 7 * 24 * 3600.0
    """How long delivered runs are kept."""
    unused: Period = 30 * 24 * 3600.0
    """How long a repository's files are kept after the last run that came with it."""


def now() -> float:
    """Return the seconds since boot, including time the machine slept."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)


class SpoolRoot:
    """The spool's directory, locked while it is open."""

    def __init__(self, path: str) -> None:
        """Create the spool if it is missing. Raises SpoolBusy if another agent has it, SubdeckError."""
        self.path = os.path.abspath(path)
        self.slots = os.path.join(self.path, _SLOTS, "host")
        """Slot lock files, shared by the runs of all relays."""
        self._lock = -1
        try:
            files.make_private_directory(self.path)
            status = os.stat(self.path)
            if not paths.is_own(status.st_uid) or status.st_mode & 0o022:
                raise SubdeckError(
                    "other users can write to the spool", where=self.path, hint="use your own directory (chmod 700)"
                )
            self._lock = files.open_lock(os.path.join(self.path, _LOCK))
            if not files.lock_soon(self._lock, HANDOVER_S):
                raise SpoolBusy("another process uses this spool", where=self.path, hint=_STOP_THE_OTHER)
            self.id = self._read_id()
        except OSError as error:
            self.close()
            what = f"cannot use the spool: {error.strerror}"
            raise SubdeckError(what, where=self.path, hint="check disk space and permissions") from error
        except BaseException:
            self.close()
            raise

    def relays(self) -> list[str]:
        """Return the ids of the relays that have or had runs here."""
        return [name for name in files.names(self.path) if is_relay(name)]

    def close(self) -> None:
        if self._lock >= 0:
            os.close(self._lock)
            self._lock = -1

    def _read_id(self) -> str:
        """Return the spool's id, which permits name; create it if missing. Raises OSError, SubdeckError if damaged."""
        path = os.path.join(self.path, _ID)
        try:
            files.write_new(path, os.urandom(16).hex().encode(), durable=True)
        except FileExistsError:
            pass
        spool_id = files.read(path).decode("ascii", "replace").strip()
        if not re.fullmatch(r"[0-9a-f]{32}", spool_id):
            raise SubdeckError("the spool's id is damaged", where=path, hint="restore it, or use another directory")
        return spool_id


def is_relay(name: str) -> bool:
    """Return whether a name is a valid relay id; other names never become paths in the spool."""
    return re.fullmatch(r"[0-9a-f]{12}", name) is not None


def has_begun(run_dir: str) -> bool:
    """Return whether a wrapper has taken a run, or the run has a result."""
    return any(os.path.lexists(f"{run_dir}/{name}") for name in (paths.TAKEN, paths.RUNNER)) or has_result(run_dir)


class Spool:
    """The runs of one relay, and news about them. Used in one event loop."""

    def __init__(self, root: SpoolRoot, relay: str) -> None:
        if not is_relay(relay):
            raise ValueError("a relay's id is 12 hex digits")
        self.relay = relay
        directory = os.path.join(root.path, relay)
        self.project = paths.Project(directory)
        self.lease = os.path.join(directory, _LEASE)
        self.done = os.path.join(directory, _DONE)
        self._gone = os.path.join(directory, _GONE)
        self._terms_file = os.path.join(directory, _TERMS)
        self.terms = self._read_terms()
        self.heard = self._heard_before()
        """Time of the last contact with the operator, by `now`."""
        self.known: set[str] = set()
        """All runs that have begun here and are not acknowledged."""
        self.open: set[str] = set()
        """Known runs without a result."""
        self.generation = 0
        """Counter that grows with each piece of news."""
        self._changed: dict[str, int] = {}
        """Generation of the latest news about each known run."""
        self._waiting: set[asyncio.Event] = set()
        self._ends: dict[str, list[asyncio.Future[None]]] = {}
        """Futures that wait for a run to finish; kept small, because each used slot has one."""
        self._bells: dict[str, tuple[int, int]] = {}
        self._unborn: dict[str, float] = {}
        """When each directory that no wrapper has taken was first seen."""
        self._active: Directory | None = None
        self._looked = 0.0
        self.look()

    def make(self) -> None:
        """Create the project's directories. Raises OSError."""
        pi = os.path.join(self.project.root, ".pi")  # private, because a spool is not a checkout
        for directory in (pi, self.project.runs, self.project.active, self.done):
            files.make_private_directory(directory)

    # --- news ---

    def look(self) -> None:
        """Scan for runs and their results, and wake the waiting tasks.

        A directory that a killed agent left without a wrapper does not count: its relay requests the run again. If that
        does not happen within `UNBORN_S`, it counts as a run, and will be found lost.
        """
        self._looked = time.monotonic()
        self._active = None
        there = set(artifacts.run_ids(self.project.runs))
        unborn = {run_id for run_id in there - self.known if not has_begun(self.project.run_dir(run_id))}
        self._unborn = {run_id: self._unborn.get(run_id, self._looked) for run_id in unborn}
        late = {run_id for run_id, since in self._unborn.items() if self._looked - since > UNBORN_S}
        for run_id in there - self.known - unborn | late:
            self.add(run_id)
        for run_id in self.known - there:
            self.forget(run_id)
        self._settle(self.open)

    def sweep(self) -> None:
        """Notice activity files that changed, came or went; now and then scan all runs."""
        if time.monotonic() - self._looked > LOOK_S:
            self.look()
        if not self.open:
            return
        bells = self._read_bells()
        changed = {run_id for run_id, bell in bells.items() if self._bells.get(run_id) != bell}
        self._bells = bells
        self._settle(self.open - bells.keys())  # also a run whose file came and went since the last time
        if changed:
            self.ring(*(changed & self.open))

    def ring(self, *run_ids: str) -> None:
        """Wake the tasks that wait for news, about these runs or in general."""
        self.generation += 1
        self._changed.update(dict.fromkeys(run_ids, self.generation))
        for waiting in self._waiting:
            waiting.set()

    def changed_since(self, generation: int) -> set[str]:
        """Return the runs with news after that generation."""
        return {run_id for run_id, changed in self._changed.items() if changed > generation}

    async def news(self, generation: int, timeout: float) -> None:
        """Wait for news after that generation, at most `timeout` seconds."""
        event = asyncio.Event()
        self._waiting.add(event)
        try:
            if self.generation == generation:
                async with asyncio.timeout(timeout):
                    await event.wait()
        except TimeoutError:
            return
        finally:
            self._waiting.discard(event)

    async def over(self, run_id: str) -> None:
        """Wait until a run has finished or is gone."""
        if run_id in self.open:
            end = asyncio.get_running_loop().create_future()
            self._ends.setdefault(run_id, []).append(end)
            await end

    def add(self, run_id: str) -> None:
        """Add a run that is here."""
        if run_id not in self.known:
            self.known.add(run_id)
            self.open.add(run_id)
            self.ring(run_id)

    def forget(self, run_id: str) -> None:
        """Forget a run that was acknowledged or removed."""
        self.known.discard(run_id)
        self._changed.pop(run_id, None)
        self._end(run_id)

    def _settle(self, run_ids: Collection[str]) -> None:
        """Note which of these runs have finished."""
        for run_id in [run_id for run_id in run_ids if self.has_ended(run_id)]:
            self._end(run_id)
            self.ring(run_id)

    def _end(self, run_id: str) -> None:
        self.open.discard(run_id)
        for end in self._ends.pop(run_id, ()):
            if not end.done():  # its task was cancelled
                end.set_result(None)

    def has_ended(self, run_id: str) -> bool:
        return has_result(self.project.run_dir(run_id))

    def has(self, run_id: str) -> bool:
        """Return whether a run is here, including one that has not begun."""
        return run_id in self.known or run_id in self._unborn

    def was_delivered(self, run_id: str) -> bool:
        """Return whether a run was delivered in full and is only kept for a while."""
        return os.path.lexists(os.path.join(self.done, run_id))

    def was_removed(self, run_id: str) -> bool:
        """Return whether a run finished here so long ago that it was removed unfetched."""
        return os.path.lexists(os.path.join(self._gone, run_id))

    def _read_bells(self) -> dict[str, tuple[int, int]]:
        try:
            if self._active is None:
                self._active = opened(self.project.active)
            entries = self._active.entries()
        except OSError:
            self._active = None
            return {}
        return {name: (status.st_mtime_ns, status.st_size) for name, status in entries if name in self.open}

    # --- leases ---

    def hear(self) -> None:
        """Note contact with the operator."""
        self.heard = now()

    def left(self) -> float | None:
        """Return the seconds left of the operator's lease; None if it never expires."""
        return max(0.0, self.terms.operator - (now() - self.heard)) if self.terms.operator else None

    def renew(self) -> None:
        """Write the lease: the agent lives, and the operator's last contact. Raises OSError."""
        files.write_whole(self.lease, b"%.3f %.3f\n" % (now(), self.heard))

    def keep_terms(self, terms: Terms) -> None:
        """Store the operator's terms. Raises OSError."""
        if terms != self.terms:
            files.write_whole(self._terms_file, msgspec.json.encode(terms))
            self.terms = terms

    def _read_terms(self) -> Terms:
        return read_record(self._terms_file, Terms, Terms())

    def _heard_before(self) -> float:
        """Return the last contact with the operator before this agent started; `now` after a reboot."""
        try:
            heard = float(files.content(self.lease).split()[1])
        except (IndexError, ValueError):
            return now()
        return heard if 0 <= heard <= now() else now()

    # --- delivered runs ---

    def deliver(self, run_id: str) -> None:
        """Move a fully delivered run to `done`. Raises OSError, keeping an earlier copy there."""
        destination = os.path.join(self.done, run_id)
        files.make_private_directory(self.done)
        with opened(self.project.runs) as runs:
            runs.touch(run_id)
        if os.path.lexists(destination):
            files.remove_tree(destination)
        files.rename(self.project.run_dir(run_id), destination)

    def purge(self) -> list[str]:
        """Remove runs delivered longer ago than `keep`, and runs unfetched for very long; return their ids."""
        return [*self._purge_unfetched(), *self._purge_delivered()]

    def _purge_unfetched(self) -> list[str]:
        oldest = time.time() - max(UNFETCHED_S, self.terms.keep)
        old: list[str] = []
        for run_id in artifacts.run_ids(self.project.runs):
            run_dir = self.project.run_dir(run_id)
            try:
                if os.lstat(f"{run_dir}/{paths.RESULT}").st_mtime > oldest or not has_result(run_dir, certain=True):
                    continue
                files.make_private_directory(self._gone)
                files.write_whole(os.path.join(self._gone, run_id), b"", durable=True)
            except OSError:
                continue  # it has not finished, or cannot be noted now
            files.remove_tree(run_dir)
            files.remove_tree(paths.work_dir(self.project, run_id))
            old.append(run_id)
        return old

    def _purge_delivered(self) -> list[str]:
        oldest = time.time() - self.terms.keep
        try:
            with opened(self.done) as done:
                old = [name for name, status in done.entries() if paths.is_run_id(name) and status.st_mtime <= oldest]
        except OSError:
            return []
        for name in old:
            files.remove_tree(os.path.join(self.done, name))
            files.remove_tree(paths.work_dir(self.project, name))  # recorded state of the working tree
        return old


# --- offers ----------------------------------------------------------------------------------------------------------

PATIENCE_S = 20.0
"""Seconds that a slot is held for a run without a permit."""
AGAIN_S = 5.0
"""Seconds after which an offer that had no effect is sent to a waiting relay again."""


class _Offer(Struct):
    settled: asyncio.Event
    """Set when the run has arrived or was refused."""
    holders: int = 0
    told_at: float = float("-inf")


class Offers:
    """The offers to all relays; used in one event loop."""

    def __init__(self) -> None:
        self._offers: dict[tuple[str, str], _Offer] = {}

    async def hold(self, spool: Spool, run_id: str) -> bool:
        """Offer a run until it arrives or is refused; return False on timeout."""
        key = (spool.relay, run_id)
        offer = self._offers.setdefault(key, _Offer(asyncio.Event()))
        offer.holders += 1
        spool.ring()
        try:
            async with asyncio.timeout(PATIENCE_S):
                await offer.settled.wait()
        except TimeoutError:
            return False
        finally:
            offer.holders -= 1
            if not offer.holders:
                self._offers.pop(key, None)
        return True

    def settle(self, spool: Spool, run_id: str) -> None:
        """Note that a run has arrived or was refused."""
        if offer := self._offers.get((spool.relay, run_id)):
            offer.settled.set()

    def has_news(self, spool: Spool) -> bool:
        """Return whether an offer is due to be sent to the relay of a spool."""
        now = time.monotonic()
        return any(now - offer.told_at >= AGAIN_S for offer in self._of(spool).values())

    def tell(self, spool: Spool) -> tuple[str, ...]:
        """Return the runs offered to the relay of a spool, and note that they were sent."""
        offers = self._of(spool)
        for offer in offers.values():
            offer.told_at = time.monotonic()
        return tuple(offers)

    def _of(self, spool: Spool) -> dict[str, _Offer]:
        return {
            run_id: offer
            for (relay, run_id), offer in self._offers.items()
            if relay == spool.relay and run_id not in spool.known
        }
