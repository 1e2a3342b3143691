"""The open runs of a relay, each with its permit, its lock, and its mirrored files."""

from __future__ import annotations

import os
import stat
import time
from collections import defaultdict
from collections.abc import Collection, KeysView, Mapping

import msgspec
from msgspec.structs import replace

from ... import paths
from ...budget.ledger import RunBook
from ...run import artifacts
from ...run.artifacts import GIVEN_UP_BY, RunnerFacts
from ...run.events import EventTail, UsageReported
from ...run.inbox import BEGINNING, EntryKind, Inbox, InboxEntry
from ...run.model import STATUS_OF, LogCaps, RunMeta, RunnerKind, RunReason, RunResult, Undelivered
from ...run.outcome import stopped
from ...run.placement import Permit, Place, give_permit, read_permit, read_place, write_place
from ...run.proven import has_result
from ...run.signature import Verifier
from ...system import files
from ...system.directory import opened
from ...text.decoder import UNDECODABLE, decode, why
from ...text.plain import one_line
from .._mirror import AT_END, GROWING, MOST_BYTES, is_mirrored
from ..protocol import Chunk, Have
from .alerts import RemoteAlerts
from .journal import Journal

SWEEP_S = 60.0
"""Seconds between checks of all runs of the project: a run may have lost its record in `active/`, or its directory may
have changed without a new modification time.
"""
COARSE_S = 0.1
"""Most by which a directory's modification time is rounded: later changes have another time."""
LEDGER_S = 10.0
"""Least seconds between ledger lines of a run, except for its last."""
RELAY = "relay"
"""Writer of results that no host has reported."""
WRITERS_THERE = ("host", "wrapper")
"""Writers of results on a host."""
INCOMING = ".incoming-"
"""Prefix of files sent at the end until they are complete, because an older file may have the name."""
_BEYOND = 8 * 1024 * 1024
"""Bytes by which a log may exceed its cap, for the lines that end a run."""
_OTHER_CAP = 256 * 1024 * 1024
"""Most bytes of a file sent at the end, and of all later prompts together."""
ALL_OF_IT = Have(dict.fromkeys((*GROWING, *AT_END), MOST_BYTES))
"""Reports all files of a run as mirrored, for runs whose files are not needed."""


class InvalidContent(Exception):
    """A host sent content that no run can have."""


