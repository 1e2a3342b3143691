"""Supervise one run from its start to its result: an agent, and further ones until there is a structured result."""

from __future__ import annotations

import errno
import os
import time

from msgspec.structs import replace

from .. import paths
from ..agents.child import Start
from ..errors import in_one_line
from ..run import artifacts, proven
from ..run.changes import NOT_RECORDED, Changes
from ..run.events import Notice, Retry, RunEnded, SessionTold
from ..run.model import Finalized, NoticeLevel, RunMeta, RunReason, RunResult
from ..run.outcome import InvalidPayload, Outcome, StreamFacts, feedback, handed_over
from ..run.repair import restore
from ..run.signature import Verifier
from ..system import files
from ..system.directory import Directory, opened
from ..system.log import log_fault
from ..text.plain import one_line, plain
from ._alerts import Alerts
from ._attempt import Attempt
from ._containment import Containment
from ._queue import Signals
from ._recorder import Recorder, working_tree
from ._spending import Spending, added
from .mailbox import Mailbox
from .records import Records, header, pane

PUT_BACK_S, PUT_BACK_LOOK_S = 3.0, 0.01
"""Seconds to wait until the run's directory is back, and seconds between two checks."""
_MOVED = frozenset({errno.ENOENT, errno.ENOTDIR, errno.ELOOP, errno.EACCES, errno.EISDIR})
"""Errors of a path that another process renames or replaces at this moment."""
_CHANGED = f"{paths.META} has changed since the launch"


def supervise(
    run_dir: str,
    activity_file: str,
    signals: Signals,
    containment: Containment,
    *,
    events_written: int,
    check_order: str = "",
    warning: str = "",
) -> None:
    """Run the agent of `run_dir` and write its result.

    `signals` has those received while waiting, `events_written` counts the events written so far. `check_order`
    describes its check, and `warning` anything missing before the run has begun.
    """
    meta = artifacts.read_meta(run_dir)
    if meta is None or meta.is_newer or _is_changed(run_dir):
        artifacts.write_result(run_dir, _unreadable(run_dir))
        files.remove(activity_file)
        return
    directory = _open_directory(run_dir)
    records = Records(run_dir, activity_file, caps=meta.log_caps, written=events_written, show=pane())
    try:
        artifacts.reserve_result(run_dir)
    except OSError as error:
        records.note_trouble(paths.RESULT, error)
    records.transcript(header(meta))
    if warning:
        records.event(Notice(level=NoticeLevel.WARNING, text=warning))
    mailbox = Mailbox(meta, run_dir, records)
    alerts = mailbox.alerts = Alerts(meta, run_dir, containment.spare)
    if os.isatty(0) and os.isatty(1):
        from ._pane_input import Foot  # few runs have a pane

        mailbox.foot = Foot(run_dir, pane(), lambda: mailbox.asked)
        records.show_by(mailbox.foot.show)
    worktree, failed = None, None
    if meta.worktree is not None:
        from ._worktree import Worktree  # most runs have none

        worktree = Worktree(meta, run_dir, records, signals)
        failed = worktree.prepare()
    recorder = Recorder(meta, run_dir, working_tree(meta.cwd))
    spending = Spending(meta, run_dir, records)
    spending.alerts = alerts
    if failed:
        result = result_of(meta, StreamFacts(), failed, started=None)
    else:
        result = _run(meta, run_dir, records, signals, containment, mailbox, recorder, spending)
    mailbox.close(f"the run ended first: {result.reason}")
    if mailbox.foot:
        mailbox.foot.close()
    changes = _changes(recorder, records, result) if records.started_at else None
    result = replace(result, undelivered=tuple(mailbox.undelivered), changes=changes)
    if meta.check:
        from ._check import check  # few runs have one

        checked = check(meta, run_dir, check_order, result, records=records, signals=signals, containment=containment)
        result = replace(result, check=checked)
    recorder.close()
    if worktree:
        worktree.close()
    if trouble := containment.runner.trouble:
        records.note_trouble(paths.RUNNER, trouble)
    spending.settle()
    conclude(run_dir, records, result, directory, alerts)


