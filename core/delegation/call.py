"""Call one of the four tools: the handler for all kinds of parents, and the three tools for background runs."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Any

import msgspec

from ..engine import Engine
from ..errors import RunDeleted, SubdeckError, nearest
from ..paths import PROMPT, is_child
from ..project.follower import Stop
from ..project.registry import count
from ..project.session import BG_RUN, launch_data
from ..project.talk import Outcome
from ..run.describe import activity, background_counts
from ..run.events import Request
from ..run.model import MessageState, RunStatus
from ..run.requests import is_marked, kept_request, request_line, request_text
from ..run.snapshot import RunSnapshot
from ..text.plain import one_line
from ._arguments import background_arguments, send_arguments, status_arguments
from ._launch import launch
from ._subagent import ProgressFailed, Report, subagent
from .parent import Parent, is_own
from .results import (
    CallRejected,
    CallResult,
    argument_error,
    end_fields,
    facts_line,
    harmless,
    rejection,
    result_text,
    run_fields,
    run_line,
    tool_error,
)
from .schema import BACKGROUND, NAMES, SEND, STATUS, SUBAGENT, names_hosts

ROWS = 50
"""Maximum runs in one result, the newest ones."""

ANSWER_LENGTH = 2000
"""Characters of each answer in a list of several runs."""

LISTED_TASK_LENGTH = 80
"""Characters of each task in a list of several runs."""

TASK_LENGTH = 1000
"""Characters of a single run's task; the model wrote it, or can read the file with the whole task."""

INTERRUPT_TIMEOUT_S = 10.0
"""Seconds that an agent may take to end its turn before it gets a message."""
DELIVERY_TIMEOUT_S = 2.0
"""Seconds that a call waits for a message's delivery; a later delivery still happens."""
ASKS_LENGTH = 400
"""Characters of a request's summary line."""
ASKED_LENGTH = 2000
"""Characters of a request's exact texts."""


def call_tool(
    engine: Engine,
    name: str,
    params: object,
    *,
    parent: Parent,
    progress: Report | None = None,
    cancelled: Stop | None = None,
) -> CallResult:
    """Handle a parent's call; a call that fails returns errors instead of raising them.

    `engine` was opened with the parent's session and kind. `progress` is called in this thread, at the beginning and
    then at most four times a second; its exceptions cancel the runs and are raised here. `cancelled` may be set by any
    thread at any time: the runs of a foreground call are then stopped as cancelled, as the result shows.
    """
    result = _answer(engine, name, params, parent, progress, cancelled or threading.Event())
    text, details, structured = map(harmless, (result.text, result.details, result.structured))
    return CallResult(text, details, structured, result.is_error)


def _answer(
    engine: Engine, name: str, params: object, parent: Parent, progress: Report | None, cancelled: Stop
) -> CallResult:
    try:
        if name not in NAMES:
            what, hint = f'unknown tool "{one_line(name, 60)}"', nearest(name, NAMES)
            raise CallRejected(argument_error(what, field="name", value=name, valid=NAMES, hint=hint))
        if is_child():
            raise CallRejected(argument_error("a subagent cannot delegate", hint="do the task yourself"))
        if cancelled.is_set() and name != STATUS:
            raise CallRejected(argument_error("the call was cancelled before a run was started"))
        if name == SUBAGENT:
            return subagent(engine, params, parent=parent, progress=progress, cancelled=cancelled)
        if name == BACKGROUND:
            return _background_agent(engine, params, parent)
        if name == SEND:
            return _background_agent_send(engine, params, parent, cancelled)
        return _background_agent_status(engine, params, parent)
    except CallRejected as rejected:
        return rejection(rejected.errors)
    except ProgressFailed as failed:
        raise failed.cause from None
    except (SubdeckError, OSError) as error:
        return rejection([tool_error(error)])