class RemoteRun:
    """A run on a host. Every method that touches the disk raises OSError, unless its docstring says otherwise."""

    def __init__(self, project: paths.Project, run_id: str, meta: RunMeta) -> None:
        self.id = run_id
        self.meta = replace(meta, system_prompt=None, task="")
        self.run_dir = project.run_dir(run_id)
        self.bell_file = os.path.join(project.active, run_id)
        self.permit: Permit | None = None
        self.last_seen: float | None = None
        """When its host last reported it, by `time.monotonic`; None if never."""
        self.last_seen_at = ""
        self.problem = ""
        """Text for a person; empty for none."""
        self.place: Place | None = read_place(self.run_dir)
        self.why_put_off = ""
        """Why its host could not start it yet; the host is asked again."""
        self.may_have_begun = True
        """Whether a start command may have reached its host since the last report."""
        self.is_abandoned = False
        """Whether the user abandoned it: it has a result, and only the host's result is missing."""
        self.is_ending = False
        """Whether its last files are being written."""
        self.stop_request = b""
        """The stop request in its directory, encoded; empty without one."""
        self.stop_sent = b""
        """The stop request that its host has received."""
        self.inbox = Inbox(self.run_dir)
        self.unsent: dict[str, InboxEntry] = {}
        """Messages and replies not yet sent to its host, by id, in order."""
        self._refused: dict[str, tuple[InboxEntry, str]] = {}
        """Entries that its host rejected, and why; they stay in the inbox until the run finishes."""
        self._ledger = _LedgerWriter(project, meta)
        self._alerts = RemoteAlerts(project, meta)
        self._lock: int | None = None
        self._bell = b""
        self._was_started = self._is_named = self._has_luggage = False
        self._sizes: dict[str, int] = {}
        self._cut: set[str] = set()
        """Files that are too long; the rest of them is rejected."""

    def open(self) -> None:
        """Read its permit and the sizes of its mirrored files."""
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

    def refresh(self) -> None:
        """Read its stop request, new messages and permit."""
        if self.permit is None:
            self.permit = read_permit(self.run_dir)  # writing it may have failed after the file was created
        request = artifacts.read_stop(self.run_dir, certain=True)
        self.stop_request = msgspec.json.encode(request) if request else b""
        self.unsent.update((entry.id, entry) for entry in self.inbox.take())

    def note_contact(self) -> None:
        """Note that its host has just reported it."""
        self.last_seen, self.last_seen_at, self.problem = time.monotonic(), paths.now_iso(), self.why_put_off

    @property
    def age(self) -> tuple[str, int, str]:
        """Sort key: launch order."""
        return (self.meta.created_at, self.meta.group.index if self.meta.group else 0, self.id)

    @property
    def is_cancelled(self) -> bool:
        """Whether its permit rules out every start; an unreadable permit does not."""
        return self.permit is not None and not self.permit.spool and bool(self.permit.at)

    @property
    def spool(self) -> str:
        """The spool that it may start in; empty without a permit or if cancelled."""
        return self.permit.spool if self.permit else ""

    @property
    def was_started(self) -> bool:
        """Whether its host has ever reported it as started, when the launcher's start files are removed.

        The host is never asked again, because it would start the run a second time.
        """
        return self._was_started

    def put_off(self, why: str) -> None:
        """Note that its host has declined to start it now and may be asked again."""
        self.why_put_off, self.may_have_begun = why, False
        self.note_contact()

    @property
    def is_put_off_for_good(self) -> bool:
        """Whether it has a stop request and has certainly not begun."""
        return bool(self.stop_request and self.why_put_off) and not self.may_have_begun

    def note_started(self) -> None:
        self.why_put_off, self.may_have_begun = "", True
        self._was_started = True
        if self._has_luggage:
            luggage = os.path.join(self.run_dir, paths.ENVIRONMENT)
            files.remove(luggage)
            self._has_luggage = files.is_there(luggage)

    def is_at(self, spool: str, via: str) -> bool:
        """Return whether its permit is for this spool and the host at this address."""
        return bool(spool) and self.spool == spool and self.permit is not None and self.permit.via in ("", via)

    def permit_to(self, spool: str, host: str, via: str = "") -> bool:
        """Permit it to start in this spool only, permanently; return False if it has another permit.

        An empty spool rules out every start.
        """
        if self.permit is None:
            self.permit = give_permit(self.run_dir, Permit(spool, host, paths.now_iso(), via))
        return self.permit.spool == spool

    def hold_lock(self, is_certain: bool) -> None:
        """Hold the run's lock, which proves that it lives, if that is certain; otherwise release it."""
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
                    os.close(lock)  # another process is testing the lock

    def _is_locked_file(self) -> bool:
        """Return whether the held lock is still the run's file."""
        try:
            return self._lock is not None and os.path.samestat(
                os.lstat(os.path.join(self.run_dir, paths.LOCK)), os.fstat(self._lock)
            )
        except OSError:
            return False

    def have(self) -> Have:
        """Return how much of each file is here; a file that is too long counts as complete."""
        return Have(self._sizes | dict.fromkeys(self._cut, MOST_BYTES), self._bell)

    def take(self, chunk: Chunk) -> bool:
        """Append a chunk to a file; return False if it does not follow. Raises InvalidContent if it is not
        acceptable.
        """
        name = chunk.file
        if not is_mirrored(name):
            raise InvalidContent(f"it sent an unexpected file {one_line(name, 64)}")
        size = self._sizes.get(name, 0)
        if chunk.offset != size or name in self._cut:
            return False
        cap = _cap(name, self.meta.log_caps)
        if size + len(chunk.content) > cap or self._later_prompts(name) + len(chunk.content) > cap:
            self._cut.add(name)
            raise InvalidContent(f"its {name} is longer than {cap >> 20} MB")
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
        """Return the total bytes of later attempts' prompts if the file is one; otherwise 0."""
        if name in GROWING or name in AT_END:
            return 0
        return sum(size for file, size in self._sizes.items() if file not in GROWING and file not in AT_END)

    def ring(self, content: bytes | None = None) -> None:
        """Wake the followers of the run; `content` is its record in `active/`."""
        self._bell = self._bell if content is None else content
        if self.is_abandoned:
            return
        descriptor = files.open_private(self.bell_file, os.O_WRONLY)
        try:
            os.ftruncate(descriptor, len(self._bell))
            os.pwrite(descriptor, self._bell, 0)
        finally:
            os.close(descriptor)
        self._alerts.look()

    def report_costs(self) -> None:
        """Write its costs so far to the ledger, if due."""
        self._ledger.update()

    def refuse(self, entry_id: str, why: str) -> None:
        """Note that its host rejects an entry; the result lists it as undelivered."""
        self._refused[entry_id] = (self.unsent.pop(entry_id), why)

    def mark_sent(self, entry_id: str) -> None:
        """Remove an entry that its host has."""
        self.unsent.pop(entry_id, None)
        self.inbox.settle(entry_id)

    def show(self, place: Place) -> bool:
        """Write its place for readers; return whether it has changed."""
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
        """Write the host's name as its runner, so that no process of this machine is expected."""
        if self._is_named or not self.permit or not self.spool:
            return
        facts = RunnerFacts(RunnerKind.HOSTS, self.permit.host, boot_id="", pid_namespace="", pid=1)
        if artifacts.read_runner(self.run_dir) != facts:
            files.write_whole(os.path.join(self.run_dir, paths.RUNNER), msgspec.json.encode(facts))
        self._is_named = True

    def end(self, result: RunResult) -> None:
        """Publish its result once all mirrored files are on disk, and release its lock.

        If the user has abandoned it, even just now, the result is stored beside the existing one.
        """
        self._settle_files()
        self._ledger.settle()
        if not self.is_abandoned and not self._publish(result):
            existing = artifacts.read_result(self.run_dir, certain=True)
            self.is_abandoned = (
                existing is not None and existing.written_by == GIVEN_UP_BY and result.written_by != RELAY
            )
        if self.is_abandoned:
            artifacts.write_late_result(self.run_dir, result)
        else:
            self.clean_up()

    def _publish(self, result: RunResult) -> bool:
        """Write the result; return False if one exists."""
        left_out = tuple(f"{name}: too long, the rest stays on its host" for name in sorted(self._cut))
        result = replace(
            result,
            undelivered=(*result.undelivered, *self._late()),
            artifact_errors=(*result.artifact_errors, *left_out),
        )
        self._alerts.ended(result)
        return artifacts.write_result(self.run_dir, result)

    def cancel(self) -> bool:
        """Publish that it was stopped before it had a host; return False if it has been permitted since."""
        self.permit_to("", "")
        if not self.is_cancelled:
            return False
        self.is_ending = True
        try:
            self.end(self.stopped_result("before it was sent to a host"))
        finally:
            self.is_ending = False
        return True

    def stopped_result(self, when: str) -> RunResult:
        """Return the result of a run that never began, from its stop request."""
        request = artifacts.read_stop(self.run_dir)
        reason, by = stopped(request) if request else (RunReason.STOPPED, "stopped")
        return self.own_result(reason, f"{by} {when}")

    def own_result(self, reason: RunReason, message: str) -> RunResult:
        """Return a result decided by the relay."""
        return artifacts.bare_result(self.id, reason, message, by=RELAY, model=self.meta.resolved_model)

    def clean_up(self) -> None:
        """Remove files that only an unfinished run needs, and release its lock. Raises nothing."""
        files.remove(self.bell_file)
        files.remove(os.path.join(self.run_dir, paths.ENVIRONMENT))
        self.inbox.close()
        self.inbox.discard()
        self.hold_lock(False)

    def _late(self) -> tuple[Undelivered, ...]:
        """Close the inbox; return the messages that never reached its host."""
        self.unsent.update((entry.id, entry) for entry in self.inbox.close())
        late = [(entry, "the run ended before it reached its host") for entry in self.unsent.values()]
        return tuple(
            Undelivered(id=entry.id, text=one_line(entry.text, BEGINNING), by=entry.by, reason=one_line(why, 200))
            for entry, why in (*self._refused.values(), *late)
            if entry.kind == EntryKind.MESSAGE
        )

    def _settle_files(self) -> None:
        """Flush all mirrored files, and rename those sent at the end."""
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
    """Decode the result that a host reports. Raises InvalidContent."""
    try:
        result = decode(content, RunResult)
    except UNDECODABLE as error:
        raise InvalidContent(f"cannot read the reported result: {why(error)}") from error
    if result.status is not STATUS_OF.get(result.reason):
        raise InvalidContent("the reported result is invalid")
    by = result.written_by if result.written_by in WRITERS_THERE else WRITERS_THERE[0]  # never the user or a relay
    # The conversation's path is on its host.
    return replace(result, run_id=run_id, written_by=by, conversation=None)


