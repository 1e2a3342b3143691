"""Where a host keeps the runs of its operators: a directory that one agent has to itself, and in it a project for each
relay. Whatever is started there is an ordinary run of that project, and goes on without the agent.
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
from ..run.kinds import Period
from ..run.proven import has_result
from ..system import files
from ..system.directory import Directory, opened
from ..text.decoding import UNDECODABLE, decode

LOOK_S = 1.0
"""Between two looks at all runs, however quiet their bells are."""
UNBORN_S = 60.0
"""How long a relay has time to ask again for a run whose agent was killed over its start."""
HANDOVER_S = 2.0
"""How long a spool may still be locked after the end of the agent that had it."""
UNFETCHED_S = 90 * 24 * 3600.0
"""How long a run that has ended is kept for an operator who does not fetch it."""
_ID = "id"
_LOCK = ".lock"
_SLOTS = ".slots"
_DONE = "done"
_GONE = "gone"
"""Has the name of each run that was removed without anybody having fetched it, for ever: it must not start again."""
_LEASE = "lease"
_TERMS = "terms.json"
_STOP_THE_OTHER = "stop that process, or use another directory"


class SpoolBusy(SubdeckError):
    """Another agent has the spool."""


class Terms(Struct, frozen=True, omit_defaults=True):
    """What an operator said last about all his runs, in seconds; 0 for never."""

    operator: Period = 0.0
    """How long they go on unheard of."""
    keep: Period = 7 * 24 * 3600.0
    """How long what was delivered is kept."""
    unused: Period = 30 * 24 * 3600.0
    """How long the files of a repository are kept that no run has come with any more."""


def now() -> float:
    """Return the seconds since the boot, with those in which the machine slept."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)


class SpoolRoot:
    """The directory, locked for as long as it is open."""

    def __init__(self, path: str) -> None:
        """Make it where it is missing. Raises SpoolBusy where another agent has it, SubdeckError."""
        self.path = os.path.abspath(path)
        self.slots = os.path.join(self.path, _SLOTS, "host")
        """Lock files that the runs of all relays share."""
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
        """Return the ids of the relays that have runs there, or had."""
        return [name for name in files.names(self.path) if is_relay(name)]

    def close(self) -> None:
        if self._lock >= 0:
            os.close(self._lock)
            self._lock = -1

    def _read_id(self) -> str:
        """Return the id that permits name, made with the spool. Raises OSError, SubdeckError for one that is broken."""
        path = os.path.join(self.path, _ID)
        try:
            files.write_new(path, os.urandom(16).hex().encode(), durable=True)
        except FileExistsError:
            pass
        found = files.read(path).decode("ascii", "replace").strip()
        if not re.fullmatch(r"[0-9a-f]{32}", found):
            raise SubdeckError("the spool's id is damaged", where=path, hint="restore it, or use another directory")
        return found


def is_relay(name: str) -> bool:
    """Return whether a name is a relay's; nothing else becomes a path of a spool."""
    return re.fullmatch(r"[0-9a-f]{12}", name) is not None


def has_begun(run_dir: str) -> bool:
    """Return whether a wrapper has taken a run, or it has ended without."""
    return any(os.path.lexists(f"{run_dir}/{name}") for name in (paths.TAKEN, paths.RUNNER)) or has_result(run_dir)


