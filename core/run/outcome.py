"""The only place that decides how a run ended, and what counts as a structured result; pure.

If an agent continues after a denial, its model has replied since: a text, a thought, or a further call that ran. An
agent that ends its turn without any of these was ended by the denial, and its last text is from before it.
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
"""Registered only in subagents, by the extension `finalize.ts`."""

INSTRUCTION = (
    f"When your task is done, call the tool {FINALIZE_TOOL} as your final action, alone in its message: with status "
    "SUCCESS and your whole answer as result, or with status ERROR and the reason as error. Text outside that call is "
    "not returned."
)
"""The line about it in the agent's system prompt."""


class InvalidPayload(Exception):
    """No valid structured result was returned; the message says why."""


def read_payload(payload: Mapping[str, Any] | None) -> Finalized:
    """Return the structured result. Raises InvalidPayload."""
    if payload is None:
        raise InvalidPayload(f"{FINALIZE_TOOL} was not called")
    if fault := fault_of(payload):
        raise InvalidPayload(fault)
    result, error = _text(payload, "result"), _text(payload, "error")
    if error is not None:
        return Finalized(FinalizeStatus.ERROR, result, error)
    return Finalized(FinalizeStatus.SUCCESS, result)


def fault_of(payload: Mapping[str, Any]) -> str:
    """Return why a payload is not a valid result; empty if it is."""
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
    """Return the agent's structured result. Raises InvalidPayload, with the fault of a refused call."""
    if facts.finalized is None and facts.refused:
        raise InvalidPayload(f"the call to {FINALIZE_TOOL} was refused: {facts.refused}")
    return read_payload(facts.finalized)


def _text(payload: Mapping[str, Any], name: str) -> str | None:
    value = payload.get(name)
    return value if isinstance(value, str) and value.strip() else None


def feedback(fault: str) -> str:
    """Return the next prompt for the same agent session."""
    return (
        f"Your last turn did not return a result: {fault}. Do not repeat the work. Call "
        f"{FINALIZE_TOOL} now, alone in its message: SUCCESS with your whole answer as result, or "
        "ERROR with the reason as error."
    )


class StreamFacts(Struct, frozen=True):
    """The reports of an agent's stream so far, the basis of `outcome.decide`."""

    finished: bool = False
    """Whether a positive terminal event was seen, and nothing after it revoked it."""
    final_text: str | None = None
    """Last assistant message with non-blank text, even if it is incomplete."""
    partial: bool = False
    """Whether `final_text` is incomplete."""
    stop_reason: str | None = None
    """Of the last assistant message, like `error_message`; pi's words are `stop`, `length`, `toolUse`, `error` and
    `aborted`, others are the model's own.
    """
    error_message: str | None = None
    usage: Usage = Usage()
    model: str = ""
    """`provider/id` as the agent reports it."""
    session_id: str | None = None
    conversation: str | None = None
    """Where the agent keeps it, if its stream reports that."""
    ended: RunReason | None = None
    """Why the agent ended the run before it had finished: it reached its own limit, or could not continue."""
    silent: bool = False
    """No output yet, from an agent that writes at once after a successful start."""
    finalized: dict[str, Any] | None = None
    """Arguments of the agent's last successful `subagent_finalize` call."""
    refused: str = ""
    """Fault of the last such call, if the tool refused it."""
    handing_over: bool = False
    """The last assistant message only calls `subagent_finalize`: no other turn follows, unless the call is refused."""
    calling: bool = False
    """A message of the model that `usage` lacks so far calls a tool, so that another turn follows."""
    denied: str = ""
    """What was denied, or not answered, in the turn that ended, if the model did nothing after it."""
    unverified: bool = False
    """The program cannot report errors, so the end of a turn proves nothing."""
    unreadable: int = 0
    """Lines so far that were not events."""

    @property
    def turns(self) -> int:
        """Number of messages from the model, including an unpaid one that calls tools."""
        return self.usage.turns + self.calling

    @property
    def wants_turn(self) -> bool:
        """Whether the last message calls tools, so that another turn follows."""
        return self.calling or (self.stop_reason == "toolUse" and not self.handing_over)


