"""The only place that decides how a run ended, and what counts as a result that its child handed over; pure.

An agent that goes on after a denial has had an answer from the model since: a text, a thought, or a further call
that was carried out. An agent that ends its turn with none of these was ended by the denial, and its last text is what
it said before it.
"""

from __future__ import annotations

import errno
import re
import signal as signals
from collections.abc import Mapping
from typing import Any

from msgspec import Struct

from ..text.plain import one_line, plain
from .events import AssistantText, Decision, Event, Interrupted, Message, Thinking, ToolCall, ToolResult
from .model import (
    STATUS_OF,
    Finalized,
    FinalizeStatus,
    MessageState,
    RunReason,
    RunStatus,
    StopReason,
    StopRequest,
    Usage,
    Verdict,
    by_session,
)

FINALIZE_TOOL = "subagent_finalize"
"""Registered in children only, by the extension `finalize.ts`."""

INSTRUCTION = (
    f"When your task is done, call the tool {FINALIZE_TOOL} as your final action, alone in its message: with status "
    "SUCCESS and your whole answer as result, or with status ERROR and the reason as error. Text outside that call is "
    "not returned."
)
"""The one line about it in the child's system prompt."""


class InvalidPayload(Exception):
    """Nothing that counts as a result was handed over; the message says why."""


def read_payload(payload: Mapping[str, Any] | None) -> Finalized:
    """Return what was handed over. Raises InvalidPayload."""
    if payload is None:
        raise InvalidPayload(f"{FINALIZE_TOOL} was not called")
    if fault := fault_of(payload):
        raise InvalidPayload(fault)
    result, error = _text(payload, "result"), _text(payload, "error")
    if error is not None:
        return Finalized(FinalizeStatus.ERROR, result, error)
    return Finalized(FinalizeStatus.SUCCESS, result)


def fault_of(payload: Mapping[str, Any]) -> str:
    """Say why a payload does not count as a result; empty where it does."""
    result, error, status = _text(payload, "result"), _text(payload, "error"), payload.get("status")
    match status:
        case "SUCCESS" if result is None:
            return "SUCCESS requires a non-empty result"
        case "SUCCESS":
            return "" if error is None else "SUCCESS cannot have an error"
        case "ERROR":
            return "ERROR requires a non-empty error" if error is None else ""
        case str():
            return f'the status is "{one_line(status, 40)}", expected SUCCESS or ERROR'
        case _:
            return "the status must be SUCCESS or ERROR"


def handed_over(facts: StreamFacts) -> Finalized:
    """Return what the child handed over. Raises InvalidPayload; it says what a refused call was."""
    if facts.finalized is None and facts.refused:
        raise InvalidPayload(f"the call to {FINALIZE_TOOL} was refused: {facts.refused}")
    return read_payload(facts.finalized)


def _text(payload: Mapping[str, Any], name: str) -> str | None:
    value = payload.get(name)
    return value if isinstance(value, str) and value.strip() else None


def feedback(fault: str) -> str:
    """Return what the same child session is asked next."""
    return (
        f"Your last turn did not return a result: {fault}. Do not repeat the work. Call "
        f"{FINALIZE_TOOL} now, alone in its message: SUCCESS with your whole answer as result, or "
        "ERROR with the reason as error."
    )