class Spool:
    """The runs of one relay, and what has become of them since somebody looked. Used in one event loop."""

    def __init__(self, root: SpoolRoot, relay: str) -> None:
        if not is_relay(relay):
            raise ValueError("a relay's id is 12 hex digits")
        self.relay = relay
        place = os.path.join(root.path, relay)
        self.project = paths.Project(place)
        self.lease = os.path.join(place, _LEASE)
        self.done = os.path.join(place, _DONE)
        self._gone = os.path.join(place, _GONE)
        self._terms_file = os.path.join(place, _TERMS)
        self.terms = self._read_terms()
        self.heard = self._heard_before()
        """When the operator was heard of last, by `now`."""
        self.known: set[str] = set()
        """All runs that have begun there, and are not acknowledged."""
        self.open: set[str] = set()
        """Those without a result."""
        self.turn = 0
        """Grows with each piece of news."""
        self._changed: dict[str, int] = {}
        """In which turn there was news of an open run last."""
        self._waiting: set[asyncio.Event] = set()
        self._ends: dict[str, list[asyncio.Future[None]]] = {}
        """What waits for the end of a run: as little as can be, for each slot that is used has one."""
        self._bells: dict[str, tuple[int, int]] = {}
        self._unborn: dict[str, float] = {}
        """Since when a directory is known that no wrapper has taken."""
        self._active: Directory | None = None
        self._looked = 0.0
        self.look()

    def make(self) -> None:
        """Make what a run needs there. Raises OSError."""
        pi = os.path.join(self.project.root, ".pi")  # private, because a spool is not a checkout
        for directory in (pi, self.project.runs, self.project.active, self.done):
            files.make_private_directory(directory)

    # --- news ---

    def look(self) -> None:
        """Find out which runs there are, and which of them have ended; whoever waits is told.

        One of which an agent that was killed has made the directory only is none: its relay asks for it again. Where
        nobody does, and no wrapper comes, it is one that will be found lost.
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
        """Take in which bells were rung, came or went since the last time; look at all runs now and then."""
        if time.monotonic() - self._looked > LOOK_S:
            self.look()
        if not self.open:
            return
        bells = self._read_bells()
        changed = {run_id for run_id, bell in bells.items() if self._bells.get(run_id) != bell}
        self._bells = bells
        self._settle(self.open - bells.keys())  # also one that came and ended since the last time
        if changed:
            self.ring(*(changed & self.open))

    def ring(self, *run_ids: str) -> None:
        """Wake whoever waits for news: of these runs, or of something else."""
        self.turn += 1
        self._changed.update(dict.fromkeys(run_ids, self.turn))
        for waiting in self._waiting:
            waiting.set()

    def changed_since(self, turn: int) -> set[str]:
        """Return the runs of which there was news after that turn."""
        return {run_id for run_id, changed in self._changed.items() if changed > turn}

    async def news(self, turn: int, timeout: float) -> None:
        """Wait until there is news after that turn, at most so many seconds."""
        event = asyncio.Event()
        self._waiting.add(event)
        try:
            if self.turn == turn:
                await asyncio.wait_for(event.wait(), timeout)
        except TimeoutError:
            return
        finally:
            self._waiting.discard(event)

    async def over(self, run_id: str) -> None:
        """Wait until a run has ended, or is not there any more."""
        if run_id in self.open:
            end = asyncio.get_running_loop().create_future()
            self._ends.setdefault(run_id, []).append(end)
            await end

    def add(self, run_id: str) -> None:
        """Know of a run that is there."""
        if run_id not in self.known:
            self.known.add(run_id)
            self.open.add(run_id)
            self.ring(run_id)

    def forget(self, run_id: str) -> None:
        """Know no more of a run, which was acknowledged or taken away."""
        self.known.discard(run_id)
        self._changed.pop(run_id, None)
        self._end(run_id)

    def _settle(self, run_ids: Collection[str]) -> None:
        """Note which of these runs have ended."""
        for run_id in [run_id for run_id in run_ids if self.has_ended(run_id)]:
            self._end(run_id)
            self.ring(run_id)

    def _end(self, run_id: str) -> None:
        self.open.discard(run_id)
        for end in self._ends.pop(run_id, ()):
            if not end.done():  # nobody waits any more
                end.set_result(None)

    def has_ended(self, run_id: str) -> bool:
        return has_result(self.project.run_dir(run_id))

    def has(self, run_id: str) -> bool:
        """Return whether there is a run, be it one that may still begin."""
        return run_id in self.known or run_id in self._unborn

    def was_delivered(self, run_id: str) -> bool:
        """Return whether the operator has had all of a run, and it is kept for a while only."""
        return os.path.lexists(os.path.join(self.done, run_id))

    def was_removed(self, run_id: str) -> bool:
        """Return whether a run ended here so long ago that it was removed, though nobody had fetched it."""
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
        """Note that the operator was heard of just now."""
        self.heard = now()

    def left(self) -> float | None:
        """Return the seconds that the operator's lease still lasts; None where it never ends."""
        return max(0.0, self.terms.operator - (now() - self.heard)) if self.terms.operator else None

    def renew(self) -> None:
        """Say to the wrappers that there is an agent, and when the operator was heard of. Raises OSError."""
        files.write_whole(self.lease, b"%.3f %.3f\n" % (now(), self.heard))

    def keep_terms(self, terms: Terms) -> None:
        """Remember what the operator wants of all his runs. Raises OSError."""
        if terms != self.terms:
            files.write_whole(self._terms_file, msgspec.json.encode(terms))
            self.terms = terms

    def _read_terms(self) -> Terms:
        try:
            return decode(files.read(self._terms_file), Terms)
        except (OSError, *UNDECODABLE):
            return Terms()

    def _heard_before(self) -> float:
        """Return when the operator was heard of before this agent came; after a restart of the machine just now."""
        try:
            heard = float(files.content(self.lease).split()[1])
        except (IndexError, ValueError):
            return now()
        return heard if 0 <= heard <= now() else now()

    # --- what was delivered ---

    def deliver(self, run_id: str) -> None:
        """Put a run aside of which the operator has all. Raises OSError; what was put aside before is kept then."""
        place = os.path.join(self.done, run_id)
        files.make_private_directory(self.done)
        with opened(self.project.runs) as runs:
            runs.touch(run_id)
        if os.path.lexists(place):
            files.remove_tree(place)
        files.rename(self.project.run_dir(run_id), place)

    def purge(self) -> list[str]:
        """Remove what was delivered longer ago than it is kept, and what nobody has fetched for very long; return which
        runs those were.
        """
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
                continue  # it has not ended, or cannot be noted now
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
            files.remove_tree(paths.work_dir(self.project, name))  # what was recorded of the working tree
        return old


