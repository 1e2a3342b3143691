"""Snapshots of all known runs: finished ones are read once, open ones as they grow.

Modules for open runs are loaded with the first of them: a list of finished runs reads no events and proves nothing.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING

from msgspec.structs import replace

from .. import paths
from ..errors import SubdeckError, UnknownRun
from ..run import artifacts, second_copy
from ..run.model import SCHEMA_VERSION, RunMeta, RunnerKind, RunReason, RunResult, RunStatus
from ..run.proven import has_result
from ..run.signature import Verifier
from ..run.snapshot import Counts, Ended, Queued, RunSnapshot, ends_with_question
from ..system import files
from ..system.directory import Directory, opened
from ..text.plain import one_line
from .ownership import check_own, ring
from .queue import moved, read_state, write_order

if TYPE_CHECKING:
    from ..run.open_run import OpenRun
    from ..run.placement import Place
    from .liveness import WrapperWatch

MESSAGE_LENGTH = 300
"""Characters of the line that describes how a run ended."""
_OUT_OF_REACH = "unreachable"
"""The tally key of runs on unreachable hosts, which are also counted by their status."""


class Registry:
    """All runs of a project, or some of them, as of the last `look`."""

    def __init__(
        self, project: paths.Project, *, by: str | None, only: Iterable[str] | None = None, looks_again: bool = False
    ) -> None:
        """`by` signs the results of lost runs found here; with None nothing is written.

        `looks_again` watches wrappers, and hardly waits for another process that is about to finish a lost run.
        """
        self._project = project
        self._by = by
        self._looks_again = looks_again
        self._wrappers: WrapperWatch | None = None
        """With `looks_again`, from the first open run on."""
        self._only = None if only is None else frozenset(only)
        self._snapshots: dict[str, RunSnapshot] = {}
        self._open: dict[str, OpenRun] = {}
        self._versions: dict[str, artifacts.Version] = {}
        """Of the finished runs read from their files."""
        self._unchecked: list[str] = []
        """Runs whose versions are still to compare in this round."""
        self._altered: dict[str, artifacts.Version] = {}
        """Runs whose directories have changed since they were read, with their new versions."""
        self._siblings: dict[str, OpenRun | None] = {}
        """Other runs that may be ahead in a queue; None once they are not."""
        self._numbered: object = None
        """The input of the last numbering of queued runs; None if the snapshot of one of them is outdated."""
        self._lost_on_hosts: set[str] = set()
        """Abandoned runs whose hosts may still report another result."""
        self._changed: set[str] = set()
        self._verifier = Verifier()
        """Of the current `look`."""
        self._tally: Counter[RunStatus | str | None] = Counter()
        self._background_tally: Counter[RunStatus | str | None] = Counter()

    @property
    def counts(self) -> Counts:
        return _counts(self._tally)

    @property
    def background(self) -> Counts:
        """The counts of background runs only."""
        return _counts(self._background_tally)

    @property
    def open_ids(self) -> tuple[str, ...]:
        return tuple(self._open)

    @property
    def grown_ids(self) -> set[str]:
        """The open runs whose events have grown since the last `look`."""
        return {run_id for run_id, run in self._open.items() if run.has_grown()}

    @property
    def lost_on_hosts(self) -> frozenset[str]:
        """Abandoned runs whose hosts have not reported a result yet; a `look` checks for it."""
        return frozenset(self._lost_on_hosts)

    @property
    def unwatched_ids(self) -> set[str]:
        """The open runs whose wrapper is not known to be alive, nor the relay that vouches for them."""
        unwatched = {run_id for run_id in self._open if self._wrappers is None or run_id not in self._wrappers}
        placed = {run_id for run_id in unwatched if self._open[run_id].is_well_placed}
        if not placed:
            return unwatched
        from ..runners.hosts import has_relay

        return unwatched - placed if has_relay(self._project) else unwatched

    def take_dead_ids(self) -> set[str]:
        """Return the open runs whose wrappers have died since the last call."""
        return self._wrappers.take_dead() if self._wrappers else set()

    def __contains__(self, run_id: str) -> bool:
        return run_id in self._snapshots

    def get(self, run_id: str) -> RunSnapshot | None:
        return self._snapshots.get(run_id)

    def snapshots(self) -> tuple[RunSnapshot, ...]:
        """Return the snapshots, newest first: an id has the second, `createdAt` the rest."""
        return tuple(sorted(self._snapshots.values(), key=_age, reverse=True))

    def names(self) -> list[str]:
        """Return the ids of the runs on disk, newest first."""
        copied = self._named(second_copy.run_ids(self._project.runs))  # also those whose directories are missing
        return sorted({*self._listed(self._project.runs), *copied}, reverse=True)

    def active_names(self) -> list[str]:
        """Return the ids of unfinished runs with an activity file; an activity file without such a run is removed."""
        named = self._listed(self._project.active)
        unfinished = [name for name in named if name in self._open or _is_unfinished(self._project.run_dir(name))]
        for stale in set(named).difference(unfinished) if self._by is not None else ():
            files.remove(f"{self._project.active}/{stale}")
        return unfinished

    def look(self, run_ids: Iterable[str], *, prove: bool = False) -> set[str]:
        """Read new data of these runs; return the ids whose snapshot changed or is gone.

        `prove` also proves whether the open ones are alive, and finishes lost ones.
        """
        self._changed = set()
        self._verifier = Verifier()
        with _if_there(self._project.runs) as runs:
            for run_id in set(run_ids):
                if self._only is None or run_id in self._only:
                    self._look_at(run_id, prove, runs)
        self._number_queue()
        return self._changed

    def look_at_finished(self, most: int) -> set[str]:
        """Compare the directories of the next `most` finished runs with the last read; return the same as `look`.

        A changed one is read at the next call, so that a run being removed by hand does not get a new result.
        """
        for run_id in self._altered:
            self._versions.pop(run_id, None)
        changed = self.look(self._altered) if self._altered else set[str]()
        for run_id, version in self._altered.items():
            self._versions.setdefault(run_id, version)  # also if it is unreadable: until it changes again
        if not self._unchecked:
            self._unchecked = [run_id for run_id in self._snapshots if run_id not in self._open]
        checked, self._unchecked = self._unchecked[:most], self._unchecked[most:]
        with _if_there(self._project.runs) as runs:
            now = {run_id: _version(runs, run_id) for run_id in checked if runs and run_id in self._snapshots}
        self._altered = {
            run_id: version
            for run_id, version in now.items()
            if run_id not in self._open and version != self._versions.get(run_id)
        }
        return changed

    def forget_missing(self, names: Iterable[str]) -> set[str]:
        """Drop the runs that are not among `names`; return their ids."""
        gone = self._snapshots.keys() - set(names)
        for run_id in gone:
            self._tally_up(self._snapshots.pop(run_id), -1)
            self._lost_on_hosts.discard(run_id)
            self._versions.pop(run_id, None)
            self._close(run_id)
        return gone

    def _look_at(self, run_id: str, prove: bool, runs: Directory | None) -> None:
        run = self._open.get(run_id)
        if run is None:
            snapshot = self._snapshots.get(run_id)
            is_settled = snapshot is not None and not snapshot.foreign and run_id not in self._lost_on_hosts
            if is_settled and run_id in self._versions:
                return  # it has ended; an untrusted one may have been trusted since
            finished = self._finished(runs, run_id)
            if finished is not None:
                meta, result, is_own, self._versions[run_id] = finished
                self._finish(meta, result, is_own)
            else:
                self._prove(run_id, None)
            return
        if prove or run.has_moved():
            self._prove(run_id, run)
        elif run.drain():
            self._show(run)
        if run.may_have_ended and (result := artifacts.read_result(self._project.run_dir(run_id))):
            self._finish(run.meta, result, not run.is_foreign)

    def _prove(self, run_id: str, run: OpenRun | None) -> None:
        """Check a run that had no result a moment ago, with proof of life."""
        from ..run.open_run import OpenRun
        from ..runners.hosts import see_to_relay
        from .liveness import FINISHING_S, GLANCE_S, Proof, WrapperWatch, reconcile

        run_dir = self._project.run_dir(run_id)
        proof = reconcile(self._project, run_id, by=self._by, patience=GLANCE_S if self._looks_again else FINISHING_S)
        if proof is Proof.GONE:
            self._changed |= self.forget_missing(self._snapshots.keys() - {run_id})
            return
        unreadable = ""
        result = None
        meta, is_own = (run.meta, not run.is_foreign) if run else (artifacts.unreadable_meta(run_dir), True)
        try:
            if run is None or run.is_foreign or run.is_elsewhere:
                meta, is_own = self._read_meta(run_dir)
            if run:
                run.meta = _without_prompt(meta)
            if proof is Proof.FINISHED:
                result = artifacts.read_result(run_dir, certain=True)
        except OSError as error:  # it may pass; the run is read again later
            proof, unreadable = Proof.UNKNOWN, f"cannot read it: {error.strerror}"
        if proof is Proof.FINISHED and result is None and not os.path.isdir(run_dir):
            self._changed |= self.forget_missing(self._snapshots.keys() - {run_id})
            return
        if proof is Proof.FINISHED:
            self._finish(meta, result or artifacts.unreadable_result(run_dir), is_own)
            return
        is_new = run is None
        run = run or self._open.setdefault(run_id, OpenRun(self._project, _without_prompt(meta)))
        if self._looks_again and proof is Proof.ALIVE:
            self._wrappers = self._wrappers or WrapperWatch()
            self._wrappers.add(run_id, run_dir)
        before = (run.is_elsewhere, run.is_foreign, run.unwritable, run.stop_waits)
        run.is_elsewhere, run.is_foreign = proof is Proof.UNKNOWN, proof is Proof.FOREIGN
        run.unwritable = unreadable or (files.unwritable(run_dir) if run.is_elsewhere else "")
        if run.is_remote:
            run.is_vouched_for = proof is Proof.ALIVE
            if self._looks_again and self._by is not None and proof is Proof.UNKNOWN:
                see_to_relay(self._project)  # the relay does not vouch for it: perhaps none is running
            _settle_remote(run, run_dir)
        if run.drain() or is_new or (run.is_elsewhere, run.is_foreign, run.unwritable, run.stop_waits) != before:
            self._show(run)

    def _finished(
        self, runs: Directory | None, run_id: str
    ) -> tuple[RunMeta, RunResult, bool, artifacts.Version] | None:
        """Read a run with a readable result; None for any other."""
        if runs is None:
            return None
        try:
            return artifacts.read_finished(runs, run_id, self._verifier)
        except OSError:
            return None

    def _read_meta(self, run_dir: str) -> tuple[RunMeta, bool]:
        """Read `meta.json`, and whether the run is this user's. Raises OSError if that is unknown."""
        meta, is_own = artifacts.read_owned_meta(run_dir, self._verifier, certain=True)
        return meta or artifacts.unreadable_meta(run_dir), is_own

    def _show(self, run: OpenRun) -> None:
        """Publish the snapshot of an open run; of a queued one when all are numbered."""
        if run.stands_in_queue:
            self._numbered = None
        else:
            self._put(run.snapshot())

    def _finish(self, meta: RunMeta, result: RunResult, is_own: bool) -> None:
        self._close(meta.run_id)
        place, late = None, None
        if meta.runner is RunnerKind.HOSTS:
            place, late = _of_host(self._project.run_dir(meta.run_id), result)
            is_given_up = result.reason is RunReason.LOST and result.written_by == artifacts.GIVEN_UP_BY
            is_open = is_given_up and late is None
            (self._lost_on_hosts.add if is_open else self._lost_on_hosts.discard)(meta.run_id)
        self._put(finished_snapshot(_without_prompt(meta), result, foreign=not is_own, place=place, late=late))

    def _close(self, run_id: str) -> None:
        if self._open:
            self._open.pop(run_id, None)
        if self._wrappers is not None:
            self._wrappers.forget(run_id)

    def _put(self, snapshot: RunSnapshot) -> None:
        run_id = snapshot.meta.run_id
        former = self._snapshots.get(run_id)
        if former is not None:
            if former == snapshot:
                return
            self._tally_up(former, -1)
        self._tally_up(snapshot, +1)
        self._snapshots[run_id] = snapshot
        self._changed.add(run_id)

    def _tally_up(self, snapshot: RunSnapshot, step: int) -> None:
        is_background = snapshot.meta.background
        _add(snapshot, step, *((self._tally, self._background_tally) if is_background else (self._tally,)))

    def _number_queue(self) -> None:
        """Set for each queued run how many are ahead: in its group, or in the project if that has a limit; for a run
        that waits for a host, among all such runs.
        """
        ours = [run for run in self._open.values() if run.stands_in_queue]
        if not ours:
            return
        state = read_state(self._project.slots)
        queued = [*ours, *self._queued_siblings()]
        by = (state.order, state.held, [(run.meta, run.is_passed_over) for run in queued])
        if by == self._numbered:
            return
        self._numbered = by
        positions = {run_id: number for number, run_id in enumerate(state.order)}
        lines: Counter[str] = Counter()
        for run in sorted(queued, key=lambda run: _queue_key(run.meta, positions)):
            line = queue_line(run.meta)
            if run.meta.run_id in self._open:
                self._put(run.snapshot(lines[line] if line else 0, held=state.held))
            lines[line] += not run.is_passed_over

    def queued(self) -> list[RunMeta]:
        """Return the waiting runs in order, as of the last `look`."""
        positions = {run_id: number for number, run_id in enumerate(read_state(self._project.slots).order)}
        waiting = [run.meta for run in self._open.values() if run.stands_in_queue]
        return sorted(waiting, key=lambda meta: _queue_key(meta, positions))

    def _queued_siblings(self) -> list[OpenRun]:
        """Return queued runs outside `only`: they count as ahead of the runs in it."""
        if self._only is None:
            return []
        from ..run.open_run import OpenRun

        for run_id in artifacts.run_ids(self._project.active):
            if run_id not in self._only and run_id not in self._siblings:
                meta, is_own = artifacts.read_owned_meta(self._project.run_dir(run_id), self._verifier)
                self._siblings[run_id] = OpenRun(self._project, meta) if meta and is_own else None
        for run_id, sibling in self._siblings.items():
            if sibling is not None:
                sibling.drain()
                if not sibling.stands_in_queue or not _is_unfinished(self._project.run_dir(run_id)):
                    self._siblings[run_id] = None
        return [sibling for sibling in self._siblings.values() if sibling]

    def _listed(self, directory: str) -> list[str]:
        return self._named(artifacts.run_ids(directory))

    def _named(self, names: list[str]) -> list[str]:
        return [name for name in names if self._only is None or name in self._only]


