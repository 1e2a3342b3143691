"""`subdeck status` and `wait`: list the runs, or block until some have ended."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import click
import msgspec

from ..engine import Engine
from ..errors import SubdeckError, UsageError
from ..project.registry import count
from ..run import describe
from ..run.changes import Changes, changes_fields
from ..run.columns import IN_STATUS
from ..run.model import MOST_SECONDS, RunResult
from ..run.requests import request_fields
from ..run.snapshot import Queued, Running, RunSnapshot
from ..text.plain import one_line
from ._options import Number, json_option, runs_argument, strict_option
from .output import TIMED_OUT, document, note, say, say_lines, show_error, worst
from .run_list import listed, rows, show_list, totals

if TYPE_CHECKING:
    from ..project.follower import Update


LOOKED_AT = 20
"""Named runs whose worktrees are looked at; of more, what was recorded is shown."""

HELP = f"""\
List runs, newest first: the active runs and the last 20 finished runs, or all runs, or only the named runs.

Columns: {", ".join(column.words or column.name for column in IN_STATUS)}. For each named run, more lines explain why \
it is not done yet, or its result and its changes."""


@click.command("status", help=HELP)
@click.argument("refs", metavar="[RUN...]", nargs=-1)
@click.option("--all", "show_all", is_flag=True, help="List every run of the project.")
@json_option
def status(refs: tuple[str, ...], show_all: bool, as_json: bool) -> None:
    if refs and show_all:
        raise UsageError("--all cannot be used with ids", where="status", hint="use only one of them")
    engine = Engine.open()
    run_ids = engine.find(refs) if refs else None
    runs = engine.snapshots(run_ids) if refs else listed(engine, show_all=show_all)
    if as_json:
        documents = [_run_document(engine, run, _changes(engine, run, runs) if refs else run.changes) for run in runs]
        document({"counts": count(runs), "spending": engine.spending(), "runs": documents})
    elif refs and runs:
        lines = [line for run in runs for line in _lines_about(engine, run, _changes(engine, run, runs))]
        say_lines([*rows(runs), "", *lines])
        say(f"\n{totals(runs)}")
    else:
        show_list(engine, runs, show_all=show_all)


@click.command("wait")
@runs_argument
@click.option(
    "--timeout", metavar="S", type=Number(MOST_SECONDS), help="Stop waiting after S seconds; the runs continue."
)
@strict_option
@json_option
def wait(refs: tuple[str, ...], timeout: float | None, strict: bool, as_json: bool) -> int:
    """Wait until all these runs finish.

    The exit code is 1 if a run failed, otherwise 3 if a run was aborted, otherwise 0; it is 124 if --timeout runs out
    first. ctrl-C ends only the waiting: the runs continue. Permission requests and questions are printed on stderr,
    with the command that answers them.
    """
    engine = Engine.open()
    run_ids = engine.find(refs)
    from ._requests import Asking

    asking = Asking()

    is_told = False

    def tell(update: Update) -> None:
        nonlocal is_told
        if not is_told and any(map(describe.is_held, update.runs)):
            is_told = True
            note(f"{describe.QUEUE_HELD}.")
        for waits, command in asking.new(update.runs):
            note(f"{waits}\n  {command}")

    try:
        runs = engine.wait(run_ids, timeout=timeout, on_update=tell)
    except KeyboardInterrupt:
        note("stopped waiting; the runs continue")
        raise
    if len(runs) < len(run_ids):
        gone = ", ".join(run_id[-6:] for run_id in run_ids if run_id not in {run.run_id for run in runs})
        raise SubdeckError(f"deleted while waiting: {gone}", where="wait")
    open_runs = [run for run in runs if not run.has_ended]
    try:
        if as_json:
            documents = [_run_document(engine, run, run.changes) for run in runs]
            document({"timedOut": bool(open_runs), "runs": documents})
        else:
            say_lines(rows(runs))
    except BrokenPipeError:
        pass  # its reader has gone; the exit code is that of the runs all the same
    except OSError as error:
        show_error(error, as_json=as_json)
    if open_runs:
        unfinished = "1 run has" if len(runs) == 1 else f"{len(open_runs)} of {len(runs)} runs have"
        note(f"subdeck: {unfinished} not finished after {timeout:g} s")
        return TIMED_OUT
    return worst(runs, strict=strict)


def _why_line(engine: Engine, run: RunSnapshot, result: RunResult | None) -> str:
    """Say why a run is not done, or how it ended."""
    from ..project.diagnosis import DiagnosisReader, Evidence, explain  # a list of runs does not need it

    is_known = run.has_ended and not run.foreign
    evidence = Evidence(result=result) if is_known else DiagnosisReader(engine.project, run.run_id).read(run)
    return explain(run, evidence, datetime.now(UTC))


def _changes(engine: Engine, run: RunSnapshot, runs: Sequence[RunSnapshot]) -> Changes | None:
    """Return a run's changes: if its worktree was edited since, as it is now, unless many runs are named."""
    return run.changes if run.has_ended and run.changes and len(runs) > LOOKED_AT else engine.work.changes(run)


