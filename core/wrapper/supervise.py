"""Supervise one child from its start to its result; whatever happens on the way, there is a result."""

from __future__ import annotations

import os

import msgspec

from .. import paths
from ..run import artifacts
from ..run.events import RunEnded
from ..run.model import RunReason, RunResult, RunStatus
from ..text.plain import plain
from .pane import header, pane
from .records import ActivityFile, Records
from .signals import Signals
from .tries import Tries


def supervise(run_dir: str, activity_file: str, signals: Signals, events_written: int) -> None:
    """Run the child of `run_dir` and write its result.

    `signals` has what already came while waiting, `events_written` counts the events written meanwhile.
    """
    meta = artifacts.read_meta(run_dir)
    if meta is None or meta.is_newer:
        artifacts.write_result(run_dir, _unreadable(run_dir))
        ActivityFile(activity_file).remove()
        return
    caps = (meta.log_caps.stdout, meta.log_caps.stderr)
    records = Records(run_dir, activity_file, caps=caps, written=events_written, show=pane())
    try:
        artifacts.reserve_result(run_dir)
    except OSError as error:
        records.troubles.add(paths.RESULT, error)
    records.transcript(header(meta))
    conclude(run_dir, records, Tries(meta, run_dir, records, signals).run())


def conclude(run_dir: str, records: Records, result: RunResult) -> None:
    """Write the end of a run into all its records, the result last but for the activity file."""
    records.event(RunEnded(status=result.status, reason=result.reason))
    if result.error_message:
        records.transcript(plain(result.error_message))
    records.close()
    artifacts.write_result(run_dir, msgspec.structs.replace(result, artifact_errors=records.troubles.all))
    records.activity.remove()


def _unreadable(run_dir: str) -> RunResult:
    return RunResult(
        run_id=os.path.basename(run_dir),
        status=RunStatus.FAILED,
        reason=RunReason.START_FAILED,
        written_by="wrapper",
        error_message=f"{paths.META} is missing or broken; nothing was started",
        ended_at=paths.now_iso(),
    )