def _cap(name: str, caps: LogCaps) -> int:
    """Return the most bytes accepted of a file."""
    of_logs = {
        paths.STDOUT: caps.stdout,
        paths.STDERR: caps.stderr,
        paths.EVENTS: caps.events,
        paths.TRANSCRIPT: caps.transcript,
    }
    return min(of_logs[name] + _BEYOND if name in of_logs else _OTHER_CAP, MOST_BYTES)


class _LedgerWriter:
    """Reports the costs of a run to the ledger, from its mirrored events. Both methods raise OSError."""

    def __init__(self, project: paths.Project, meta: RunMeta) -> None:
        self._budget = meta.limits.budget or 0.0
        self._book = RunBook(project.root, meta.run_id, self._budget, meta.created_at)
        self._tail = EventTail(os.path.join(project.run_dir(meta.run_id), paths.EVENTS))
        self._has_spent = self._is_new = False
        self._written_at = 0.0

    def update(self) -> None:
        """Read new events, and write a line if one is due."""
        if time.monotonic() - self._written_at < LEDGER_S:
            return
        self._written_at = time.monotonic()
        self._read()
        if self._is_new:
            self._is_new = False
            self._book.write(is_over=False)

    def settle(self) -> None:
        """Write the final costs; the rest of the reservation is released."""
        self._read()
        if self._has_spent or self._budget:
            self._book.settle()

    def _read(self) -> None:
        for event in self._tail.read():
            if isinstance(event, UsageReported):
                self._book.add(event, event.ts)
                self._has_spent = self._is_new = True