def _version(runs: Directory, run_id: str) -> artifacts.Version:
    try:
        return artifacts.version_of(runs.status(run_id))
    except OSError:
        return artifacts.NO_VERSION


def _age(run: RunSnapshot) -> tuple[str, str, str]:
    meta = run.meta
    return (meta.run_id[:15], meta.created_at, meta.run_id)


def _settle_remote(run: OpenRun, run_dir: str) -> None:
    """Set whether an open remote run is unreachable, and whether a stop request waits for its host.

    A run without a permit has not started anywhere.
    """
    from ..run.placement import has_permit

    if run.is_elsewhere and not run.unwritable and not has_permit(run_dir):
        run.is_elsewhere = False
    run.stop_waits = run.is_elsewhere and os.path.lexists(f"{run_dir}/{paths.STOP}")


def _of_host(run_dir: str, result: RunResult) -> tuple[Place | None, RunStatus | None]:
    """Return where a remote run was, and the status that its host reported after it had been abandoned."""
    from ..run.placement import read_place

    late = artifacts.read_late_result(run_dir) if result.reason is RunReason.LOST else None
    return read_place(run_dir), late and late.status


def finished_snapshot(
    meta: RunMeta,
    result: RunResult,
    *,
    foreign: bool = False,
    place: Place | None = None,
    late: RunStatus | None = None,
) -> RunSnapshot:
    """Make the snapshot of a finished run from its two files only, without its events. `place` and `late` are for a
    remote run.
    """
    message = result.error_message or result.final_text or ""
    newest = max(meta.schema_version, result.schema_version)
    return RunSnapshot(
        meta=meta,
        foreign=foreign,
        newer_schema=newest if newest > SCHEMA_VERSION else None,
        state=Ended(
            reason=result.reason,
            message=one_line(message, MESSAGE_LENGTH),
            partial=result.partial,
            attempt=result.attempts,
            started_at=result.started_at,
            ended_at=result.ended_at,
            duration_ms=result.duration_ms,
            not_ended=result.not_ended,
            asks=result.status is RunStatus.COMPLETED and ends_with_question(result.final_text or ""),
            changes=result.changes,
            check=result.check,
            branch=result.branch,
            late=late,
        ),
        place=place,
        told_session=result.child_session_id,
        usage=result.usage,
        last_event_at=result.ended_at,
        warnings=(*meta.all_warnings, *result.tampered),
    )