class StreamFacts(Struct, frozen=True):
    """What the child's stream has said so far; what `outcome.decide` decides from."""

    finished: bool = False
    """A positive terminal event was seen, and nothing after it took it back."""
    final_text: str | None = None
    """Last assistant message with non-blank text, be it only as far as it was written."""
    partial: bool = False
    """Whether `final_text` breaks off."""
    stop_reason: str | None = None
    """Of the last assistant message, as is `error_message`; `stop`, `length`, `toolUse`, `error` or `aborted` in pi's
    words, else the model's own."""
    error_message: str | None = None
    usage: Usage = Usage()
    model: str = ""
    """`provider/id` as the child reports it."""
    session_id: str | None = None
    conversation: str | None = None
    """Where the agent keeps it, where its stream says so."""
    ended: RunReason | None = None
    """Why the agent ended the run by itself before it had finished: a limit of its own, or nothing to go on with."""
    silent: bool = False
    """It has said nothing yet, of an agent that does so at once when it could be started."""
    finalized: dict[str, Any] | None = None
    """What the child handed to its last successful `subagent_finalize` call."""
    refused: str = ""
    """What was wrong with the last such call, where the tool refused it."""
    handing_over: bool = False
    """The last assistant message calls nothing but `subagent_finalize`: no other turn follows, unless it is refused."""
    calling: bool = False
    """A message of the model that `usage` does not hold yet calls a tool, so that another turn follows it."""
    denied: str = ""
    """What was denied, or not answered, in the turn that ended, where nothing of the model came after it."""
    unverified: bool = False
    """The program cannot report errors, so that the end of a turn proves nothing."""
    unreadable: int = 0
    """Lines so far that were not events."""

    @property
    def turns(self) -> int:
        """How many messages the model has written, with one that is not paid for yet where it calls tools."""
        return self.usage.turns + self.calling

    @property
    def wants_turn(self) -> bool:
        """Whether the last message calls tools, so that another turn follows."""
        return self.calling or (self.stop_reason == "toolUse" and not self.handing_over)


class ChildExit(Struct, frozen=True):
    """How the child process ended: an exit code or the name of a signal."""

    code: int | None = None
    signal: str | None = None
    """As `SIGKILL`."""

    @classmethod
    def of(cls, returncode: int) -> ChildExit:
        """Read what `Popen.returncode` says: negative numbers are signals."""
        if returncode >= 0:
            return cls(code=returncode)
        try:
            return cls(signal=signals.Signals(-returncode).name)
        except ValueError:
            return cls(signal=f"signal {-returncode}")


class Failure(Struct, frozen=True):
    """Why a run failed by no doing of its child: it could not be started, or its wrapper had a fault."""

    reason: RunReason
    """`agent_missing` or `start_failed`; `lost` once there was a child."""
    message: str

    @classmethod
    def of_start(cls, error: OSError, program: str) -> Failure:
        """Tell a program that is missing or cannot be executed from everything else that a spawn may say."""
        cause = error.strerror or str(error)
        about_program = error.filename in (None, program)
        if about_program and error.errno in (errno.ENOENT, errno.EACCES, errno.ENOTDIR):
            return cls(RunReason.AGENT_MISSING, f"cannot execute the agent program {program}: {cause}")
        where = "" if about_program else f" ({error.filename})"
        return cls(RunReason.START_FAILED, f"cannot start the agent program {program}: {cause}{where}")


class Outcome(Struct, frozen=True):
    """How a run ended, as it goes into `result.json`."""

    status: RunStatus
    reason: RunReason
    message: str | None = None
    """For a person, one sentence; None for a completed run."""
    exit_code: int | None = None
    signal: str | None = None
    stop_reason: str | None = None


REASONS: dict[RunReason, str] = {
    RunReason.DONE: "the agent finished its answer",
    RunReason.TRUNCATED: "the answer stops at the model's length limit",
    RunReason.FINALIZED: "the agent returned its structured result",
    RunReason.UNVERIFIED: "the agent ended its turn, but its program cannot report errors: check the answer",
    RunReason.DENIED: "the agent ended its turn after a request was denied or not answered",
    RunReason.MODEL_ERROR: "the model answered with an error",
    RunReason.EMPTY_ANSWER: "the agent finished without writing any text",
    RunReason.AGENT_EXIT: "the agent exited before it had finished",
    RunReason.AGENT_MISSING: "the agent's program was not found",
    RunReason.START_FAILED: "the agent could not be started",
    RunReason.FINALIZE_ERROR: "the agent returned an error",
    RunReason.FINALIZE_MISSING: "the agent returned no structured result",
    RunReason.LOST: "its wrapper died unexpectedly",
    RunReason.STOPPED: "the run was stopped",
    RunReason.KILLED: "the run was killed",
    RunReason.CANCELLED: "the caller stopped waiting for it",
    RunReason.SIGNAL: "its wrapper got a signal",
    RunReason.TIMEOUT: "the run exceeded its time limit",
    RunReason.MAX_TURNS: "the run reached its turn limit",
    RunReason.STALLED: "the agent was idle longer than the stall limit",
    RunReason.INTERRUPTED: "the agent was interrupted",
    RunReason.BUDGET: "the run reached its budget",
    RunReason.LEASE: "the run lost contact and its lease expired",
}
"""How a run ended, in words for a person."""