class OpenRuns:
    """The project's open runs, read from its files, and again when their directories change."""

    def __init__(self, project: paths.Project, journal: Journal) -> None:
        self._project = project
        self._journal = journal
        self._open: dict[str, RemoteRun] = {}
        self._at: defaultdict[str, dict[str, RemoteRun]] = defaultdict(dict)
        """Runs with a permit, by its spool."""
        self._not_ours: set[str] = set()
        """Runs that no relay handles."""
        self._seen: dict[str, tuple[int, float | None]] = {}
        """Modification time of a run's directory when last read, and when that time was first seen: None once the
        directory was read so much later that further changes must have another time.
        """
        self._swept = 0.0

    def __contains__(self, run_id: str) -> bool:
        return run_id in self._open

    @property
    def ids(self) -> KeysView[str]:
        return self._open.keys()

    @property
    def all(self) -> Collection[RemoteRun]:
        """All open runs, as a copy."""
        return tuple(self._open.values())

    def get(self, run_id: str) -> RemoteRun | None:
        return self._open.get(run_id)

    def at(self, spool: str, via: str) -> Mapping[str, RemoteRun]:
        """Return the runs with a permit for a spool at that address, as a copy."""
        return {run_id: run for run_id, run in self._at.get(spool, {}).items() if run.is_at(spool, via)}

    @property
    def counts(self) -> Mapping[str, int]:
        """The number of runs by spool."""
        return {spool: len(there) for spool, there in self._at.items()}

    def find_new(self) -> None:
        """Add new runs of the project that use hosts."""
        names = artifacts.run_ids(self._project.active)
        if time.monotonic() - self._swept > SWEEP_S:
            self._swept = time.monotonic()
            self._seen.clear()
            names = [*names, *artifacts.run_ids(self._project.runs)]
        new = [name for name in names if name not in self._open and name not in self._not_ours]
        verifier = Verifier()
        for name in sorted(new):
            try:
                if run := self._opened(name, verifier):
                    self._open[name] = run
                    self.index(run)
            except OSError as error:
                self._journal.note(f"cannot read {name}: {error}")

    def _opened(self, name: str, verifier: Verifier) -> RemoteRun | None:
        """Return a run that the relay is responsible for; None for others. Raises OSError."""
        run_dir = self._project.run_dir(name)
        if has_result(run_dir):
            self._not_ours.add(name)
            return None
        meta, is_own = artifacts.read_owned_meta(run_dir, verifier, certain=True)
        if meta is None or not is_own or not files.exists(f"{run_dir}/{paths.RUNNER}"):
            return None  # its launcher may still be writing it
        if meta.runner != RunnerKind.HOSTS or meta.is_newer:
            self._not_ours.add(name)
            return None
        run = RemoteRun(self._project, name, meta)
        run.open()
        return run

    def refresh(self, run: RemoteRun) -> bool:
        """Refresh a run if its directory has changed; return False if it has finished or was deleted.

        Raises OSError.
        """
        try:
            changed = os.stat(run.run_dir).st_mtime_ns
        except FileNotFoundError:
            return False
        now = time.monotonic()
        seen, since = self._seen.get(run.id, (0, None))
        if changed == seen and since is None:
            return True
        if has_result(run.run_dir):
            return False
        run.refresh()
        self.index(run)
        since = now if since is None or changed != seen else since
        self._seen[run.id] = (changed, None if now - since > COARSE_S else since)
        return True

    def index(self, run: RemoteRun) -> None:
        """File a run under the spool of its permit, if it has one."""
        if run.spool:
            self._at[run.spool][run.id] = run

    def drop(self, run: RemoteRun) -> None:
        """Remove a run that is no longer open."""
        self._open.pop(run.id, None)
        there = self._at.get(run.spool, {})
        there.pop(run.id, None)
        if not there:
            self._at.pop(run.spool, None)
        self._seen.pop(run.id, None)

    def close(self, run_id: str) -> None:
        """Never add this finished run again."""
        self._not_ours.add(run_id)