def _without_prompt(meta: RunMeta) -> RunMeta:
    """Drop the system prompt, which no list needs."""
    return meta if meta.system_prompt is None else replace(meta, system_prompt=None)


def _if_there(path: str) -> AbstractContextManager[Directory | None]:
    """Hold a directory open, so that each step into it starts there; None if it cannot be opened."""
    try:
        return opened(path)
    except OSError:
        return nullcontext()


def count(snapshots: Iterable[RunSnapshot]) -> Counts:
    """Count runs by their status, without untrusted ones."""
    tally: Counter[RunStatus | str | None] = Counter()
    for snapshot in snapshots:
        _add(snapshot, +1, tally)
    return _counts(tally)


def _add(snapshot: RunSnapshot, step: int, *tallies: Counter[RunStatus | str | None]) -> None:
    """Count a run under its status, also under None if it waits for the user, and under `_OUT_OF_REACH` if it is
    unreachable; an untrusted run is not counted.
    """
    if snapshot.foreign:
        return
    status = snapshot.status
    is_waiting = status is RunStatus.RUNNING and snapshot.is_waiting
    is_out_of_reach = snapshot.elsewhere and snapshot.is_out_of_reach
    for tally in tallies:
        tally[status] += step
        if is_waiting:
            tally[None] += step
        if is_out_of_reach:
            tally[_OUT_OF_REACH] += step


