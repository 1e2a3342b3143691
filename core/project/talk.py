"""Send a message, an interrupt, or the reply to a request to a run, and follow its delivery."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator

import msgspec
from msgspec import Struct

from .. import paths
from ..agents.question import filled_in
from ..errors import RunBusy, SubdeckError, UnknownRun, UsageError
from ..run.events import (
    Decision,
    Event,
    EventTail,
    Interrupted,
    Message,
    Request,
    decode_event,
    line_prefix,
)
from ..run.inbox import LONGEST_TEXT, EntryKind, InboxClosed, put
from ..run.model import MessageState, RequestKind, Verdict, newer_schema
from ..run.requests import answered_words, missing_words, request_hash
from ..run.snapshot import Queued, Running, RunSnapshot
from ..runners.hosts import see_to_relay
from ..system import processes
from ..system.line_file import LineTail
from ..text.plain import one_line
from .liveness import living_wrappers
from .ownership import check_own

_ANSWERS = (line_prefix(Decision), line_prefix(Message))


class Sent(Struct, frozen=True):
    """An entry sent to a run; the run's events show whether it reached the agent."""

    run_id: str
    id: str
    kind: EntryKind
    read_from: int
    """Bytes of the events written before it."""


class Outcome(Struct, frozen=True):
    """Delivery state of a sent entry."""

    state: MessageState
    """For an interrupt or a reply, DELIVERED means that it took effect."""
    reason: str = ""
    """Why it was refused, or too late."""


def send(project: paths.Project, run: RunSnapshot, text: str, by: str) -> Sent:
    """Send a message to a run; a queued one adds it to its prompt. Raises SubdeckError if the run takes none."""
    _check_text(text, "the message")
    _check_listens(project, run)
    return _put(project, run, EntryKind.MESSAGE, text=_writable(text), by=by)


def interrupt(project: paths.Project, run: RunSnapshot, by: str) -> Sent:
    """Make the agent end its turn and wait for a message. Raises SubdeckError if that is impossible."""
    _check_listens(project, run)
    if isinstance(run.state, Queued):
        raise SubdeckError(
            f"run {run.meta.short_id} has not started yet",
            where=run.run_id,
            hint=f"a message is added to its prompt; subdeck stop {run.meta.short_id} stops it",
            brief_hint="a message is added to its prompt",
        )
    if isinstance(run.state, Running) and (run.state.taken_over or run.state.handed_back):
        raise SubdeckError(
            f"run {run.meta.short_id} cannot be interrupted: it is open in the agent",
            where=run.run_id,
            hint="exit the agent to return the run" if run.is_taken_over else "choose how it continues",
        )
    if run.is_interrupted:
        raise SubdeckError(
            f"run {run.meta.short_id} is already interrupted",
            where=run.run_id,
            hint=f"subdeck send {run.meta.short_id} TEXT continues it",
            brief_hint="send a message to continue it",
        )
    return _put(project, run, EntryKind.INTERRUPT, by=by)


def reply(
    project: paths.Project,
    run: RunSnapshot,
    request_id: str,
    verdict: Verdict,
    text: str = "",
    *,
    by: str,
    read: str = "",
) -> Sent:
    """Reply to the agent's request. Raises SubdeckError if there is none, or a different one.

    `read` is the hash of the request that was read; without it, the open request is assumed.
    """
    _check_listens(project, run)
    try:
        request = open_request(run, request_id)
    except UnknownRequest as unknown:
        if decision := decision_on(project, run.run_id, request_id):
            raise UnknownRequest(answered_words(decision), where=run.run_id, hint=unknown.hint) from None
        raise
    current = request_hash(run.run_id, request)
    if read not in ("", current):
        what = f"{request.id} of run {run.meta.short_id} is a different request: its hash is not {one_line(read, 40)}"
        hint = f"nothing was sent; subdeck requests {run.meta.short_id} shows it"
        raise UsageError(what, where=run.run_id, hint=hint, brief_hint="read the request again", code="request.changed")
    text = _fitting(run, request, verdict, _writable(text))
    return _put(project, run, EntryKind.REPLY, text=text, request=request.id, verdict=verdict, by=by, read=current)


def open_request(run: RunSnapshot, request_id: str = "") -> Request:
    """Return the request of a run's agent with this id, or its only one. Raises SubdeckError."""
    requests = run.requests
    ids = ", ".join(request.id for request in requests)
    if not requests:
        raise UnknownRequest(f"run {run.meta.short_id} has no pending request", where=run.run_id)
    if not request_id and len(requests) > 1:
        what = f"run {run.meta.short_id} has {len(requests)} pending requests"
        raise UnknownRequest(what, where=run.run_id, hint=f"choose one: {ids}")
    for request in requests:
        if request_id in ("", request.id):
            return request
    what = f"{one_line(request_id, 40)} is not pending in run {run.meta.short_id}"
    raise UnknownRequest(what, where=run.run_id, hint=f"open: {ids}")


