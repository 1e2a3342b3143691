"""One run on another machine, as its operator has it: the permit, what has come of its files, who vouches for it."""

from __future__ import annotations

import os
import stat
import time

import msgspec
from msgspec.structs import replace

from ... import paths
from ...run import artifacts
from ...run.artifacts import GIVEN_UP_BY, RunnerFacts
from ...run.hosts import Permit, Place, give_permit, read_permit, read_place, write_place
from ...run.inbox import BEGINNING, Entry, EntryKind, Inbox
from ...run.model import STATUS_OF, LogCaps, RunMeta, RunnerKind, RunReason, RunResult, Undelivered
from ...run.outcome import stopped
from ...system import files
from ...system.directory import opened
from ...text.decoding import UNDECODABLE, decode, why
from ...text.plain import one_line
from .._mirror import AT_END, GROWING, MOST_BYTES, is_mirrored
from ..protocol import Chunk, Have
from .spending import Spending

ENDED_BY = "relay"
"""Who signs an end that no host has told."""
THERE = ("host", "wrapper")
"""Who on a host writes ends."""
INCOMING = ".incoming-"
"""Begins the name of a file that comes at the end until all of it is there: one that was there before is another."""
_BEYOND = 8 * 1024 * 1024
"""Bytes by which a log may be longer than its cap: what belongs to the end of a run is written all the same."""
_OTHER_CAP = 256 * 1024 * 1024
"""Bytes of a file that comes at the end; and of all later prompts together."""


class Misfit(Exception):
    """What a host sent is nothing that a run of ours can have."""


