"""Explain in one line why a run is not done, or how it ended."""

from __future__ import annotations

import os
import time
from datetime import datetime

from msgspec import Struct

from .. import paths
from ..run import artifacts
from ..run.describe import (
    NOTHING,
    QUEUE_HELD,
    SILENT,
    asked,
    check_words,
    checking_words,
    clock,
    elapsed,
    moment,
    still_running,
    undelivered_words,
    whereabouts,
)
from ..run.events import EventTail, ToolCall, decode_event
from ..run.fold import Fold, OpenCalls
from ..run.model import RunReason, RunResult, RunStatus, StopReason, StopRequest, WaitsFor, by_session, newer_schema
from ..run.outcome import REASONS
from ..run.progress import tool_word
from ..run.snapshot import Ended, Queued, Running, RunSnapshot
from ..system import processes
from ..system.line_file import LineFile
from ..text.plain import one_line
from .liveness import is_here
from .ownership import why_foreign

MESSAGE = 300
"""Characters of the message of a result."""
_FOREIGN_MESSAGES = frozenset(
    (RunReason.MODEL_ERROR, RunReason.FINALIZE_ERROR, RunReason.AGENT_MISSING, RunReason.START_FAILED)
)
"""Reasons whose message is not a sentence by subdeck, so that it needs an introduction."""


class Process(Struct, frozen=True):
    """A process of a run, proven by its pid together with its start time."""

    pid: int
    alive: bool


class Evidence(Struct, frozen=True, kw_only=True):
    """Facts beyond the snapshot, as of one read."""

    wrapper: Process | None = None
    """None if no pid was recorded, or only one of another machine, boot or pid namespace."""
    child: Process | None = None
    elsewhere: str = ""
    """The host that holds the run if it is not this one."""
    foreign: str = ""
    """Why the run is not this user's; its processes were then not examined."""
    calls: tuple[str, ...] = ()
    """Tool calls without a result, oldest first: `bash: pytest -q`."""
    silence: float | None = None
    """Seconds for which the run has been idle; None if it is not."""
    retry: str = ""
    """The current retry, while that is the last event."""
    stop: StopRequest | None = None
    faults: tuple[str, ...] = ()
    """Faults in records of an unfinished run, in words."""
    result: RunResult | None = None


def explain(run: RunSnapshot, evidence: Evidence, now: datetime) -> str:
    if run.foreign:
        return " · ".join(filter(None, _foreign(run, evidence)))
    if run.newer_schema:
        return newer_schema(run.newer_schema)
    parts = _elsewhere(run, evidence, now) if run.elsewhere else _parts(run, evidence, now)
    return " · ".join(filter(None, (*parts, run.fault, *evidence.faults)))


def ago(seconds: float) -> str:
    """`3 s`, `4 min`, `2 h`, `5 days`; never negative, even if the wall clock was set back."""
    whole = max(0, int(seconds))
    if whole < 120:
        return f"{whole} s"
    if whole < 7200:
        return f"{whole // 60} min"
    return f"{whole // 3600} h" if whole < 48 * 3600 else f"{whole // 86400} days"


def _foreign(run: RunSnapshot, evidence: Evidence) -> list[str]:
    stands = f"{run.status} according to its files" if run.newer_schema is None else newer_schema(run.newer_schema)
    return ["untrusted", evidence.foreign, stands, f"subdeck adopt {run.meta.short_id} trusts it"]


def _elsewhere(run: RunSnapshot, evidence: Evidence, now: datetime) -> list[str]:
    if run.unwritable:
        return [f"{run.status} when last seen", f"{run.unwritable}: its result cannot be written", _age(run, now)]
    if where := whereabouts(run):
        return ["unknown", where, f"{run.status} when last seen", _age(run, now), _requested(evidence.stop)]
    where = f"another machine ({one_line(evidence.elsewhere, 60)})" if evidence.elsewhere else "another machine"
    return [f"{run.status} when last seen", f"{where} holds it: its processes are not visible here", _age(run, now)]


def _parts(run: RunSnapshot, evidence: Evidence, now: datetime) -> list[str]:
    took = elapsed(run, now)
    match run.state:
        case Queued() as queued:
            waits = "" if queued.held else whereabouts(run)
            waits = waits or _queue(queued)
            return [f"queued {took}", waits, _processes(evidence), _requested(evidence.stop)]
        case Running() as running:
            tries = f" (attempt {running.attempt})" if running.attempt > 1 else ""
            checking = checking_words(running.checking, now) if running.checking else ""
            doing = checking or _talking(run, running, now) or _waiting(running, evidence)
            parts = [f"running {took}{tries}", whereabouts(run), _processes(evidence), _age(run, now)]
            return [*parts, _requested(evidence.stop), doing, _unsent(running.undelivered)]
        case Ended() as end:
            return [*_ended(end, took, evidence.result), _at_end(run, end)]


def _ended(end: Ended, took: str, result: RunResult | None) -> list[str]:
    parts = [f"{end.status} after {took}" if took != NOTHING else f"{end.status}, never started", _reason(end)]
    if result is not None:
        if result.exit_code is not None:
            parts.append(f"exit code {result.exit_code}")
        if result.signal:
            parts.append(f"by {one_line(result.signal, 20)}")
        if result.attempts > 1:
            parts.append(f"{result.attempts} attempts")
        parts.append(undelivered_words(len(result.undelivered)))
        parts.append(f"check {one_line(check_words(result.check), MESSAGE)}" if result.check else "")
    parts.append(still_running(end.not_ended))
    return parts


def _at_end(run: RunSnapshot, end: Ended) -> str:
    """Return where a remote run was."""
    where = whereabouts(run)
    return where if end.late or not where else f"on {where}"