def decision_on(project: paths.Project, run_id: str, request_id: str) -> Decision | None:
    """Return the decision on a run's request; None if there is none."""
    for event in _answers(project, run_id):
        if isinstance(event, Decision) and event.request == request_id:
            return event
    return None


def settled(project: paths.Project, run_id: str, sent_id: str) -> Decision | Message | None:
    """Return the decision that a sent reply made, or the last state of a sent message; None if there is none yet."""
    last: Decision | Message | None = None
    for event in _answers(project, run_id):
        if sent_id == (event.message if isinstance(event, Decision) else event.id):
            last = event
    return last


def _answers(project: paths.Project, run_id: str) -> Iterator[Decision | Message]:
    """Yield a run's decisions and messages; its other events are not decoded."""
    lines = LineTail(os.path.join(project.run_dir(run_id), paths.EVENTS)).lines()
    for line in lines:
        event = decode_event(line) if line.startswith(_ANSWERS) else None
        if isinstance(event, Decision | Message):
            yield event


class UnknownRequest(UnknownRun):
    """A run does not have this request, or no longer."""

    code = "request.not_found"


class _Misfit(Exception):
    """Why a reply does not fit the request, and what would fit."""

    def __init__(self, what: str, hint: str) -> None:
        super().__init__(what)
        self.hint = hint


def _fitting(run: RunSnapshot, request: Request, verdict: Verdict, text: str) -> str:
    """Return the text of a reply in the agent's form. Raises UsageError if it does not fit the request."""
    try:
        if verdict is Verdict.DENY:
            if text:
                _check_text(text, "the reason")
            return text
        if request.kind is RequestKind.PERMISSION:
            return _leave(request, verdict)
        if verdict is not Verdict.REPLY:
            raise _Misfit("it is a question, not a permission request", "answer with a text, or deny")
        _check_text(text, "the reply")
        return _answer(request, text)
    except _Misfit as misfit:
        raise UsageError(str(misfit), where=f"{run.meta.short_id} {request.id}", hint=misfit.hint) from None


def _leave(request: Request, verdict: Verdict) -> str:
    if verdict is Verdict.ALLOW_RUN and not request.run_rule:
        raise _Misfit("this request cannot be allowed for the whole run", "allow it once, or deny it")
    if request.missing and verdict is not Verdict.REPLY:
        raise _Misfit(missing_words(request), "deny it, with a reason")
    if verdict is Verdict.REPLY:
        raise _Misfit("it is a permission request, not a question", "answer with allow or deny; deny can have a reason")
    return ""


def _answer(request: Request, text: str) -> str:
    """Return the choice that a number stands for, and the values of a form as JSON."""
    if request.choices and text not in request.choices:
        if text.strip().isdecimal() and 0 < int(text) <= len(request.choices):
            return request.choices[int(text) - 1]
        if request.kind is not RequestKind.CHOICE:
            return text  # the choices are suggestions
        offered = ", ".join(f"{number} {one_line(choice, 60)}" for number, choice in enumerate(request.choices, 1))
        raise _Misfit(f'"{one_line(text, 60)}" is not one of the choices', f"choose: {offered}")
    if request.kind is RequestKind.FORM and request.fields:
        values = filled_in(text, request.fields)
        names = ", ".join(one_line(field.name, 60) for field in request.fields)
        if not values:
            hint = f"use a JSON object, or lines of NAME: VALUE; fields: {names}"
            raise _Misfit("it is a form", hint)
        if missing := [field.name for field in request.fields if field.required and not values.get(field.name)]:
            lacking = ", ".join(one_line(name, 60) for name in missing)
            raise _Misfit(f"the form lacks {lacking}", "fill in all required fields")
        return msgspec.json.encode(values).decode("utf-8", "replace")
    return text


def _writable(text: str) -> str:
    """Replace what a file cannot hold: halves of surrogate pairs, from arguments that are not UTF-8."""
    return text.encode("utf-8", "replace").decode("utf-8", "replace")


def _check_text(text: str, what: str) -> None:
    if not text.strip():
        raise UsageError(f"{what} is empty", where="text", hint="write a message")
    if len(text.encode("utf-8", "replace")) > LONGEST_TEXT:
        hint = "put it into a file and send the path"
        raise UsageError(f"{what} is longer than {LONGEST_TEXT // 1024} KB", where="text", hint=hint)


def _check_listens(project: paths.Project, run: RunSnapshot) -> None:
    """Raise SubdeckError for a run that takes no messages, with the way out."""
    check_own(project, run.run_id)
    if refusal := refused(run):
        raise refusal