class Remote:
    """Every method that touches the disk raises OSError, unless it says otherwise."""

    def __init__(self, project: paths.Project, run_id: str, meta: RunMeta) -> None:
        self.id = run_id
        self.meta = replace(meta, system_prompt=None, task="")
        self.run_dir = project.run_dir(run_id)
        self.bell_file = os.path.join(project.active, run_id)
        self.permit: Permit | None = None
        self.heard: float | None = None
        """When its host last vouched for it, by `time.monotonic`; None before."""
        self.heard_at = ""
        self.trouble = ""
        """What is wrong with it, in words."""
        self.place: Place | None = read_place(self.run_dir)
        self.not_now = ""
        """Why its host could not start it yet, in words; it is asked again."""
        self.may_have_begun = True
        """Whether a request to start it may have come to its host since that said so."""
        self.is_given_up = False
        """Whether it has a result that its operator wrote, and only what its host says of its end is waited for."""
        self.is_ending = False
        """Whether its last files are being written."""
        self.stop_wanted = b""
        """The request to stop, as it stands in its file."""
        self.stop_told = b""
        """The request to stop that its host has."""
        self.inbox = Inbox(self.run_dir)
        self.unsent: dict[str, Entry] = {}
        """What was sent to it and its host has not got, by id, in its order."""
        self._refused: dict[str, tuple[Entry, str]] = {}
        """What its host did not take, and why; it stays in the inbox until the run ends."""
        self._spending = Spending(project, meta)
        self._lock: int | None = None
        self._bell = b""
        self._was_started = self._is_named = self._has_luggage = False
        self._sizes: dict[str, int] = {}
        self._cut: set[str] = set()
        """Files of which no more is taken: they are longer than they may be."""

    def open(self) -> None:
        """Read what there is of it."""
        self.permit = read_permit(self.run_dir)
        self._sizes = {}
        with opened(self.run_dir) as directory:
            for name, status in directory.entries():
                if name in GROWING and stat.S_ISREG(status.st_mode):
                    self._sizes[name] = status.st_size
                elif name.startswith(INCOMING):
                    self._sizes[name.removeprefix(INCOMING)] = status.st_size
        self._has_luggage = files.is_there(os.path.join(self.run_dir, paths.ENVIRONMENT))
        self._was_started = not self._has_luggage

    def look(self) -> None:
        """Find out what is wanted of it: that it ends, or that it is told something; and whether it has a permit."""
        if self.permit is None:
            self.permit = read_permit(self.run_dir)  # it may be there although giving it failed
        request = artifacts.read_stop(self.run_dir, certain=True)
        self.stop_wanted = msgspec.json.encode(request) if request else b""
        self.unsent.update((entry.id, entry) for entry in self.inbox.take())

    def hear(self) -> None:
        """Note that its host vouches for it."""
        self.heard, self.heard_at, self.trouble = time.monotonic(), paths.now_iso(), self.not_now

    @property
    def age(self) -> tuple[str, int, str]:
        """Compare by who was launched first."""
        return (self.meta.created_at, self.meta.group.index if self.meta.group else 0, self.id)

    @property
    def is_cancelled(self) -> bool:
        """Whether it will start nowhere; a permit that cannot be read says nothing."""
        return self.permit is not None and not self.permit.spool and bool(self.permit.at)

    @property
    def spool(self) -> str:
        """The spool that it may start in; empty as long as there is none, and where there never will be."""
        return self.permit.spool if self.permit else ""

    @property
    def was_started(self) -> bool:
        """Whether its host has once told of it as of a run that has begun: what the launcher left for its start is gone
        then. The host is never asked to start it again, for it would.
        """
        return self._was_started

    def put_off(self, why: str) -> None:
        """Note that its host, which was just asked, has not started it, and may be asked again."""
        self.not_now, self.may_have_begun = why, False
        self.hear()

    @property
    def is_put_off_for_good(self) -> bool:
        """Whether it has certainly not begun, and is wanted no more."""
        return bool(self.stop_wanted and self.not_now) and not self.may_have_begun

    def note_started(self) -> None:
        self.not_now, self.may_have_begun = "", True
        self._was_started = True
        if self._has_luggage:
            luggage = os.path.join(self.run_dir, paths.ENVIRONMENT)
            files.remove(luggage)
            self._has_luggage = files.is_there(luggage)

    def is_at(self, spool: str, via: str) -> bool:
        """Return whether it has the permit for a spool, and for the host at that address."""
        return bool(spool) and self.spool == spool and self.permit is not None and self.permit.via in ("", via)

    def permit_to(self, spool: str, host: str, via: str = "") -> bool:
        """Let it start in a spool and nowhere else, for ever; False where another one was permitted before.

        With an empty spool it will start nowhere.
        """
        if self.permit is None:
            self.permit = give_permit(self.run_dir, Permit(spool, host, paths.now_iso(), via))
        return self.permit.spool == spool

    def vouch(self, is_certain: bool) -> None:
        """Hold the run's lock, which is the proof of its life, or let it go."""
        if self._lock is not None and (not is_certain or not self._is_locked_file()):
            os.close(self._lock)
            self._lock = None
        if self._lock is None and is_certain:
            lock = files.open_lock(os.path.join(self.run_dir, paths.LOCK))
            try:
                if files.try_lock(lock, shared=True):
                    self._lock, lock = lock, -1
            finally:
                if lock >= 0:
                    os.close(lock)  # a prober has it for a moment

    @property
    def is_vouched(self) -> bool:
        return self._lock is not None

    def _is_locked_file(self) -> bool:
        """Return whether the lock that is held is still the run's."""
        try:
            return self._lock is not None and os.path.samestat(
                os.lstat(os.path.join(self.run_dir, paths.LOCK)), os.fstat(self._lock)
            )
        except OSError:
            return False

    def have(self) -> Have:
        """Say how much of it is here; all, of a file that is longer than it may be."""
        return Have(self._sizes | dict.fromkeys(self._cut, MOST_BYTES), self._bell)

    def take(self, chunk: Chunk) -> bool:
        """Write what follows on what there is of a file; False for what does not. Raises Misfit for what no run has."""
        name = chunk.file
        if not is_mirrored(name):
            raise Misfit(f"it sent an unexpected file {one_line(name, 64)}")
        size = self._sizes.get(name, 0)
        if chunk.offset != size or name in self._cut:
            return False
        cap = _cap(name, self.meta.log_caps)
        if size + len(chunk.content) > cap or self._later_prompts(name) + len(chunk.content) > cap:
            self._cut.add(name)
            raise Misfit(f"its {name} is longer than {cap >> 20} MB")
        path = os.path.join(self.run_dir, name if name in GROWING else f"{INCOMING}{name}")
        descriptor = files.open_private(path, os.O_WRONLY)
        try:
            written = 0
            while written < len(chunk.content):
                written += os.pwrite(descriptor, memoryview(chunk.content)[written:], size + written)
        finally:
            self._sizes[name] = os.fstat(descriptor).st_size
            os.close(descriptor)
        return True

    def _later_prompts(self, name: str) -> int:
        """Return the bytes of all prompts of later attempts, where it is one of these; of other files 0."""
        if name in GROWING or name in AT_END:
            return 0
        return sum(size for other, size in self._sizes.items() if other not in GROWING and other not in AT_END)

    def ring(self, content: bytes | None = None) -> None:
        """Let those who follow the run know that there is something new; `content` is its record in `active/`."""
        self._bell = self._bell if content is None else content
        if self.is_given_up:
            return
        descriptor = files.open_private(self.bell_file, os.O_WRONLY)
        try:
            os.ftruncate(descriptor, len(self._bell))
            os.pwrite(descriptor, self._bell, 0)
        finally:
            os.close(descriptor)

    def tell_spending(self) -> None:
        """Tell the ledger what it has spent so far, now and then."""
        self._spending.look()

    def refuse(self, entry_id: str, why: str) -> None:
        """Note that its host does not take something, so that the end of the run says so."""
        self._refused[entry_id] = (self.unsent.pop(entry_id), why)

    def settle(self, entry_id: str) -> None:
        """Take away what its host has got."""
        self.unsent.pop(entry_id, None)
        self.inbox.settle(entry_id)

    def show(self, place: Place) -> bool:
        """Write down where it is; return whether that is news."""
        before = self.place
        if before is not None and (before.state, before.host) == (place.state, place.host):
            heard_at = before.heard_at if before.why == place.why else place.heard_at
            place = replace(place, since=before.since, heard_at=heard_at)
        if place == before:
            return False
        self._name_host()
        write_place(self.run_dir, place)
        self.place = place
        return True

    def _name_host(self) -> None:
        """Have a person who looks find the host's name; nobody finds a process of this machine."""
        if self._is_named or not self.permit or not self.spool:
            return
        facts = RunnerFacts(RunnerKind.HOSTS, self.permit.host, boot_id="", pid_namespace="", pid=1)
        if artifacts.read_runner(self.run_dir) != facts:
            files.write_whole(os.path.join(self.run_dir, paths.RUNNER), msgspec.json.encode(facts))
        self._is_named = True

    def end(self, result: RunResult) -> None:
        """Publish how it ended, once all that came of its files is on the disk; nobody vouches for it any more.

        Where its operator has given it up, be it a moment ago, that is kept beside the end that he wrote.
        """
        self._settle_files()
        self._spending.settle()
        if not self.is_given_up and not self._publish(result):
            own = artifacts.read_result(self.run_dir, certain=True)
            self.is_given_up = own is not None and own.written_by == GIVEN_UP_BY and result.written_by != ENDED_BY
        if self.is_given_up:
            artifacts.write_late_result(self.run_dir, result)
        else:
            self.leave()

    def _publish(self, result: RunResult) -> bool:
        """Write the result; False where there is one."""
        left_out = tuple(f"{name}: too long, the rest stays on its host" for name in sorted(self._cut))
        result = replace(
            result,
            undelivered=(*result.undelivered, *self._late()),
            artifact_errors=(*result.artifact_errors, *left_out),
        )
        return artifacts.write_result(self.run_dir, result)

    def cancel(self) -> bool:
        """Publish that it was stopped before it could start anywhere; False where it has a permit by now."""
        self.permit_to("", "")
        if not self.is_cancelled:
            return False
        self.is_ending = True
        try:
            self._end_unplaced()
        finally:
            self.is_ending = False
        return True

    def _end_unplaced(self) -> None:
        self.end(self.stopped_result("before it was sent to a host"))

    def stopped_result(self, when: str) -> RunResult:
        """Return the end of a run that never began, by what was asked of it."""
        request = artifacts.read_stop(self.run_dir)
        reason, by = stopped(request) if request else (RunReason.STOPPED, "stopped")
        return self.own_result(reason, f"{by} {when}")

    def own_result(self, reason: RunReason, message: str) -> RunResult:
        """Return an end that the relay knows of by itself."""
        return RunResult(
            run_id=self.id,
            status=STATUS_OF[reason],
            reason=reason,
            written_by=ENDED_BY,
            error_message=message,
            resolved_model=self.meta.resolved_model,
            ended_at=paths.now_iso(),
        )

    def leave(self) -> None:
        """Take away what is of use only until a run has ended, and let go of it. Raises nothing."""
        files.remove(self.bell_file)
        files.remove(os.path.join(self.run_dir, paths.ENVIRONMENT))
        self.inbox.close()
        self.inbox.discard()
        self.vouch(False)

    def _late(self) -> tuple[Undelivered, ...]:
        """Let nothing more into the inbox; return the messages that never reached its host."""
        self.unsent.update((entry.id, entry) for entry in self.inbox.close())
        late = [(entry, "the run ended before it reached its host") for entry in self.unsent.values()]
        return tuple(
            Undelivered(id=entry.id, text=one_line(entry.text, BEGINNING), by=entry.by, reason=one_line(why, 200))
            for entry, why in (*self._refused.values(), *late)
            if entry.kind == EntryKind.MESSAGE
        )

    def _settle_files(self) -> None:
        """Put all that was mirrored on the disk, and what came at the end in its place."""
        for name in self._sizes:
            path = os.path.join(self.run_dir, name if name in GROWING else f"{INCOMING}{name}")
            try:
                descriptor = files.open_file(path, os.O_RDONLY)
            except FileNotFoundError:
                continue
            try:
                os.fsync(descriptor)
            finally:
                os.close(descriptor)
            if name not in GROWING:
                files.rename(path, os.path.join(self.run_dir, name))
        files.settle_names(self.run_dir)


def decode_result(run_id: str, content: bytes) -> RunResult:
    """Read how a host says that a run ended. Raises Misfit where it says no end."""
    try:
        result = decode(content, RunResult)
    except UNDECODABLE as error:
        raise Misfit(f"cannot read the reported result: {why(error)}") from error
    if result.status is not STATUS_OF.get(result.reason):
        raise Misfit("the reported result is invalid")
    by = result.written_by if result.written_by in THERE else THERE[0]  # never an operator, or a relay
    # Where the agent keeps a conversation on its host is no path of this machine.
    return replace(result, run_id=run_id, written_by=by, conversation=None)


def _cap(name: str, caps: LogCaps) -> int:
    """Return how many bytes of a file are taken."""
    of_logs = {
        paths.STDOUT: caps.stdout,
        paths.STDERR: caps.stderr,
        paths.EVENTS: caps.events,
        paths.TRANSCRIPT: caps.transcript,
    }
    return min(of_logs[name] + _BEYOND if name in of_logs else _OTHER_CAP, MOST_BYTES)


ALL_OF_IT = Have(dict.fromkeys((*GROWING, *AT_END), MOST_BYTES))
"""Says of a run whose files nobody wants any more that they are here."""