def _run(
    meta: RunMeta,
    run_dir: str,
    records: Records,
    signals: Signals,
    containment: Containment,
    mailbox: Mailbox,
    recorder: Recorder,
    spending: Spending,
) -> RunResult:
    """Continue the same session until a result that another attempt would not change.

    Return the result of the last attempt, with the usage of all attempts.
    """
    facts = StreamFacts()
    session_id = _session_to_resume(meta)
    number, handed_back, paused = 0, 0, 0.0
    had_child, attempts = False, 1
    not_ended: tuple[str, ...] = ()
    began, began_at = time.monotonic(), paths.now_iso()
    if meta.by_hand:
        records.event(Notice(level=NoticeLevel.INFO, text="the conversation continues in the agent's UI"))
    else:
        mailbox.put_into_prompt()
    while True:
        number += 1
        start = Start(meta, run_dir, number, facts.session_id or session_id, handed_back, facts.usage.cost)
        if mailbox.is_wanted or (meta.by_hand and number == 1):
            recorder.begin()
            recorder.settle()
            from ._interactive import Hand  # most runs are never opened in the agent

            hand = Hand(start, records, signals, mailbox, spending)
            prompt = hand.run()
            paused += hand.seconds
            had_child = had_child or records.started_at is not None
            not_ended += hand.not_ended
            before, facts = facts, _together(facts, hand.facts) if hand.facts else facts
            if prompt is None or not _write_prompt(run_dir, records, number, prompt):
                outcome = hand.outcome(before)
                break
            handed_back += number > 1  # the first prompt counts as an attempt in any case
            start = Start(meta, run_dir, number, facts.session_id or session_id, handed_back, facts.usage.cost)
        attempt = Attempt(
            *(records, signals, containment, mailbox),
            recorder=recorder,
            start=start,
            began=began + paused,
            used=facts.usage,
            spending=spending,
            report_session=lambda reported: _record_session(meta, reported, records),
        )
        if number == 1 and not attempt.is_stopped:
            _report_before_start(meta, records)
        outcome, attempts = attempt.run(), start.attempt
        paused += attempt.paused
        had_child = had_child or attempt.has_child
        not_ended += attempt.not_ended
        facts = _together(facts, attempt.facts)
        if mailbox.is_wanted and not attempt.is_over:
            continue
        if not _lacks_result(meta, outcome) or start.attempt >= meta.max_attempts:
            break
        if last := attempt.outcome_without_another():
            outcome = last
            break
        if not _ask_again(meta, run_dir, records, number + 1, facts):
            break
    _keep_session_id(meta, facts, records)
    # the event's clock, so that a finished run shows the same start as while it was running
    started = (records.started_at or began_at, round((time.monotonic() - began) * 1000)) if had_child else None
    return replace(result_of(meta, facts, outcome, started=started, attempts=attempts), not_ended=not_ended)


def _changes(recorder: Recorder, records: Records, result: RunResult) -> Changes | None:
    """Return the run's changes, now that its processes have ended."""
    try:
        recorder.settle()
        if baseline := recorder.take_baseline():
            records.event(baseline)
        return recorder.finish(used_tools=bool(result.usage.tool_uses))
    except Exception as error:  # in any case the run has ended as it has
        log_fault("recording a run's changes", error)
        return Changes(note=f"{NOT_RECORDED}: {one_line(in_one_line(error), 200)}")


def _session_to_resume(meta: RunMeta) -> str | None:
    """Return the id of the conversation to continue, if the agent keeps one; for a shared one, which this run has
    locked, the last run's.
    """
    session = meta.agent_session
    if session is None or session.id_file is None:
        return session.resume if session else None
    try:
        session_id = files.read(session.id_file).decode("ascii", "replace").strip()
    except OSError:
        return None
    return session_id if paths.is_session_id(session_id) else None


def _record_session(meta: RunMeta, facts: StreamFacts, records: Records) -> None:
    """Record the agent's id for the conversation as soon as it is reported: this wrapper may be killed."""
    session = meta.agent_session
    if session is None or facts.session_id is None:
        return
    _keep_session_id(meta, facts, records)  # first, so that it is done when a reader sees the event
    if facts.session_id not in (meta.child_session_id, session.resume):
        records.event(SessionTold(id=facts.session_id, conversation=facts.conversation))


def _keep_session_id(meta: RunMeta, facts: StreamFacts, records: Records) -> None:
    """Leave a shared conversation's id to the next run, or an empty one if the agent no longer has it."""
    id_file = meta.agent_session.id_file if meta.agent_session else None
    if id_file is None or (facts.session_id is None and facts.ended is not RunReason.START_FAILED):
        return
    if facts.session_id == _session_to_resume(meta):
        return
    try:
        files.write_whole(id_file, (facts.session_id or "").encode("utf-8", "replace"))
    except OSError as error:
        records.note_trouble(os.path.basename(id_file), error)


def _report_before_start(meta: RunMeta, records: Records) -> None:
    for warning in meta.all_warnings:
        records.event(Notice(level=NoticeLevel.WARNING, text=warning))
    if inherited := meta.inherited:
        text = f"passed on from the parent: {inherited.words}"
        records.event(Notice(level=NoticeLevel.INFO, text=text))


def _ask_again(meta: RunMeta, run_dir: str, records: Records, number: int, facts: StreamFacts) -> bool:
    """Write the session's next prompt; False if the disk refuses."""
    _, problem = _payload(facts)
    if not _write_prompt(run_dir, records, number, feedback(problem)):
        return False
    reason = f"no structured result: {problem}"
    records.event(Retry(attempt=number, max_attempts=meta.max_attempts, delay_ms=0, reason=reason))
    return True


def _write_prompt(run_dir: str, records: Records, number: int, text: str) -> bool:
    """Write the next agent's prompt; False if the disk refuses."""
    name = paths.prompt_name(number)
    try:
        files.write_whole(os.path.join(run_dir, name), text.encode("utf-8", "replace"))
    except OSError as error:
        records.note_trouble(name, error)
        return False
    return True