def _counts(tally: Counter[RunStatus | str | None]) -> Counts:
    queued = tally[RunStatus.QUEUED]
    return Counts(
        running=tally[RunStatus.RUNNING] + queued,
        completed=tally[RunStatus.COMPLETED],
        failed=tally[RunStatus.FAILED],
        aborted=tally[RunStatus.ABORTED],
        total=tally.total() - tally[None] - tally[_OUT_OF_REACH],
        queued=queued,
        waiting=tally[None],
        out_of_reach=tally[_OUT_OF_REACH],
    )


def queue_line(meta: RunMeta) -> str:
    """Return the name of a run's queue; empty for a run that waits for no other run."""
    if meta.runner is RunnerKind.HOSTS:
        return "hosts"
    if meta.max_running is not None:
        return "project"
    return meta.group.id if meta.group else ""


def _is_unfinished(run_dir: str) -> bool:
    return (os.path.isdir(run_dir) or second_copy.exists(run_dir)) and not has_result(run_dir)


def _queue_key(meta: RunMeta, positions: Mapping[str, int]) -> tuple[int, str, int, str]:
    """Sort by the user's order; other runs follow in the order of their launch."""
    position = positions.get(meta.run_id, len(positions))
    return (position, meta.created_at, meta.group.index if meta.group else 0, meta.run_id)


