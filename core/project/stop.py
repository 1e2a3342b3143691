"""Ask a run to end: a request in a file first, then a signal that cannot hit a stranger."""

from __future__ import annotations

import signal

from .. import paths
from ..errors import SubdeckError
from ..run import artifacts
from ..run.model import StopReason, StopRequest, newer_schema
from ..run.snapshot import RunSnapshot
from ..system import processes
from .liveness import is_here


def ask_to_stop(project: paths.Project, run: RunSnapshot, *, force: bool, by: str, reason: StopReason) -> None:
    """Write `stop.json` and signal the wrapper; one that has not come up yet finds the request when it does.

    A request is never made weaker by a later one. Raises SubdeckError for a run that another machine or boot holds.
    """
    if run.newer_schema:
        raise SubdeckError(
            f"run {run.meta.short_id} was {newer_schema(run.newer_schema)}",
            where=run.run_id,
            hint="stop it with the subdeck that launched it",
        )
    if run.elsewhere:
        raise SubdeckError(
            f"run {run.meta.short_id} is held by another machine, boot or pid namespace",
            where=run.run_id,
            hint="stop it where it was started; subdeck rm takes it away here",
        )
    run_dir = project.run_dir(run.run_id)
    earlier = artifacts.read_stop(run_dir)
    if earlier is None or (force and not earlier.force):
        request = StopRequest(by=by, force=force, at=paths.now_iso(), reason=reason)
        try:
            artifacts.write_stop(run_dir, request)
        except OSError as error:
            raise SubdeckError(f"the request to stop could not be written: {error.strerror}", where=run_dir) from error
    facts = artifacts.read_runner(run_dir)
    if facts is not None and is_here(facts):
        processes.send(facts.pid, signal.SIGTERM, facts.pid_started)