class ChildExit(Struct, frozen=True):
    """How the agent process ended: an exit code or the name of a signal."""

    code: int | None = None
    signal: str | None = None
    """Such as `SIGKILL`."""

    @classmethod
    def of(cls, returncode: int) -> ChildExit:
        """Read `Popen.returncode`, in which negative numbers are signals."""
        if returncode >= 0:
            return cls(code=returncode)
        try:
            return cls(signal=signals.Signals(-returncode).name)
        except ValueError:
            return cls(signal=f"signal {-returncode}")


class Failure(Struct, frozen=True):
    """A failure that the agent did not cause: it could not be started, or its wrapper had a fault."""

    reason: RunReason
    """`agent_missing` or `start_failed`; `lost` once there was an agent process."""
    message: str

    @classmethod
    def of_start(cls, error: OSError, program: str) -> Failure:
        """Tell a program that is missing or cannot be executed from all other errors of a spawn."""
        cause = error.strerror or str(error)
        about_program = error.filename in (None, program)
        if about_program and error.errno in (errno.ENOENT, errno.EACCES, errno.ENOTDIR):
            return cls(RunReason.AGENT_MISSING, f"cannot execute the agent program {program}: {cause}")
        where = "" if about_program else f" ({error.filename})"
        return cls(RunReason.START_FAILED, f"cannot start the agent program {program}: {cause}{where}")


class Outcome(Struct, frozen=True):
    """The result of a run, as written to `result.json`."""

    status: RunStatus
    reason: RunReason
    message: str | None = None
    """One sentence for the user; None for a completed run."""
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
"""How a run ended, in words for the user."""


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
    """Decide status and reason of a run from the facts known once its agent is gone.

    With `finalize`, only the structured result counts as its answer. `exit` stays None without an agent process,
    `signal` names one that the wrapper got without a stop request, `figures` say how far the limit was exceeded. An
    agent that had finished before something ended it has finished: then `stop`, `limit` and `signal` only explain its
    exit.
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
    """Return the reason of a run that a stop request ended, and a sentence that names its sender."""
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


# `re.match` compiles these at first use: a wrapper starts its agent long before a run ends.
_STACK = r"\s+at |Node\.js v\d|file://|\s*\^+\s*$"
_ERROR = r"(?:Uncaught )?\w*Error\b.*:"


def _why_not(facts: StreamFacts, words: str) -> str:
    """Return why an agent did not start: its error, or its last words if they contain that error."""
    error = " ".join(_message_lines(facts.error_message or "")).strip()
    return words if error in words else error


def _message_lines(text: str) -> list[str]:
    """Return the lines of a text without blank lines and the lines of a stack trace."""
    return [line for line in text.splitlines() if line.strip() and not re.match(_STACK, line)]


def last_words(stderr: str) -> str:
    """Return the line of stderr that names an error, otherwise its last lines."""
    lines = _message_lines(stderr[-8192:])
    for line in reversed(lines):
        if re.match(_ERROR, line.lstrip()):
            return line
    return " ".join(lines[-4:])


# --- a turn that was ended by a denial -------------------------------------------------------------------------------

UNANSWERED = "the agent ended its turn without an answer to its request"
ENDED_BY = "the agent ended its turn after a request was denied"


class Denials:
    """Takes the events of one agent process in order, and each denial as it happens."""

    def __init__(self) -> None:
        self.words = ""
        """The denial as a sentence; empty if there was none, or the model has worked since."""
        self._has_result = False
        """Whether the denied call has ended, so that a later call may be the model's next one."""
        self._later: set[str] = set()
        """Calls reported since then."""

    def denied(self, what: str, *, is_reported: bool = False) -> None:
        """Record a denial; with `is_reported` the agent has already reported that its call failed."""
        self.words = f"{ENDED_BY}: {what}" if what else ENDED_BY
        self._begin(is_reported)

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