def decide(
    facts: StreamFacts,
    *,
    exit: ChildExit | None = None,  # noqa: A002 - the plain word; the builtin is for interactive use
    stop: StopRequest | None = None,
    limit: RunReason | None = None,
    figures: str = "",
    signal: str | None = None,
    failure: Failure | None = None,
    stderr: str = "",
    finalize: bool = False,
) -> Outcome:
    """Decide status and reason of a run from what is known when its child is gone.

    With `finalize` what the child handed over by the tool is its only answer. `exit` is None when there never was a
    child, `signal` names one that the wrapper got without a stop request, `figures` say how far
    the limit was overstepped. A child that had finished before something
    ended it has finished: then `stop`, `limit` and `signal` only say why it went away.
    """
    message: str | None
    if facts.finished and facts.stop_reason != "aborted":
        reason, message = _finished(facts, finalize)
    elif stop is not None:
        reason, message = stopped(stop)
    elif limit is not None:
        reason, message = limit, f"{REASONS[limit]}: {figures}" if figures else REASONS[limit]
    elif signal is not None:
        reason, message = RunReason.SIGNAL, f"its wrapper was ended by {signal}"
    elif facts.ended is RunReason.INTERRUPTED and facts.denied:
        reason, message = RunReason.DENIED, plain(facts.denied)
    elif facts.ended is not None:
        reason, message = facts.ended, plain(facts.error_message or REASONS.get(facts.ended, ""))
    elif failure is not None:
        reason, message = failure.reason, plain(failure.message)
    elif facts.finished:
        reason, message = RunReason.AGENT_EXIT, _with("the agent aborted its own answer", facts.error_message)
    else:
        reason, message = _unfinished(facts, exit, stderr)
    return Outcome(
        status=STATUS_OF[reason],
        reason=reason,
        message=message,
        exit_code=exit.code if exit else None,
        signal=exit.signal if exit else None,
        stop_reason=facts.stop_reason,
    )


def _finished(facts: StreamFacts, finalize: bool) -> tuple[RunReason, str | None]:
    if facts.stop_reason == "error" or facts.error_message is not None:
        return RunReason.MODEL_ERROR, _model_error(facts)
    if facts.denied and facts.finalized is None:
        return RunReason.DENIED, plain(facts.denied)
    if finalize:
        return _handed_over(facts)
    if facts.final_text is None:
        if facts.finalized is not None:
            return RunReason.FINALIZED, None
        if facts.stop_reason == "length":
            return RunReason.EMPTY_ANSWER, "the model reached its length limit before it wrote any text"
        return RunReason.EMPTY_ANSWER, "the agent finished without writing any text"
    if facts.stop_reason == "length":
        return RunReason.TRUNCATED, None
    return RunReason.UNVERIFIED if facts.unverified else RunReason.DONE, None


def _handed_over(facts: StreamFacts) -> tuple[RunReason, str | None]:
    try:
        finalized = handed_over(facts)
    except InvalidPayload as problem:
        return RunReason.FINALIZE_MISSING, f"the agent returned no structured result: {problem}"
    if finalized.error is not None:
        return RunReason.FINALIZE_ERROR, plain(finalized.error)
    return RunReason.FINALIZED, None