def _background_agent(engine: Engine, params: object, parent: Parent) -> CallResult:
    """Start the run as a plain process and return at once. Raises CallRejected, SubdeckError."""
    settings = engine.read_settings()
    task = background_arguments(params, isolated=settings.expose_isolated, hosts=names_hosts(settings))
    launched = launch(engine, (task,), parent, background=True)
    if not launched:
        raise RunDeleted("right after its start", where=engine.project.runs)
    (run,) = launched
    counts = count(_background_runs(engine, parent))
    fields = {**_row(engine, run), "counts": msgspec.to_builtins(counts)}
    if run.has_ended:
        fields |= end_fields(run, engine.result(run.run_id))
    facts = (facts_line(fields), fields["toolsLeftOut"], background_counts(counts))
    lines = (f"Started {run_line(run)}", f"runId: {run.run_id}", *facts)
    return CallResult(
        "\n".join(filter(None, lines)),
        {**fields, "entry": {"customType": BG_RUN, "data": launch_data(run.meta)}},
        fields,
        is_error=run.has_ended and run.status is not RunStatus.COMPLETED,
    )


def _background_agent_status(engine: Engine, params: object, parent: Parent) -> CallResult:
    """Return counts and runs; does not mark finished runs as reported. Raises CallRejected."""
    run_id, with_ended = status_arguments(params)
    runs = _background_runs(engine, parent)
    active = [run for run in runs if not run.has_ended]
    if run_id is None:
        return _listing(engine, runs, runs if with_ended else active)
    if run := next((run for run in runs if run_id in (run.run_id, run.meta.short_id)), None):
        row = _status_row(engine, run, None)
        fields = {"counts": msgspec.to_builtins(count(runs)), "runs": [row], "omitted": 0}
        result = engine.result(run.run_id) if run.has_ended else None
        head = f"{run_line(run)}\n{facts_line(row)}"
        return CallResult(head + (f"\n\n{result_text(run, result)}" if result else ""), fields, fields)
    hint = "these runs are active; add includeCompleted to list finished runs"
    what, valid = "this session has no background run with that id", [run.run_id for run in active]
    listing = _listing(engine, runs, active)
    error = argument_error(what, field="runId", value=run_id, valid=valid, hint=hint)
    rejected = rejection([error], **listing.structured)
    return CallResult(f"{rejected.text}\n{listing.text}", rejected.details, rejected.structured, is_error=True)


def _background_agent_send(engine: Engine, params: object, parent: Parent, cancelled: Stop) -> CallResult:
    """Send a message to a run and return its delivery state. Raises CallRejected, SubdeckError."""
    run_id, message, interrupt = send_arguments(params)
    runs = _background_runs(engine, parent)
    run = next((run for run in runs if run_id in (run.run_id, run.meta.short_id)), None)
    if run is None:
        what, active = (
            "this session has no background run with that id",
            [run.run_id for run in runs if not run.has_ended],
        )
        raise CallRejected(argument_error(what, field="runId", value=run_id, valid=active))
    if run.has_ended:
        session = run.child_session_id
        goes_on = f"call {BACKGROUND} with the same preset and sessionId {session}" if session else "start another run"
        what = f"this run has finished ({run.reason}) and accepts no messages"
        raise CallRejected(argument_error(what, field="runId", value=run_id, hint=f"to continue, {goes_on}"))
    outcome: Outcome | None = None
    if interrupt and not run.is_interrupted:
        sent = engine.interrupt(run.run_id)
        (outcome,) = engine.receptions((sent,), timeout=INTERRUPT_TIMEOUT_S, stop=cancelled)
    if message.strip() and not cancelled.is_set():
        sent = engine.send(run.run_id, message)
        (outcome,) = engine.receptions((sent,), timeout=DELIVERY_TIMEOUT_S, stop=cancelled)
    runs = _background_runs(engine, parent)
    run = next((now for now in runs if now.run_id == run.run_id), run)
    state = outcome.state if outcome else MessageState.ACCEPTED
    counts = count(runs)
    fields = {
        **_status_row(engine, run, ANSWER_LENGTH),
        "delivery": state.value,
        "why": outcome.reason if outcome else "",
        "counts": msgspec.to_builtins(counts),
    }
    is_error = state in (MessageState.REFUSED, MessageState.LATE)
    delivery_line = f"{_DELIVERY[state]}: {outcome.reason}" if outcome and outcome.reason else _DELIVERY[state]
    return CallResult(
        f"{delivery_line}\n{run_line(run)}\n{background_counts(counts)}", fields, fields, is_error=is_error
    )


