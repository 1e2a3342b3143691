"""Say in one line why a run is not done, or how it ended; pure."""

from __future__ import annotations

import os
from datetime import datetime
from typing import TYPE_CHECKING

from msgspec import Struct

from .. import paths
from ..run import artifacts
from ..run.describe import NOTHING, elapsed, moment
from ..run.model import RunReason, RunResult, RunStatus, StopRequest, WaitsFor, newer_schema
from ..run.snapshot import Ended, Queued, Running, RunSnapshot
from ..text.plain import one_line

if TYPE_CHECKING:
    from ..run.events import Event, RunStarted, ToolCall
    from ..run.snapshot import RunSnapshot
    from ..system.line_file import LineTail

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
    calls: tuple[str, ...] = ()
    """Tool calls without a result, oldest first: `bash: pytest -q`."""
    retry: str = ""
    """What is being tried again, when that was the last event."""
    stop: StopRequest | None = None
    result: RunResult | None = None


def why(run: RunSnapshot, signs: Signs, now: datetime) -> str:
    """Return the line, plain."""
    if run.newer_schema:
        return newer_schema(run.newer_schema)
    return BETWEEN.join(filter(None, _elsewhere(run, signs, now) if run.elsewhere else _parts(run, signs, now)))


def ago(seconds: float) -> str:
    """`3 s`, `4 min`, `2 h`, `5 days`; never negative, whatever the wall clock did."""
    whole = max(0, int(seconds))
    if whole < 120:
        return f"{whole} s"
    if whole < 7200:
        return f"{whole // 60} min"
    return f"{whole // 3600} h" if whole < 48 * 3600 else f"{whole // 86400} days"


def _elsewhere(run: RunSnapshot, signs: Signs, now: datetime) -> list[str]:
    where = f"another machine ({one_line(signs.elsewhere, 60)})" if signs.elsewhere else "another machine"
    return [f"{run.status} when last seen", f"{where} holds it: its processes are not seen here", _age(run, now)]


def _parts(run: RunSnapshot, signs: Signs, now: datetime) -> list[str]:
    took = elapsed(run, now)
    match run.state:
        case Queued() as queued:
            return [f"queued {took}", _queue(queued), _processes(signs), _wish(signs.stop)]
        case Running() as running:
            tries = f" (try {running.attempt})" if running.attempt > 1 else ""
            doing = _waiting(running, signs)
            return [f"running {took}{tries}", _processes(signs), _age(run, now), _wish(signs.stop), doing]
        case Ended() as end:
            return _ended(end, took, signs.result)


def _ended(end: Ended, took: str, result: RunResult | None) -> list[str]:
    parts = [f"{end.status} after {took}" if took != NOTHING else f"{end.status}, never started", _reason(end)]
    if result is not None:
        if result.exit_code is not None:
            parts.append(f"exit code {result.exit_code}")
        if result.signal:
            parts.append(f"by {one_line(result.signal, 20)}")
        if result.attempts > 1:
            parts.append(f"{result.attempts} tries")
    return parts


def _reason(end: Ended) -> str:
    words = REASONS[end.reason]
    message = "" if end.status is RunStatus.COMPLETED else one_line(end.message, MESSAGE)
    if not message:
        return words
    return f"{words}: {message}" if end.reason in _TOLD_BY_ANOTHER else message


def _queue(queued: Queued) -> str:
    match queued:
        case Queued(waits_for=WaitsFor.SESSION):
            return "waits for its child session, with which another run goes on"
        case Queued(waits_for=WaitsFor.SLOT, ahead=0):
            return "waits for a slot, next in line"
        case Queued(waits_for=WaitsFor.SLOT, ahead=ahead):
            return f"waits for a slot, {ahead} ahead"
        case _:
            return "has not started yet"


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


def _waiting(running: Running, signs: Signs) -> str:
    first, *others = signs.calls or ("",)
    if first:
        return f"waiting for {first}" + (f" and {len(others)} more" if others else "")
    if running.sentence:
        return "writing"
    return signs.retry or "no tool runs: waiting for the model"