def stopped(stop: StopRequest) -> tuple[RunReason, str]:
    """Return the reason of a run that ends by a stop request, and a sentence that says who made it."""
    by = by_session(stop.by)
    if stop.reason == StopReason.UNREAD:
        return RunReason.CANCELLED, "cancelled: output pipe closed"
    if stop.reason == StopReason.CANCELLED:
        return RunReason.CANCELLED, f"cancelled{by}"
    if stop.force:
        return RunReason.KILLED, f"killed{by}"
    return RunReason.STOPPED, f"stopped{by}"


def _unfinished(facts: StreamFacts, exit_: ChildExit | None, stderr: str) -> tuple[RunReason, str]:
    if exit_ is None:
        return RunReason.AGENT_EXIT, _with("the agent exited before it finished", last_words(stderr))
    if exit_.code == 0 and facts.error_message is not None:
        return RunReason.MODEL_ERROR, _model_error(facts)
    if facts.silent and exit_.code:
        return RunReason.START_FAILED, _with("the agent could not be started", _why_not(facts, last_words(stderr)))
    how = f"was killed by {exit_.signal}" if exit_.signal else f"exited with code {exit_.code}"
    message = _with(f"the agent {how} before it finished", last_words(stderr))
    if facts.error_message is not None:
        message += f" (last model error: {one_line(facts.error_message, 200)})"
    return RunReason.AGENT_EXIT, message


def _model_error(facts: StreamFacts) -> str:
    text = plain(facts.error_message or "").strip()
    return text[:4000] or "the model ended with an error without a message"


def _with(sentence: str, detail: str | None) -> str:
    text = one_line(detail or "", 600)
    return f"{sentence}: {text}" if text else sentence


# Compiled at their first use, by `re.match`: a wrapper starts its child before it comes to an end.
_STACK = r"\s+at |Node\.js v\d|file://|\s*\^+\s*$"
_ERROR = r"(?:Uncaught )?\w*Error\b.*:"


def _why_not(facts: StreamFacts, words: str) -> str:
    """Return why an agent did not start: the error that it answered with, or its last words if they say more."""
    error = " ".join(_told(facts.error_message or "")).strip()
    return words if error in words else error


def _told(text: str) -> list[str]:
    """Return the lines of a text without those of a stack trace, which say nothing to a person."""
    return [line for line in text.splitlines() if line.strip() and not re.match(_STACK, line)]


def last_words(stderr: str) -> str:
    """Return the line of stderr that names an error, else its last lines."""
    lines = _told(stderr[-8192:])
    for line in reversed(lines):
        if re.match(_ERROR, line.lstrip()):
            return line
    return " ".join(lines[-4:])


# --- a turn that was ended by a denial -------------------------------------------------------------------------------

UNANSWERED = "the agent ended its turn without an answer to its request"
ENDED_BY = "the agent ended its turn after a request was denied"


class Denials:
    """Takes the events of one child in their order, and each denial when it is given."""

    def __init__(self) -> None:
        self.words = ""
        """What was denied, as a sentence; empty where the model has been at work since, or nothing was."""
        self._has_result = False
        """Whether the denied call has ended, so that a call told from then on may be the model's next one."""
        self._later: set[str] = set()
        """Calls told since then."""

    def denied(self, what: str, *, is_told: bool = False) -> None:
        """Take a denial; with `is_told` the agent has said already that its call failed."""
        self.words = f"{ENDED_BY}: {what}" if what else ENDED_BY
        self._begin(is_told)

    def saw(self, event: Event) -> None:
        match event:
            case Decision(verdict=Verdict.WITHDRAWN):
                if not self.words:
                    self.words = UNANSWERED
                    self._begin(False)
            case _ if not self.words:
                return
            case AssistantText(text=text) | Thinking(text=text):
                if text.strip():
                    self.words = ""
            case ToolCall(tool_call_id=call) if self._has_result:
                self._later.add(call)
            case ToolResult(tool_call_id=call, is_error=is_error):
                self._has_result = True
                if call in self._later and not is_error:
                    self.words = ""
            case Message(state=MessageState.DELIVERED) | Interrupted():
                self.words = ""
            case _:
                pass

    def _begin(self, has_result: bool) -> None:
        self._has_result = has_result
        self._later.clear()
