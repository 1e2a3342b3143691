"""Supervise one child from its start to its result; whatever happens on the way, there is a result."""

from __future__ import annotations

import os
import time
import traceback

import msgspec

from .. import artifacts, paths
from ..agents.base import AgentProgram, StreamFacts
from ..errors import SubdeckError
from ..events import Notice, RunEnded
from ..outcome import Outcome, StartError, decide
from ..plain import plain
from ..runs import RunMeta, RunReason, RunResult, RunStatus
from .attempt import Attempt
from .pane import header, pane
from .places import Signals
from .records import Bell, Records


def supervise(run_dir: str, doorbell: str, signals: Signals, events_written: int) -> None:
    """Run the child of `run_dir` and write its result.

    `signals` has what already came while waiting, `events_written` counts the events written meanwhile.
    """
    meta = artifacts.read_meta(run_dir)
    if meta is None:
        artifacts.write_result(run_dir, _unreadable(run_dir))
        Bell(doorbell).remove()
        return
    caps = (meta.log_caps.stdout, meta.log_caps.stderr)
    records = Records(run_dir, doorbell, caps=caps, written=events_written, show=pane())
    try:
        artifacts.reserve_result(run_dir)
    except OSError as error:
        records.troubles.add(paths.RESULT, error)
    records.transcript(header(meta))
    conclude(run_dir, records, _supervised(meta, run_dir, records, signals))


def conclude(run_dir: str, records: Records, result: RunResult) -> None:
    """Write the end of a run into all its records, the result last but for the doorbell."""
    records.event(RunEnded(status=result.status, reason=result.reason))
    if result.error_message:
        records.transcript(plain(result.error_message))
    records.close()
    artifacts.write_result(run_dir, msgspec.structs.replace(result, artifact_errors=records.troubles.all))
    records.bell.remove()


def _supervised(meta: RunMeta, run_dir: str, records: Records, signals: Signals) -> RunResult:
    started_at, started = paths.now_iso(), time.monotonic()
    program = program_of(meta.agent)
    stream = program.stream()
    attempt = Attempt(meta, run_dir, records, signals, stream)
    was_started = False
    if attempt.is_stopped:
        outcome = attempt.outcome(None)
    else:
        for warning in meta.all_warnings:
            records.event(Notice(level="warning", text=warning))
        try:
            command = program.command(meta, run_dir, 1)
            outcome = attempt.run(command, number=1, most=meta.max_attempts)
            was_started = True
        except OSError as error:
            outcome = decide(stream.facts, start_error=StartError.of(error, meta.agent_command[0]))
        except SubdeckError as error:
            outcome = decide(stream.facts, start_error=StartError(RunReason.START_FAILED, str(error)))
        except Exception as error:
            # A fault of ours, or arguments that no program can get: it ends here, and the run is told how.
            traceback.print_exc()
            fault = f"its wrapper failed with {type(error).__name__}: {error}"
            outcome = decide(stream.facts, start_error=StartError(RunReason.START_FAILED, fault))
    duration_ms = round((time.monotonic() - started) * 1000)
    return result_of(meta, stream.facts, outcome, started=(started_at, duration_ms) if was_started else None)


def result_of(meta: RunMeta, facts: StreamFacts, outcome: Outcome, *, started: tuple[str, int] | None) -> RunResult:
    """Put together the result of a run; `started` is when its child started and how many ms it took, None where
    there never was a child."""
    started_at, duration_ms = started or (None, None)
    return RunResult(
        run_id=meta.run_id,
        status=outcome.status,
        reason=outcome.reason,
        written_by="wrapper",
        exit_code=outcome.exit_code,
        signal=outcome.signal,
        stop_reason=outcome.stop_reason,
        error_message=outcome.message,
        final_text=facts.final_text,
        resolved_model=facts.model or meta.resolved_model,
        child_session_id=facts.session_id or meta.child_session_id,
        usage=facts.usage,
        started_at=started_at,
        ended_at=paths.now_iso(),
        duration_ms=duration_ms,
    )


def program_of(agent: str) -> AgentProgram:
    """Answer the program of an agent by its name; a name of the settings speaks as pi does."""
    if agent == "offline":
        from ..agents.offline import OfflineProgram

        return OfflineProgram()
    from ..agents.pi import PiProgram

    return PiProgram()


def _unreadable(run_dir: str) -> RunResult:
    return RunResult(
        run_id=os.path.basename(run_dir),
        status=RunStatus.FAILED,
        reason=RunReason.START_FAILED,
        written_by="wrapper",
        error_message=f"{paths.META} is missing or broken; nothing was started",
        ended_at=paths.now_iso(),
    )