WINDOW = 512 * 1024
"""Bytes before the end of the events where reading begins: a call that is waited for is among the last."""
SUBJECT = 100
"""Characters of what a call is about."""
_SUBJECTS = ("command", "pattern", "query", "path", "file_path", "url")
"""Arguments that say best what a call is about, the best first."""


class DiagnosisReader:
    """Looks at one run again and again; each event is read once."""

    def __init__(self, project: paths.Project, run_id: str) -> None:
        self._run_dir = project.run_dir(run_id)
        self._events_path = os.path.join(self._run_dir, paths.EVENTS)
        self._tail: LineTail | None = None
        self._calls: dict[str, str] = {}
        self._started: RunStarted | None = None
        self._retry = ""
        self.text = ""
        """The last text of the agent that is whole."""

    def read(self, run: RunSnapshot) -> Signs:
        """Return what is known now of a run that stands so."""
        if run.has_ended:
            return Signs(result=artifacts.read_result(self._run_dir))
        from .liveness import is_here

        self._drain()
        stop = artifacts.read_stop(self._run_dir)
        seen = Signs(calls=tuple(self._calls.values()), retry=self._retry, stop=stop)
        facts = artifacts.read_runner(self._run_dir)
        if facts is None:
            return seen
        from msgspec.structs import replace

        if not is_here(facts):
            return replace(seen, elsewhere=facts.host)
        child = self._started
        return replace(
            seen,
            wrapper=_process(facts.pid, facts.pid_started),
            child=_process(child.child_pid, child.child_pid_started) if child else None,
        )

    def _drain(self) -> None:
        from ..run.events import decode_event

        tail = self._tail = self._tail or self._from_near_the_end()
        for line in tail.lines():
            if (event := decode_event(line)) is not None:
                self._apply(event)

    def _from_near_the_end(self) -> LineTail:
        """Begin where the last events do; of those before, the first says which process is the child's."""
        from ..system.line_file import LineTail

        try:
            with open(self._events_path, "rb") as file:
                size = file.seek(0, os.SEEK_END)
                if size <= WINDOW:
                    return LineTail(self._events_path)
                file.seek(0)
                self._apply_line(file.readline(WINDOW))
                self._apply_line(file.readline(WINDOW))
                file.seek(size - WINDOW)
                file.readline()
                return LineTail(self._events_path, file.tell())
        except OSError:
            return LineTail(self._events_path)

    def _apply_line(self, line: bytes) -> None:
        from ..run.events import decode_event

        if (event := decode_event(line)) is not None:
            self._apply(event)

    def _apply(self, event: Event) -> None:
        from ..run.events import AssistantText, Retry, RunStarted, ToolCall, ToolResult

        self._retry = ""
        match event:
            case RunStarted():
                self._started = event
                self._calls.clear()
            case ToolCall():
                self._calls[event.tool_call_id] = _named(event)
            case ToolResult():
                self._calls.pop(event.tool_call_id, None)
            case AssistantText() if event.text.strip():
                self.text = event.text
            case Retry():
                seconds = f" in {event.delay_ms / 1000:g} s" if event.delay_ms else ""
                self._retry = f"retries{seconds}: {one_line(event.reason, SUBJECT)}"
            case _:
                pass


def _named(call: ToolCall) -> str:
    """Say which tool works on what: `bash: pytest -q`."""
    name = one_line(call.tool_name, 60) or "a tool"
    texts = {key: value for key, value in call.args.items() if isinstance(value, str) and value.strip()}
    subject = next((texts[key] for key in (*_SUBJECTS, *texts) if key in texts), "")
    return f"{name}: {one_line(subject, SUBJECT)}" if subject else name


def _process(pid: int, started: int | None) -> Process | None:
    """Return None for a process without a start time: its pid alone proves nothing."""
    from ..system.processes import is_alive

    return None if started is None else Process(pid, is_alive(pid, started))