def result_of(
    meta: RunMeta, facts: StreamFacts, outcome: Outcome, *, started: tuple[str, int] | None, attempts: int = 1
) -> RunResult:
    """Return a run's result; `started` has its agent's start time and duration in ms, None if no agent was started."""
    started_at, duration_ms = started or (None, None)
    finalized = _payload(facts)[0] if meta.finalize else None
    handed_over = finalized.result if finalized else None
    return RunResult(
        run_id=meta.run_id,
        status=outcome.status,
        reason=outcome.reason,
        written_by="wrapper",
        exit_code=outcome.exit_code,
        signal=outcome.signal,
        stop_reason=outcome.stop_reason,
        error_message=outcome.message,
        final_text=handed_over or facts.final_text,
        partial=facts.partial and not handed_over,
        finalized=finalized,
        attempts=attempts,
        resolved_model=facts.model or meta.resolved_model,
        child_session_id=(facts.session_id or meta.child_session_id) if meta.keeps_session else None,
        conversation=facts.conversation if meta.agent_session else None,
        usage=facts.usage,
        started_at=started_at,
        ended_at=paths.now_iso(),
        duration_ms=duration_ms,
    )


def _lacks_result(meta: RunMeta, outcome: Outcome) -> bool:
    """Whether to ask the agent once more for its result."""
    return outcome.reason is RunReason.FINALIZE_MISSING or (meta.finalize and outcome.reason is RunReason.DENIED)


def _payload(facts: StreamFacts) -> tuple[Finalized | None, str]:
    """Return the structured result; or None, and why it does not count."""
    try:
        return handed_over(facts), ""
    except InvalidPayload as problem:
        return None, str(problem)


def _together(before: StreamFacts, last: StreamFacts) -> StreamFacts:
    """Facts of the last attempt, with the text, names and sums of earlier ones."""
    return replace(
        last,
        final_text=last.final_text or before.final_text,
        partial=(last if last.final_text else before).partial,
        usage=added(before.usage, last.usage),
        model=last.model or before.model,
        session_id=last.session_id or before.session_id,
        conversation=last.conversation or before.conversation,
    )


def conclude(
    run_dir: str,
    records: Records,
    result: RunResult,
    directory: Directory | None = None,
    alerts: Alerts | None = None,
) -> None:
    """Write the end of a run: first the complete result under another name, so that it can no longer be lost.

    `directory` is the run's own as opened at the start. The user is notified before the result exists: once it does, no
    other process finds this end. Raises OSError if the disk refuses the result.
    """
    records.look()
    records.settle()
    result = replace(result, tampered=tuple(records.tampered))
    prepared = replace(result, artifact_errors=records.troubles)
    try:
        artifacts.prepare_result(run_dir, prepared)
    except OSError as error:
        if error.errno not in _MOVED:
            records.note_trouble(paths.RESULT, error)
    records.event(RunEnded(status=result.status, reason=result.reason, mark=proven.seal_of_end(run_dir, result)))
    if result.error_message:
        records.transcript(plain(result.error_message))
    records.close()
    if alerts:
        alerts.ended(result)
    _publish(run_dir, directory, replace(result, artifact_errors=records.troubles), prepared)
    records.remove_transient()


def _publish(run_dir: str, directory: Directory | None, result: RunResult, prepared: RunResult) -> None:
    """Write a run's result into its own directory, which another process may rename and put back. Raises OSError."""
    deadline = time.monotonic() + PUT_BACK_S
    while True:
        try:
            if not (result == prepared and _is_published(run_dir)):
                artifacts.write_result(run_dir, result)
                files.remove(os.path.join(run_dir, artifacts.PREPARED))
            if directory is None or directory.has(paths.RESULT) or directory.is_removed or time.monotonic() > deadline:
                return
        except OSError as error:
            if error.errno not in _MOVED or time.monotonic() > deadline:
                raise
        time.sleep(PUT_BACK_LOOK_S)
        restore(run_dir)


def _open_directory(run_dir: str) -> Directory | None:
    """Open a run's directory, to recognise it after a rename; None if it cannot be opened."""
    try:
        return opened(run_dir)
    except OSError:
        return None


def _is_published(run_dir: str) -> bool:
    """Publish the prepared result; return whether the run has one now."""
    try:
        artifacts.publish_result(run_dir)
    except OSError:
        return False
    return True


def _is_changed(run_dir: str) -> bool:
    """Whether the run's record has changed since its launch: nothing is started then."""
    return not artifacts.is_own(run_dir, Verifier()) and os.path.exists(paths.key_file())


def _unreadable(run_dir: str) -> RunResult:
    message = f"{artifacts.fault_of(run_dir, paths.META) or _CHANGED}; nothing was started"
    return artifacts.bare_result(os.path.basename(run_dir), RunReason.START_FAILED, message, by="wrapper")
