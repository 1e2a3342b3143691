"""Abandon a run on an unreachable host: its user writes the result, and a later result from the host is stored beside
it.
"""

from __future__ import annotations

import os

from msgspec.structs import replace

from .. import paths
from ..errors import RunBusy, SubdeckError
from ..run import artifacts
from ..run.artifacts import GIVEN_UP_BY
from ..run.describe import OUT_OF_REACH, whereabouts
from ..run.events import EventTail
from ..run.fold import Fold
from ..run.model import STATUS_OF, RunReason, RunResult
from ..run.placement import Permit, give_permit
from ..run.snapshot import RunSnapshot
from ..system import files
from .ownership import check_own, ring


def refused(run: RunSnapshot) -> SubdeckError | None:
    """Return why a run cannot be abandoned; None if it can."""
    name, stop = f"run {run.meta.short_id}", f"subdeck stop {run.meta.short_id} stops it"
    if run.has_ended:
        return RunBusy(f"{name} has already ended ({run.reason})", where=run.run_id)
    if not run.is_remote:
        return SubdeckError(
            f"{name} is not on a host: only runs on unreachable hosts can be abandoned", where=run.run_id, hint=stop
        )
    if run.is_left_alone or run.unwritable:
        return SubdeckError(f"{name} cannot be abandoned here: {run.unwritable or OUT_OF_REACH}", where=run.run_id)
    if not run.elsewhere and run.place is not None and not run.place.is_waiting:
        return RunBusy(f"{name} is reachable, on {run.host}", where=run.run_id, hint=stop, brief_hint="stop it")
    return None


def not_heard(run: RunSnapshot) -> RunBusy:
    """Return why a run on an unreachable host cannot be deleted."""
    return RunBusy(
        f"run {run.meta.short_id} may still be running on {run.host or 'its host'}, which is unreachable",
        where=run.run_id,
        hint=f"subdeck hosts give-up {run.meta.short_id} abandons it",
        brief_hint="abandon it first",
    )


def give_up(project: paths.Project, run: RunSnapshot) -> None:
    """Write the result of a run that its user declares lost. Raises SubdeckError if it is reachable, or has ended.

    A run without a host never gets one, and ends as stopped.
    """
    check_own(project, run.run_id)
    if refusal := refused(run):
        raise refusal
    run_dir = project.run_dir(run.run_id)
    try:
        permit = give_permit(run_dir, Permit(spool="", host="", at=paths.now_iso()))
        is_placed = bool(permit.spool or not permit.at)
        reason = RunReason.LOST if is_placed else RunReason.STOPPED
        where = whereabouts(replace(run, elsewhere=True, stop_waits=False))
        message = f"abandoned; {where}, may still be running" if is_placed else "abandoned before it was sent to a host"
        if not artifacts.write_result(run_dir, _result(run, run_dir, reason, message)):
            raise RunBusy(f"run {run.meta.short_id} has just finished", where=run.run_id)
    except OSError as error:
        what = f"cannot abandon run {run.meta.short_id}: {error.strerror}"
        raise SubdeckError(what, where=run_dir, hint="check disk space and permissions") from error
    files.remove(os.path.join(project.active, run.run_id))
    files.remove(os.path.join(run_dir, paths.ENVIRONMENT))
    ring(project)


def _result(run: RunSnapshot, run_dir: str, reason: RunReason, message: str) -> RunResult:
    """Build a result from a run's records, without adding to them: its host may still do so."""
    fold = Fold()
    for event in EventTail(os.path.join(run_dir, paths.EVENTS)).read():
        fold.apply(event)
    return RunResult(
        run_id=run.run_id,
        status=STATUS_OF[reason],
        reason=reason,
        written_by=GIVEN_UP_BY,
        error_message=message,
        final_text=fold.final_text,
        partial=fold.partial,
        attempts=fold.attempt,
        resolved_model=fold.model or run.meta.resolved_model,
        child_session_id=run.child_session_id,
        usage=fold.usage,
        started_at=fold.started_at,
        ended_at=paths.now_iso(),
    )