# --- moving queued runs ----------------------------------------------------------------------------------------------


def move(project: paths.Project, registry: Registry, run_id: str, step: int) -> int:
    """Move a queued run before the one ahead of it (-1), or after the next one (1); return how many are ahead.

    Raises SubdeckError for a run that is untrusted, or not in the queue.
    """
    check_own(project, run_id)
    registry.look(registry.active_names(), prove=True)
    waiting = [(meta.run_id, queue_line(meta)) for meta in registry.queued()]
    line = dict(waiting).get(run_id)
    if not line:
        if line is not None and read_state(project.slots).held:
            what = f"run {run_id[-6:]} cannot be moved: it starts as soon as the queue is resumed"
            raise SubdeckError(what, where=run_id, hint="subdeck queue --release")
        raise SubdeckError(f"run {run_id[-6:]} is not waiting in the queue", where=run_id)
    write_order(project.slots, moved(waiting, run_id, step))
    ring(project)
    registry.look(())
    run = registry.get(run_id)
    return run.state.ahead if run and isinstance(run.state, Queued) else 0


# --- references to runs ----------------------------------------------------------------------------------------------


def run_id_of(word: str, names: Sequence[str], trash: Callable[[], Sequence[str]] | None) -> str:
    """Return the id that a word stands for. Raises UnknownRun.

    `trash` returns the ids of deleted runs, for a hint; None if `names` are those.
    """
    matching = _matching(word, names)
    exact = [name for name in matching if word in (name, name[-6:])]
    candidates = exact or matching
    if len(candidates) == 1:
        return candidates[0]
    shown = one_line(word, 40)
    if not candidates:
        if trash is not None and len(gone := _matching(word, trash())) == 1:
            what, hint = f"run {gone[0][-6:]} was deleted", f"subdeck rm --undo {gone[0][-6:]} restores it"
            raise UnknownRun(what, where=gone[0], hint=hint, code="run.deleted")
        raise UnknownRun(f'no run matches "{shown}"', where="run", hint="subdeck status --all lists all runs")
    some = ", ".join(name[-6:] for name in candidates[:5])
    what = f'{len(candidates)} runs match "{shown}"'
    raise UnknownRun(what, where="run", hint=f"use a longer id: {some} …", code="run.ambiguous")


def _matching(word: str, names: Iterable[str]) -> list[str]:
    return [name for name in names if word and (name.startswith(word) or name[-6:].startswith(word))]