def _reason(end: Ended) -> str:
    words = REASONS[end.reason]
    message = "" if end.status is RunStatus.COMPLETED else one_line(end.message, MESSAGE)
    if not message:
        return words
    return f"{words}: {message}" if end.reason in _FOREIGN_MESSAGES else message


def _queue(queued: Queued) -> str:
    if queued.held:
        return QUEUE_HELD[0].lower() + QUEUE_HELD[1:]
    match queued.waits_for:
        case WaitsFor.SESSION:
            return "waiting for its agent session, which another run is using"
        case WaitsFor.WORKTREE:
            return "preparing its worktree"
        case WaitsFor.HOST:
            return "waiting for a host"
        case WaitsFor.SLOT:
            return f"waiting for a slot, {f'{queued.ahead} ahead' if queued.ahead else 'next in line'}"
        case _:
            return "has not started yet"


def _processes(evidence: Evidence) -> str:
    wrapper, child = evidence.wrapper, evidence.child
    if wrapper is not None and not wrapper.alive:
        return f"its wrapper, pid {wrapper.pid}, has exited: the run is about to be reported as lost"
    if child is not None:
        return f"pid {child.pid} {'alive' if child.alive else 'exited, its result is being written'}"
    return f"wrapper pid {wrapper.pid} alive" if wrapper is not None else ""


def _age(run: RunSnapshot, now: datetime) -> str:
    last = moment(run.last_event_at) if run.last_event_at else None
    return f"last event {ago((now - last).total_seconds())} ago" if last else "no event yet"


def _requested(stop: StopRequest | None) -> str:
    if stop is None:
        return ""
    if stop.reason == StopReason.UNREAD:
        return "asked to stop: output pipe closed"
    by = by_session(stop.by)
    return f"{'to be killed' if stop.force else 'asked to stop'}{by}"


def _talking(run: RunSnapshot, running: Running, now: datetime) -> str:
    """Describe what an agent needs from the user to continue; empty if nothing."""
    if run.is_waiting:
        since = moment(run.requests[0].ts)
        took = f" for {ago((now - since).total_seconds())}" if since else ""
        return f"needs input{took}: {asked(run, MESSAGE)}"
    return "interrupted: waiting for your message" if running.interrupted else ""


def _unsent(count: int) -> str:
    return f"{count} message{'' if count == 1 else 's'} not delivered yet" if count else ""


def _waiting(running: Running, evidence: Evidence) -> str:
    first, *others = evidence.calls or ("",)
    if first:
        return f"waiting for {first}" + (f" and {len(others)} more" if others else "")
    doing = "writing" if running.sentence else evidence.retry or "no tool is running: waiting for the model"
    return doing if evidence.silence is None else f"{SILENT} {clock(evidence.silence)}: {doing}"


WINDOW = 512 * 1024
"""Bytes before the end of the events where reading begins: a pending call is among the last."""
HEAD = 64 * 1024
"""Bytes at the beginning of the events that hold the first ones."""
SUBJECT = 100
"""Characters of a call's subject."""
_SUBJECTS = ("command", "pattern", "query", "path", "file_path", "url")
"""Arguments that describe a call's subject, the best first."""


class DiagnosisReader:
    """Reads one run repeatedly; each event is read once."""

    def __init__(self, project: paths.Project, run_id: str) -> None:
        self._run_dir = project.run_dir(run_id)
        self._events: EventTail | None = None
        self._fold = Fold()
        self._calls = OpenCalls()

    @property
    def text(self) -> str:
        """The agent's last complete text."""
        return self._fold.final_text or ""

    def read(self, run: RunSnapshot) -> Evidence:
        """Return the current evidence about a run in this state."""
        if run.foreign:
            return Evidence(foreign=why_foreign(self._run_dir))
        if run.has_ended:
            return Evidence(result=artifacts.read_result(self._run_dir))
        self._events = self._events or self._from_near_the_end()
        for event in self._events.read():
            self._fold.apply(event)
            self._calls.apply(event)
        child = self._fold.child
        facts = artifacts.read_runner(self._run_dir)
        is_ours = facts is not None and is_here(facts)
        return Evidence(
            wrapper=_process(facts.pid, facts.pid_started) if facts and is_ours else None,
            child=_process(child.child_pid, child.child_pid_started) if child and is_ours else None,
            elsewhere=facts.host if facts and not is_ours else "",
            calls=tuple(map(_named, self._calls)),
            silence=run.silence(time.monotonic()),
            retry=self._fold.activity if self._fold.is_retrying else "",
            stop=artifacts.read_stop(self._run_dir),
            faults=artifacts.faults_of(self._run_dir, paths.META, paths.RUNNER, paths.STOP),
        )

    def _from_near_the_end(self) -> EventTail:
        """Start near the end of the events; of the earlier ones, only the first are read: they name the agent
        process.
        """
        path = os.path.join(self._run_dir, paths.EVENTS)
        file = LineFile(path)
        mark = file.mark()
        if mark is None or mark.size <= WINDOW:
            return EventTail(path)
        for line in file.read(0, HEAD).split(b"\n")[:2]:
            if event := decode_event(line):
                self._fold.apply(event)
        return EventTail(path, file.line_start(mark.size - WINDOW) or mark.size)


def _named(call: ToolCall) -> str:
    """Return a tool and its subject: `bash: pytest -q`."""
    name = tool_word(call.tool_name)
    texts = {key: value for key, value in call.args.items() if isinstance(value, str) and value.strip()}
    subject = next((texts[key] for key in (*_SUBJECTS, *texts) if key in texts), "")
    return f"{name}: {one_line(subject, SUBJECT)}" if subject else name


def _process(pid: int, started: int | None) -> Process | None:
    """Return None for a process without a start time: a pid alone proves nothing."""
    return None if started is None else Process(pid, processes.is_alive(pid, started))
