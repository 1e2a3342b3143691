"""Say in one line why a run is not done, or how it ended; pure."""

from __future__ import annotations

from datetime import datetime

from msgspec import Struct

from ..run.describe import NOTHING, elapsed, moment
from ..run.model import RunReason, RunResult, RunSnapshot, RunStatus, StopRequest
from ..text.plain import one_line

BETWEEN = " · "
MESSAGE = 300
"""Characters of a message of an end."""

REASONS: dict[RunReason, str] = {
    RunReason.DONE: "the agent finished its answer",
    RunReason.TRUNCATED: "the answer stops at the model's length limit",
    RunReason.FINALIZED: "the agent handed over its result",
    RunReason.MODEL_ERROR: "the model answered with an error",
    RunReason.EMPTY_ANSWER: "the agent finished without writing any text",
    RunReason.AGENT_EXIT: "the agent went away before it had finished",
    RunReason.AGENT_MISSING: "the agent's program was not found",
    RunReason.START_FAILED: "the agent could not be started",
    RunReason.FINALIZE_ERROR: "the agent handed over an error",
    RunReason.FINALIZE_MISSING: "the agent handed over no result",
    RunReason.LOST: "its wrapper died without a word",
    RunReason.STOPPED: "somebody stopped it",
    RunReason.KILLED: "somebody killed it",
    RunReason.CANCELLED: "who waited for it gave up",
    RunReason.SIGNAL: "its wrapper got a signal",
    RunReason.TIMEOUT: "it ran longer than its time limit",
    RunReason.MAX_TURNS: "it reached its limit of turns",
    RunReason.STALLED: "it was silent longer than its stall limit",
}

_TOLD_BY_ANOTHER = frozenset(
    (RunReason.MODEL_ERROR, RunReason.FINALIZE_ERROR, RunReason.AGENT_MISSING, RunReason.START_FAILED)
)
"""Ends whose message is not a sentence of ours, so that it says too little alone."""


class Process(Struct, frozen=True):
    """A process of a run, proven by its pid together with its start time."""

    pid: int
    alive: bool


class Signs(Struct, frozen=True, kw_only=True):
    """What is known beside the snapshot, as of one look."""

    wrapper: Process | None = None
    """None where no pid was written, or those written are not of this machine, boot and pid namespace."""
    child: Process | None = None
    elsewhere: str = ""
    """The host that holds the run when it is not this one."""
    waits_for: str = ""
    """`slot` or `session` while queued."""
    calls: tuple[str, ...] = ()
    """Tool calls without a result, oldest first: `bash: pytest -q`."""
    retry: str = ""
    """What is being tried again, when that was the last event."""
    stop: StopRequest | None = None
    result: RunResult | None = None


def why(run: RunSnapshot, signs: Signs, now: datetime) -> str:
    """Answer the line, plain."""
    if run.is_terminal:
        parts = _ended(run, signs.result, now)
    elif run.unknown:
        where = f"another machine ({one_line(signs.elsewhere, 60)})" if signs.elsewhere else "another machine"
        parts = [f"{run.status} when last seen", f"{where} holds it: its processes are not seen here", _age(run, now)]
    elif run.status is RunStatus.QUEUED:
        parts = [f"queued {elapsed(run, now)}", _queue(run, signs.waits_for), _processes(signs), _wish(signs.stop)]
    else:
        tries = f" (try {run.attempt})" if run.attempt > 1 else ""
        parts = [
            f"running {elapsed(run, now)}{tries}",
            _processes(signs),
            _age(run, now),
            _wish(signs.stop),
            _waiting(run, signs),
        ]
    return BETWEEN.join(filter(None, parts))


def ago(seconds: float) -> str:
    """`3 s`, `4 min`, `2 h`, `5 days`; never negative, whatever the wall clock did."""
    whole = max(0, int(seconds))
    if whole < 120:
        return f"{whole} s"
    if whole < 7200:
        return f"{whole // 60} min"
    return f"{whole // 3600} h" if whole < 48 * 3600 else f"{whole // 86400} days"


def _ended(run: RunSnapshot, result: RunResult | None, now: datetime) -> list[str]:
    took = elapsed(run, now)
    parts = [f"{run.status} after {took}" if took != NOTHING else f"{run.status}, never started", _reason(run)]
    if result is not None:
        if result.exit_code is not None:
            parts.append(f"exit code {result.exit_code}")
        if result.signal:
            parts.append(f"by {one_line(result.signal, 20)}")
        if result.attempts > 1:
            parts.append(f"{result.attempts} tries")
    return parts


def _reason(run: RunSnapshot) -> str:
    words = REASONS[run.reason] if run.reason else ""
    message = "" if run.status is RunStatus.COMPLETED else one_line(run.message, MESSAGE)
    if not message or not words:
        return message or words
    return f"{words}: {message}" if run.reason in _TOLD_BY_ANOTHER else message


def _queue(run: RunSnapshot, waits_for: str) -> str:
    if waits_for == "session":
        return "waits for its child session, with which another run goes on"
    if waits_for != "slot":
        return "has not started yet"
    match run.ahead:
        case None:
            return "waits for a slot"
        case 0:
            return "waits for a slot, next in line"
        case ahead:
            return f"waits for a slot, {ahead} ahead"


def _processes(signs: Signs) -> str:
    """Say of the nearest process that is known whether it lives; that the wrapper has gone outweighs the rest."""
    wrapper, child = signs.wrapper, signs.child
    if wrapper is not None and not wrapper.alive:
        return f"its wrapper, pid {wrapper.pid}, is gone: it is about to be told as lost"
    if child is not None:
        return f"pid {child.pid} {'alive' if child.alive else 'gone, its end is being written'}"
    return f"wrapper pid {wrapper.pid} alive" if wrapper is not None else ""


def _age(run: RunSnapshot, now: datetime) -> str:
    last = moment(run.last_event_at) if run.last_event_at else None
    return f"last event {ago((now - last).total_seconds())} ago" if last else "no event yet"


def _wish(stop: StopRequest | None) -> str:
    if stop is None:
        return ""
    by = f" by {one_line(stop.by, 40)}" if stop.by else ""
    return f"{'to be killed' if stop.force else 'asked to stop'}{by}"


def _waiting(run: RunSnapshot, signs: Signs) -> str:
    first, *others = signs.calls or ("",)
    if first:
        return f"waiting for {first}" + (f" and {len(others)} more" if others else "")
    if run.sentence:
        return "writing"
    return signs.retry or "no tool runs: waiting for the model"
