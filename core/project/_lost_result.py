"""The files of a run without a responsible process, and the result made from them.

An unreadable file is not treated as missing: everything here raises OSError instead, and the run is checked again
later.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator

from msgspec.structs import replace

from .. import paths
from ..run import artifacts, proven, second_copy
from ..run.artifacts import RunnerFacts
from ..run.changes import NOT_RECORDED, NOT_RUN, Changes, CheckResult
from ..run.describe import moment
from ..run.events import (
    CONTENT_LIMIT,
    CUT,
    AssistantText,
    Event,
    KnownEvent,
    Message,
    RunEnded,
    UsageReported,
    decode_event,
    encode_event,
)
from ..run.fold import Fold
from ..run.inbox import BEGINNING, EntryKind, Inbox
from ..run.model import STATUS_OF, CheckState, Finalized, MessageState, RunReason, RunResult, RunStatus, Undelivered
from ..run.outcome import REASONS, InvalidPayload, read_payload, stopped
from ..run.progress import ProgressFormatter
from ..system import files
from ..system.directory import RefusedError
from ..system.log import log_fault
from ..text.plain import one_line, plain

_PASSING = (
    *(paths.ENVIRONMENT, paths.WRITING, paths.FAULT, paths.TAKEN, paths.STARTING, paths.CHILDREN),
    *(artifacts.PREPARED, artifacts.RESERVE),
)
"""Files that are only needed until there is a result."""


class Remains:
    """All records of one run, read while its lock is held, so that no process adds to them."""

    def __init__(self, project: paths.Project, run_id: str, runner: RunnerFacts | None, *, went: str = "") -> None:
        """Read the records. Raises OSError. `went` tells why all its processes are gone, if known."""
        self._project = project
        self._run_id = run_id
        self._run_dir = project.run_dir(run_id)
        self._runner = runner
        self._went = went
        self._meta = artifacts.read_meta(self._run_dir, certain=True)
        self._stop = artifacts.read_stop(self._run_dir, certain=True)
        self._prepared = artifacts.read_prepared(self._run_dir, certain=True)
        self._fault = _last_line(self._path(paths.FAULT)) or self._complaint()
        self._is_fault_unsaid = not self._fault and files.exists(self._path(paths.FAULT))
        self.fold = Fold()
        self._settled: dict[str, MessageState] = {}
        """Final states of messages, by id."""
        self._paid: list[UsageReported] = []
        for event in _events(self._path(paths.EVENTS)):
            self.fold.apply(event)
            if isinstance(event, UsageReported):
                self._paid.append(event)
            if isinstance(event, Message) and event.state is not MessageState.ACCEPTED:
                self._settled[event.id] = event.state
        end = self.fold.ended
        self._ended = end if end and proven.is_sealed_end(self._run_dir, end) else None
        """Written by the run's wrapper, or by a process that began to finish it; no other end counts."""
        self._lasted_ms = self._duration_ms()
        self._tampered = second_copy.tampering(self._run_dir)
        self._writing = "" if self._prepared or self._ended else self._read_writing()

    def finish(self, by: str, not_ended: tuple[str, ...], *, is_certain: bool = True) -> None:
        """Write the end of the run into its records, the result last, signed with `by`. Raises OSError.

        `not_ended` lists processes that could not be ended, `is_certain` says whether there can be no others.
        """
        if self._writing:
            self._add(AssistantText(text=self._writing, partial=True))
        inbox = Inbox(self._run_dir)
        undelivered = self._late(inbox) if self._prepared is None else ()
        result = self._prepared or replace(self._result(by, not_ended, is_certain=is_certain), undelivered=undelivered)
        if self._ended is None:
            self._add(self._signed_end(result), plain(result.error_message or ""))
        self._settle()
        self._notify(result)
        if self._prepared and not_ended:
            artifacts.write_result(self._run_dir, replace(self._prepared, not_ended=not_ended))
        elif self._prepared is None or not artifacts.publish_result(self._run_dir):
            artifacts.write_result(self._run_dir, result)
        for name in _PASSING:
            files.remove(self._path(name))
        inbox.discard()

    def _notify(self, result: RunResult) -> None:
        """Notify the user away from the terminal, before there is a result: then no other process finds this end."""
        meta, root = self._meta, self._project.root
        if meta is None or meta.is_in_spool:
            return
        from ..alerts.alert import end_alert
        from ..alerts.dispatch import dispatch

        dispatch(lambda: end_alert(meta, root, result, at=time.time()))

    def _signed_end(self, result: RunResult) -> RunEnded:
        mark = proven.seal_of_end(self._run_dir, result)
        return RunEnded(status=result.status, reason=result.reason, mark=mark)

    def _settle(self) -> None:
        """Record the run's spending in the ledger before its result: if this process is killed here, the next one
        repeats it, which changes nothing.
        """
        budget = (self._meta and self._meta.limits.budget) or 0.0
        if not (self._paid or budget) or self._meta is None or self._meta.is_in_spool:
            return
        from ..budget.ledger import RunBook

        book = RunBook(self._project.root, self._run_id, budget, self._meta.created_at)
        for event in self._paid:
            book.add(event, event.ts)
        try:
            book.settle()
        except OSError as error:
            log_fault("recording the spending of a lost run", error)

    def _late(self, inbox: Inbox) -> tuple[Undelivered, ...]:
        """Close the inbox, and record messages that never reached the agent as late."""
        why = "its wrapper had died"
        sent = {id_: (message.text, message.by) for id_, message in self.fold.undelivered.items()}
        for entry in inbox.close():
            if entry.kind == EntryKind.MESSAGE and self._settled.get(entry.id, MessageState.LATE) is MessageState.LATE:
                sent[entry.id] = (entry.text, entry.by)
        for id_ in sent.keys() - self._settled.keys() if self._ended is None else ():
            text, by = sent[id_]
            new_text = "" if id_ in self.fold.undelivered else text[:CONTENT_LIMIT]
            self._add(Message(id=id_, state=MessageState.LATE, text=new_text, by=by, reason=why))
        return tuple(
            Undelivered(id=id_, text=one_line(text, BEGINNING), by=by, reason=why) for id_, (text, by) in sent.items()
        )

    def _path(self, name: str) -> str:
        return os.path.join(self._run_dir, name)

    def _read_writing(self) -> str:
        """Return the text being written when the wrapper died; from an earlier version's wrapper only its end."""
        if text := artifacts.read_writing(self._run_dir, self.fold.said_seq, certain=True).strip():
            return text
        record = artifacts.decode_activity(_certain_content(os.path.join(self._project.active, self._run_id)))
        is_of_now = record is not None and record.seq >= self.fold.said_seq
        return record.sentence.strip() if record and is_of_now else ""

    def _duration_ms(self) -> int | None:
        """Return how long it ran up to its last sign of life, by the wall clock."""
        began, last = moment(self.fold.started_at or ""), moment(self.fold.last_event_at or "")
        return max(0, round((last - began).total_seconds() * 1000)) if began and last else None

    def _add(self, event: KnownEvent, more: str = "") -> None:
        """Append an event to the events and the transcript, if possible."""
        numbered = replace(event, seq=self.fold.last_seq + 1, ts=paths.now_iso())
        self.fold.apply(numbered)
        _append(self._path(paths.EVENTS), encode_event(numbered))
        text = "\n".join(filter(None, (ProgressFormatter().text(numbered), more)))
        _append(self._path(paths.TRANSCRIPT), text.encode("utf-8", "replace") + b"\n")

    def _result(self, by: str, not_ended: tuple[str, ...], *, is_certain: bool) -> RunResult:
        """Build a result from the records of a run whose wrapper wrote none."""
        fold, meta = self.fold, self._meta
        ended = "were ended" if is_certain else "were ended, where found"
        reason, message = self._reason(by, "could not be ended completely" if not_ended else ended)
        finalized = self._finalized() if meta and meta.finalize else None
        handed_over = finalized.result if finalized else None
        return RunResult(
            run_id=self._run_id,
            status=STATUS_OF[reason],
            reason=reason,
            written_by=by,
            stop_reason=fold.stop_reason,
            error_message=message,
            final_text=handed_over or fold.final_text,
            partial=handed_over.endswith(CUT) if handed_over else fold.partial,
            finalized=finalized,
            attempts=fold.attempt,
            resolved_model=fold.model or (meta.resolved_model if meta else ""),
            child_session_id=fold.session.id if fold.session else meta.child_session_id if meta else None,
            conversation=fold.session.conversation if fold.session else None,
            usage=fold.usage,
            started_at=fold.started_at,
            ended_at=paths.now_iso(),
            duration_ms=self._lasted_ms,
            not_ended=not_ended,
            changes=self._changes(),
            check=self._check(),
            tampered=self._tampered,
        )

    def _check(self) -> CheckResult | None:
        """Return the result of the check, or why there is none."""
        if not (self._meta and self._meta.check):
            return None
        check = self.fold.check
        if check is None:
            return CheckResult(self._meta.check, note=f"{NOT_RUN}: its wrapper died")
        died = replace(check.result, note="its wrapper died while the check was running")
        return check.result if check.state is CheckState.ENDED else died

    def _changes(self) -> Changes | None:
        """Report that the changes of a run in a repository were not recorded; readers find out what is still known."""
        baseline = self.fold.baseline
        if baseline is None or not self.fold.started_at:
            return None
        why = "its wrapper died before" if baseline.tree else baseline.note.removeprefix(f"{NOT_RECORDED}: ")
        return Changes(note=f"{NOT_RECORDED}: {why}")

    def _complaint(self) -> str:
        """Return the line on stderr about the wrapper's own fault, for a wrapper that could not write it to a file."""
        begun = f"\n{paths.FAULT_WORDS}".encode()
        _, separator, end = _certain_content(self._path(paths.STDERR)).rpartition(begun)
        return one_line(plain(end.partition(b"\n")[0].decode("utf-8", "replace")), 300) if separator else ""

    def _finalized(self) -> Finalized | None:
        try:
            return read_payload(self.fold.handed_over)
        except InvalidPayload:
            return None

    def _reason(self, by: str, became: str) -> tuple[RunReason, str | None]:
        fold = self.fold
        if self._ended is not None and self._ended.reason.is_known:
            return self._ended.reason, self._message_of_end(self._ended.reason)
        if self._stop:
            reason, message = stopped(self._stop)
            return reason, f"{message}; its wrapper died before that was complete"
        if self._meta is None:
            return RunReason.LOST, f"{artifacts.fault_of(self._run_dir, paths.META)}, and no process holds the run"
        if self._is_fault_unsaid:  # nor is any agent recorded that it may have started
            return RunReason.LOST, "the wrapper failed, and the error could not be written to disk"
        if self._fault:
            reason = RunReason.LOST if fold.child else RunReason.START_FAILED
            return reason, f"its wrapper failed with {self._fault}"
        if self._went:
            return RunReason.LOST, self._went
        if self._runner is None and files.exists(self._path(paths.RUNNER)):
            return RunReason.LOST, f"{artifacts.fault_of(self._run_dir, paths.RUNNER)}, and no process holds the run"
        if self._runner is None and not fold.last_seq:
            return self._never_came(by)
        error = f" (last model error: {one_line(fold.error, 200)})" if fold.error else ""
        return RunReason.LOST, f"its wrapper died unexpectedly; its remaining processes {became}{error}"

    def _never_came(self, by: str) -> tuple[RunReason, str]:
        """Return why there is no sign of a wrapper."""
        if crash := _last_line(self._path(paths.STDERR)):
            return RunReason.START_FAILED, f"its wrapper could not start: {crash}"
        if by == "launcher" or files.exists(self._path(paths.TAKEN)):
            return RunReason.LOST, "its wrapper died before it wrote anything"
        if files.exists(self._path(paths.STARTING)):
            return RunReason.LOST, "lost while its wrapper was starting"
        return RunReason.LOST, "its launcher died or failed before the wrapper was started"

    def _message_of_end(self, reason: RunReason) -> str | None:
        """Return the message of an end that the wrapper wrote only into the events."""
        if STATUS_OF[reason] is RunStatus.COMPLETED:
            return None
        finalized = self._finalized()
        error = finalized.error if finalized and reason is RunReason.FINALIZE_ERROR else None
        if reason is RunReason.MODEL_ERROR:
            error = self.fold.error
        message = plain(error or "").strip() or REASONS[reason]
        return f"{message}; its wrapper died after writing this result"


def _events(path: str) -> Iterator[Event]:
    try:
        descriptor = files.open_file(path, os.O_RDONLY)
    except (FileNotFoundError, RefusedError):
        return
    with open(descriptor, "rb") as file:
        for line in file:
            if event := decode_event(line):
                yield event


def _append(path: str, content: bytes) -> None:
    """Append lines to an existing file, also after a torn line; a disk error does not keep a run from its end."""
    try:
        descriptor = files.open_file(path, os.O_RDWR | os.O_APPEND)
    except OSError:
        return
    try:
        size = os.fstat(descriptor).st_size
        is_torn = size > 0 and os.pread(descriptor, 1, size - 1) != b"\n"
        os.write(descriptor, b"\n" * is_torn + content)
    except OSError:
        return
    finally:
        os.close(descriptor)


def _last_line(path: str) -> str:
    lines = plain(_certain_content(path).decode("utf-8", "replace")).split("\n")
    return next((one_line(line, 300) for line in reversed(lines) if line.strip()), "")


def _certain_content(path: str) -> bytes:
    """Read a file; empty only if it certainly does not exist. Raises OSError."""
    try:
        return files.read(path)
    except (FileNotFoundError, RefusedError):
        return b""
