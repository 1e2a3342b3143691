"""Supervise one run from its start to its result: a child, and further ones while the result is not handed over."""

from __future__ import annotations

import os
import time

from msgspec.structs import replace

from .. import paths
from ..agents.pi.program import child_command
from ..agents.pi.stream import PiStream
from ..errors import SubdeckError
from ..run import artifacts
from ..run.events import Notice, Retry, RunEnded
from ..run.model import Finalized, NoticeLevel, RunMeta, RunReason, RunResult, RunStatus, Usage
from ..run.outcome import Failure, InvalidPayload, Outcome, StreamFacts, decide, feedback, read_payload
from ..system import files
from ..system.log import log_fault
from ..text.plain import plain
from .attempt import Attempt
from .queue import Signals
from .records import ActivityFile, Records, header, pane


class Tries:
    """Continues the same child session until there is an end that asking again would not change."""

    def __init__(self, meta: RunMeta, run_dir: str, records: Records, signals: Signals) -> None:
        self._meta = meta
        self._run_dir = run_dir
        self._records = records
        self._signals = signals
        self._started: float | None = None
        """Monotonic seconds; None until there was a child."""
        self._started_at = ""

    def run(self) -> RunResult:
        """Run the attempts; return the result of the last one, with what all of them used."""
        facts = StreamFacts()
        number = 1
        while True:
            stream = PiStream()
            attempt = Attempt(self._meta, self._run_dir, self._records, self._signals, stream)
            outcome = self._try(attempt, stream, number, facts.usage.turns)
            facts = _together(facts, stream.facts)
            if outcome.reason is not RunReason.FINALIZE_MISSING or number >= self._meta.max_attempts:
                break
            if barred := attempt.barred(facts.usage.turns):
                outcome = barred
                break
            if not self._ask_again(number + 1, facts):
                break
            number += 1
        started = None
        if self._started is not None:
            started = (self._started_at, round((time.monotonic() - self._started) * 1000))
        return result_of(self._meta, facts, outcome, started=started, attempts=number)

    def _try(self, attempt: Attempt, stream: PiStream, number: int, turns: int) -> Outcome:
        if attempt.is_stopped:
            return attempt.outcome()
        if number == 1:
            self._report_before_start()
        began, began_at = time.monotonic(), paths.now_iso()
        try:
            attempt.start(child_command(self._meta, self._run_dir), number)
        except OSError as error:
            return decide(stream.facts, failure=Failure.of_start(error, self._meta.agent_command[0]))
        except SubdeckError as error:
            return decide(stream.facts, failure=Failure(RunReason.START_FAILED, str(error)))
        except Exception as error:  # arguments that no program can get, or a fault of ours
            return decide(stream.facts, failure=_fault(RunReason.START_FAILED, error))
        if self._started is None:
            self._started, self._started_at = began, began_at
        try:
            return attempt.follow(self._started, turns)
        except Exception as error:
            return attempt.outcome(failure=_fault(RunReason.LOST, error))

    def _report_before_start(self) -> None:
        for warning in self._meta.all_warnings:
            self._records.event(Notice(level=NoticeLevel.WARNING, text=warning))
        if inherited := self._meta.inherited:
            text = f"handed over from the parent: {inherited.turns} turns, {inherited.chars} characters"
            self._records.event(Notice(level=NoticeLevel.INFO, text=text))

    def _ask_again(self, number: int, facts: StreamFacts) -> bool:
        """Write what the same child session reads next; False when the disk says no."""
        said = _payload_problem(facts)
        try:
            path = os.path.join(self._run_dir, paths.prompt_name(number))
            files.write_whole(path, feedback(said).encode())
        except OSError as error:
            self._records.troubles.add(paths.prompt_name(number), error)
            return False
        reason = f"no result was handed over: {said}"
        self._records.event(Retry(attempt=number, max_attempts=self._meta.max_attempts, delay_ms=0, reason=reason))
        return True


def result_of(
    meta: RunMeta, facts: StreamFacts, outcome: Outcome, *, started: tuple[str, int] | None, attempts: int = 1
) -> RunResult:
    """Put together the result of a run; `started` is when its child started and how many ms it took, None where
    there never was a child.
    """
    started_at, duration_ms = started or (None, None)
    finalized = _finalized(facts) if meta.finalize else None
    return RunResult(
        run_id=meta.run_id,
        status=outcome.status,
        reason=outcome.reason,
        written_by="wrapper",
        exit_code=outcome.exit_code,
        signal=outcome.signal,
        stop_reason=outcome.stop_reason,
        error_message=outcome.message,
        final_text=(finalized.result if finalized else None) or facts.final_text,
        finalized=finalized,
        attempts=attempts,
        resolved_model=facts.model or meta.resolved_model,
        child_session_id=(facts.session_id or meta.child_session_id) if meta.session_path else None,
        usage=facts.usage,
        started_at=started_at,
        ended_at=paths.now_iso(),
        duration_ms=duration_ms,
    )


def _finalized(facts: StreamFacts) -> Finalized | None:
    try:
        return read_payload(facts.finalized)
    except InvalidPayload:
        return None


def _payload_problem(facts: StreamFacts) -> str:
    try:
        read_payload(facts.finalized)
    except InvalidPayload as problem:
        return str(problem)
    return ""


def _fault(reason: RunReason, error: Exception) -> Failure:
    """Tell a fault of the wrapper: in words for the run, with its traceback in `stderr.log`."""
    import traceback

    traceback.print_exception(error)
    log_fault("supervising a run", error)
    return Failure(reason, f"its wrapper failed with {type(error).__name__}: {error}")


def _together(before: StreamFacts, last: StreamFacts) -> StreamFacts:
    """Facts of the last attempt, with the text, the names and the sums of those before it."""
    return replace(
        last,
        final_text=last.final_text or before.final_text,
        usage=_sum(before.usage, last.usage),
        model=last.model or before.model,
        session_id=last.session_id or before.session_id,
    )


def _sum(first: Usage, second: Usage) -> Usage:
    return Usage(*(getattr(first, name) + getattr(second, name) for name in Usage.__struct_fields__))


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
    artifacts.write_result(run_dir, replace(result, artifact_errors=records.troubles.all))
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