_DELIVERY = {
    MessageState.ACCEPTED: "On its way: the agent gets it as soon as it can read it",
    MessageState.DELIVERED: "Delivered",
    MessageState.REFUSED: "Refused",
    MessageState.LATE: "Too late",
}


def _background_runs(engine: Engine, parent: Parent) -> tuple[RunSnapshot, ...]:
    """Return the session's background runs, newest first."""
    return tuple(run for run in engine.snapshots() if is_own(run, parent.session, parent.runs))


def _listing(engine: Engine, runs: Sequence[RunSnapshot], chosen: Sequence[RunSnapshot]) -> CallResult:
    counts = count(runs)
    listed = chosen[:ROWS]
    omitted = len(chosen) - len(listed)
    rows = [_listed_row(engine, run) for run in listed]
    fields = {"counts": msgspec.to_builtins(counts), "root": engine.project.root, "runs": rows, "omitted": omitted}
    contained = ((counts.waiting, "waiting"), (counts.out_of_reach, "unreachable"))
    open_runs = [f"{number} {word}" for number, word in contained if number]
    ended = f"{counts.completed} completed, {counts.failed} failed, {counts.aborted} aborted"
    head = f"{background_counts(counts)} ({', '.join([*open_runs, ended])})"
    path_notes = [f"cwd and runDir are relative to {one_line(engine.project.root)}"] if listed else []
    lines = [head, *path_notes]
    for run, row in zip(listed, rows, strict=True):
        lines += (f"- {run_line(run)}", f"  {facts_line(row)}")
    return CallResult("\n".join([*lines, f"… and {omitted} older ones"] if omitted else lines), fields, fields)


def _listed_row(engine: Engine, run: RunSnapshot) -> dict[str, Any]:
    """Return a list's row: every field, shortened, with paths relative to the project's root."""
    row = _status_row(engine, run, ANSWER_LENGTH)
    del row["artifacts"]
    root = engine.project.root
    relative_paths = {name: _below(root, row[name]) for name in ("cwd", "runDir")}
    times = {name: row[name] and _to_the_second(row[name]) for name in ("createdAt", "startedAt", "endedAt")}
    return {**row, "task": one_line(run.meta.task, LISTED_TASK_LENGTH), **relative_paths, **times}


def _below(root: str, path: str) -> str:
    """Return a path relative to the root; a path outside it stays absolute."""
    return "." if path == root else path.removeprefix(f"{root.rstrip('/')}/")


def _to_the_second(iso: str) -> str:
    """Remove the milliseconds from a subdeck timestamp."""
    return f"{iso[:19]}Z" if iso.endswith("Z") else iso


def _status_row(engine: Engine, run: RunSnapshot, limit: int | None) -> dict[str, Any]:
    row = {**_row(engine, run), "activity": activity(run)}
    if run.is_waiting:
        row["requests"] = [_asked(request, run.meta.cwd) for request in run.requests]
    return row | end_fields(run, engine.result(run.run_id), limit=limit) if run.has_ended else row


def _asked(request: Request, cwd: str) -> dict[str, Any]:
    """Return a request: as a line, exactly, and as displayed; `missing` counts the text that did not fit."""
    kept = kept_request(request, ASKED_LENGTH)
    exact = {
        "toolName": kept.tool_name,
        "command": kept.command,
        "paths": list(kept.paths),
        "directory": kept.cwd,
        "text": kept.text,
        "diff": kept.diff,
        "choices": list(kept.choices),
        "missing": kept.missing,
        "marked": is_marked(request),
    }
    return {
        "id": request.id,
        "kind": request.kind,
        "asks": request_line(request, ASKS_LENGTH, cwd),
        "display": request_text(kept, cwd),
        **{name: value for name, value in exact.items() if value},
    }


def _row(engine: Engine, run: RunSnapshot) -> dict[str, Any]:
    """Return every field of the call; `artifacts` are the names of the files in `runDir`."""
    run_dir = engine.project.run_dir(run.run_id)
    task = run.meta.task
    if len(task) > TASK_LENGTH:
        whole = f"the whole task is in {run_dir}/{PROMPT}"
        task = f"{task[:TASK_LENGTH]}\n[… truncated from {len(task)} characters; {whole}]"
    return {**run_fields(run), "task": task, "runDir": run_dir, "artifacts": [*engine.artifacts(run.run_id)]}