# --- what is offered -------------------------------------------------------------------------------------------------

PATIENCE_S = 20.0
"""How long a slot is held for a run that has no permit."""
AGAIN_S = 5.0
"""After this a relay that waits is told again of an offer which nothing came of."""


class _Offer(Struct):
    settled: asyncio.Event
    """The run has come, or was refused."""
    holders: int = 0
    told_at: float = float("-inf")


class Offers:
    """Those of all relays; used in one event loop."""

    def __init__(self) -> None:
        self._offers: dict[tuple[str, str], _Offer] = {}

    async def hold(self, spool: Spool, run_id: str) -> bool:
        """Offer a run until it comes or is refused; False where neither was in time."""
        key = (spool.relay, run_id)
        offer = self._offers.setdefault(key, _Offer(asyncio.Event()))
        offer.holders += 1
        spool.ring()
        try:
            await asyncio.wait_for(offer.settled.wait(), PATIENCE_S)
        except TimeoutError:
            return False
        finally:
            offer.holders -= 1
            if not offer.holders:
                self._offers.pop(key, None)
        return True

    def settle(self, spool: Spool, run_id: str) -> None:
        """Note that a run has come, or was refused."""
        if offer := self._offers.get((spool.relay, run_id)):
            offer.settled.set()

    def has_news(self, spool: Spool) -> bool:
        """Return whether the relay of a spool is to be told of an offer now."""
        now = time.monotonic()
        return any(now - offer.told_at >= AGAIN_S for offer in self._of(spool).values())

    def tell(self, spool: Spool) -> tuple[str, ...]:
        """Return the runs that are offered to the relay of a spool, and note that it was told of them."""
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