def refused(run: RunSnapshot) -> SubdeckError | None:
    """Return why a run of this user takes no messages; None if it does."""
    name, where = f"run {run.meta.short_id}", run.run_id
    if run.newer_schema:
        hint = "use the subdeck that launched it"
        return SubdeckError(f"{name} was {newer_schema(run.newer_schema)}", where=where, hint=hint)
    if run.has_ended:
        return RunBusy(
            f"{name} has finished ({run.reason}) and accepts no messages",
            where=where,
            hint=_goes_on(run),
            brief_hint="continue its conversation" if run.child_session_id else "",
            code="run.finished",
        )
    if run.unwritable:
        return SubdeckError(f"cannot write the message to {name}: {run.unwritable}", where=where)
    if run.elsewhere and not run.is_remote:
        hint = "send messages where it was started"
        return SubdeckError(f"{name} belongs to another machine, boot or pid namespace", where=where, hint=hint)
    if run.meta.talk is None:
        hint = "wait until it finishes, or stop it; then continue its conversation"
        return SubdeckError(f"{name} was started by an earlier subdeck and accepts no messages", where=where, hint=hint)
    if not run.can_talk:
        hint = "wait until it finishes, or stop it; then continue its conversation"
        what = f"{name} is non-interactive: its agent accepts no messages while it runs"
        return SubdeckError(what, where=where, hint=hint, code="run.not_interactive")
    return None


def not_by_hand(run: RunSnapshot) -> SubdeckError | None:
    """Return why a run of this user cannot be opened in the agent; None if it can, also after its end."""
    name, why = f"run {run.meta.short_id}", run.why_not_by_hand
    if run.newer_schema or (run.unwritable and not run.has_ended):
        return refused(run)
    kind = RunBusy if run.is_taken_over else SubdeckError
    return kind(f"cannot open {name} in the agent: {why}", where=run.run_id) if why else None


def _goes_on(run: RunSnapshot) -> str:
    """Return how to continue the conversation of a run that has ended."""
    if not run.child_session_id:
        return "it has no saved conversation to continue"
    preset = one_line(run.meta.preset, 80)
    whom = (f'"{preset}"' if " " in preset else preset) or "--no-preset"
    return f"subdeck run {whom} TASK --session-id {one_line(run.child_session_id, 200)} continues its conversation"


def _put(
    project: paths.Project,
    run: RunSnapshot,
    kind: EntryKind,
    *,
    by: str,
    text: str = "",
    request: str = "",
    verdict: Verdict | None = None,
    read: str = "",
) -> Sent:
    run_dir = project.run_dir(run.run_id)
    read_from = _size(os.path.join(run_dir, paths.EVENTS))
    try:
        entry = put(run_dir, kind, by=by, text=text, request=request, verdict=verdict, read=read)
    except InboxClosed:
        raise RunBusy(
            f"too late: run {run.meta.short_id} has just finished",
            where=run.run_id,
            hint=_goes_on(run),
            code="run.finished",
        ) from None
    except OSError as error:
        what = f"cannot write it for run {run.meta.short_id}: {error.strerror}"
        raise SubdeckError(what, where=run_dir) from error
    if run.is_remote:
        see_to_relay(project)
    else:
        wake(run.run_id, run_dir)
    return Sent(run.run_id, entry.id, kind, read_from)


def wake(run_id: str, run_dir: str) -> None:
    """Make the wrapper read its inbox now, as it also does on its own. A wrapper that the signal would kill is
    skipped.
    """
    try:
        for pid, started in living_wrappers(run_id, run_dir).items():
            if processes.catches(pid, signal.SIGUSR1):
                processes.send(pid, signal.SIGUSR1, started)
    except OSError:
        return


def _size(path: str) -> int:
    try:
        return os.lstat(path).st_size
    except OSError:
        return 0


class Reception:
    """Reads the outcome of a sent entry in a run's events."""

    def __init__(self, project: paths.Project, sent: Sent) -> None:
        self._sent = sent
        self._events = EventTail(os.path.join(project.run_dir(sent.run_id), paths.EVENTS), sent.read_from)
        self.outcome: Outcome | None = None
        """None until anything is known."""

    @property
    def is_settled(self) -> bool:
        return self.outcome is not None and self.outcome.state is not MessageState.ACCEPTED

    def read(self, run: RunSnapshot | None) -> None:
        """Read new events; `run` is its state before, None for a deleted run."""
        for event in self._events.read():
            if not self.is_settled:
                self.outcome = self._outcome(event) or self.outcome
        if not self.is_settled and (run is None or run.has_ended):
            why = "the run was deleted" if run is None else f"the run ended first: {run.reason}"
            self.outcome = Outcome(MessageState.LATE, why)

    def _outcome(self, event: Event) -> Outcome | None:
        match event:
            case Message() if event.id == self._sent.id:
                return Outcome(event.state, event.reason)
            case Decision() if event.message == self._sent.id:
                return Outcome(MessageState.DELIVERED)
            case Interrupted() if self._sent.kind is EntryKind.INTERRUPT:
                return Outcome(MessageState.DELIVERED)  # one of several interrupts is enough
            case _:
                return None