def _lines_about(engine: Engine, run: RunSnapshot, changes: Changes | None) -> Iterator[str]:
    """Say why a run is not done or how it ended, and what it has changed."""
    yield f"{run.meta.short_id} {_why_line(engine, run, engine.result(run.run_id))}"
    if changes:
        on_branch = f", on branch {one_line(run.branch, 80)}" if run.branch and changes.files else ""
        verb = "has in its worktree" if changes.edited else "changed"
        yield f"{run.meta.short_id} {verb} {one_line(changes.words, 400)}{on_branch}"


def _check(run: RunSnapshot, result: RunResult | None) -> dict[str, Any] | None:
    """Return what the check of a run said; while there is nothing yet its name alone, and since when it is at work."""
    if result and result.check:
        return describe.check_fields(result.check)
    if not run.meta.check:
        return None
    return {"name": run.meta.check, "since": run.checking and run.checking.since}


def _run_document(engine: Engine, run: RunSnapshot, changes: Changes | None) -> dict[str, Any]:
    """Return everything about a run but its system prompt; the fields of a result are null until it has ended."""
    meta = msgspec.to_builtins(run.meta)
    del meta["systemPrompt"]  # snapshots do not carry it; its file is among the artifacts
    result = engine.result(run.run_id) if run.has_ended else None
    ended = msgspec.to_builtins(result) if result else dict.fromkeys(RunResult.__struct_encode_fields__)
    state, end = run.state, run.end
    silence = run.silence(time.monotonic())
    live = {
        "status": run.status,
        "reason": run.reason,
        "unknown": run.elsewhere,
        "foreign": run.foreign,
        "host": run.host,
        "place": msgspec.to_builtins(run.place),
        "stopWaits": run.stop_waits,
        "late": end and end.late,
        "message": end.message if end else "",
        "activity": describe.activity(run),
        "sentence": run.sentence,
        "ahead": state.ahead if isinstance(state, Queued) else None,
        "held": state.held if isinstance(state, Queued) else None,
        "why": _why_line(engine, run, result),
        "usage": describe.usage_fields(run.usage),
        "attempts": 1 if isinstance(state, Queued) else state.attempt,
        "startedAt": run.started_at,
        "endedAt": end and end.ended_at,
        "durationMs": end and end.duration_ms,
        "lastEventAt": run.last_event_at,
        "waiting": run.is_waiting,
        "requests": [request_fields(request, run.run_id, run.meta.cwd) for request in run.requests],
        "interrupted": run.is_interrupted,
        "takenOver": run.is_taken_over,
        "canTalk": run.can_talk,
        "queuedMessages": state.undelivered if isinstance(state, Running) else 0,
        "silentMs": None if silence is None else round(silence * 1000),
        "warnings": run.warnings,
        "changes": changes_fields(changes),
        "check": _check(run, result),
    }
    return {**ended, **meta, **live, "resolvedModel": ended["resolvedModel"] or meta["resolvedModel"],
            "childSessionId": ended["childSessionId"] or run.child_session_id,
            "artifacts": engine.artifacts(run.run_id)}  # fmt: skip
