"""`subdeck status` and `wait`: list the runs, or block until some have ended."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

import click
import msgspec

from ..engine import Engine
from ..errors import SubdeckError, UsageError
from ..project.registry import count
from ..run import describe
from ..run.model import MOST_SECONDS, RunResult
from ..run.snapshot import Queued, RunSnapshot
from ..text.plain import one_line
from .output import Number, document, json_option, note, runs_argument, say, show_error, terminal_width, worst
from .table import Column, table

LAST = 20
"""Finished runs that are shown unless all are asked for."""

DOING = 160
"""Characters of what a run does or how it ended."""

TIMED_OUT = 124
"""The exit code of `timeout(1)`."""

COLUMNS = (
    Column(11),
    Column(6),
    Column(20, least=8),
    Column(60, least=10),
    Column(DOING, least=12),
    Column(9, right=True),
    Column(6, right=True),
)

EMPTY = """\
No runs in {place} yet.
Start one with:  subdeck run PRESET "what to do"
subdeck presets lists the presets; subdeck without a command opens the app."""


@click.command("status")
@click.argument("refs", metavar="[RUN...]", nargs=-1)
@click.option("--all", "show_all", is_flag=True, help="List every run of the project.")
@json_option
def status(refs: tuple[str, ...], show_all: bool, as_json: bool) -> None:
    """List runs, newest first: the active ones and the last 20, every one with --all, or only those named.

    Columns: state, id, preset, task, what the run is doing or how it ended, time, tokens. For the runs that are named,
    a line below says why each is not done, or how it ended.
    """
    if refs and show_all:
        raise UsageError("--all cannot be used with ids", where="status", hint="leave one of them out")
    engine = Engine.open()
    run_ids = engine.find(refs) if refs else None
    runs = engine.snapshots(run_ids, last=None if show_all else LAST)
    if as_json:
        document({"counts": count(runs), "runs": [_run_document(engine, run) for run in runs]})
    elif runs:
        say("\n".join(_rows(runs)))
        if refs:
            lines = [f"{run.meta.short_id} {_why_line(engine, run, engine.result(run.run_id))}" for run in runs]
            say("\n" + "\n".join(lines))
        more = "; --all shows every run" if not refs and not show_all and len(runs) >= LAST else ""
        say(f"\n{describe.counted(count(runs))}{_foreign(runs)}{more}")
    else:
        say(EMPTY.format(place=one_line(engine.project.root)))


@click.command("wait")
@runs_argument
@click.option("--timeout", metavar="S", type=Number(MOST_SECONDS), help="Give up after S seconds; the runs continue.")
@json_option
def wait(refs: tuple[str, ...], timeout: float | None, as_json: bool) -> int:
    """Wait until all these runs have ended.

    The exit code is 1 if one failed, else 3 if one was aborted, else 0; 124 if --timeout runs out first. ctrl-C ends
    only the waiting: the runs continue.
    """
    engine = Engine.open()
    run_ids = engine.find(refs)
    try:
        runs = engine.wait(run_ids, timeout=timeout)
    except KeyboardInterrupt:
        note("stopped waiting; the runs continue")
        raise
    if len(runs) < len(run_ids):
        gone = ", ".join(run_id[-6:] for run_id in run_ids if run_id not in {run.run_id for run in runs})
        raise SubdeckError(f"deleted while they were waited for: {gone}", where="wait")
    open_runs = [run for run in runs if not run.has_ended]
    try:
        if as_json:
            document({"timedOut": bool(open_runs), "runs": [_run_document(engine, run) for run in runs]})
        else:
            say("\n".join(_rows(runs)))
    except BrokenPipeError:
        pass  # its reader has gone; the exit code is that of the runs all the same
    except OSError as error:
        show_error(error, as_json=as_json)
    if open_runs:
        unfinished = "1 run has" if len(runs) == 1 else f"{len(open_runs)} of {len(runs)} runs have"
        note(f"subdeck: {unfinished} not ended after {timeout:g} s")
        return TIMED_OUT
    return worst(runs)


def _rows(runs: Sequence[RunSnapshot]) -> list[str]:
    now = datetime.now(UTC)
    cells = [
        (
            describe.state(run),
            run.meta.short_id,
            run.meta.title,
            run.meta.description or run.meta.task,
            describe.doing(run, DOING),
            describe.elapsed(run, now),
            describe.tokens(run.usage.tokens),
        )
        for run in runs
    ]
    return table(COLUMNS, cells, terminal_width())


def _foreign(runs: Sequence[RunSnapshot]) -> str:
    """Say how many of the listed runs are not counted, because they are not this user's."""
    foreign = sum(run.foreign for run in runs)
    return f"; {foreign} foreign, not counted" if foreign else ""


def _why_line(engine: Engine, run: RunSnapshot, result: RunResult | None) -> str:
    """Say why a run is not done, or how it ended."""
    from ..project.diagnosis import DiagnosisReader, Evidence, explain  # a list of runs does not need it

    is_known = run.has_ended and not run.foreign
    evidence = Evidence(result=result) if is_known else DiagnosisReader(engine.project, run.run_id).read(run)
    return explain(run, evidence, datetime.now(UTC))


def _run_document(engine: Engine, run: RunSnapshot) -> dict[str, Any]:
    """Return everything about a run but its system prompt; the fields of a result are null until it has ended."""
    meta = msgspec.to_builtins(run.meta)
    del meta["systemPrompt"]  # snapshots do not carry it; its file is among the artifacts
    result = engine.result(run.run_id) if run.has_ended else None
    ended = msgspec.to_builtins(result) if result else dict.fromkeys(RunResult.__struct_encode_fields__)
    state, end = run.state, run.end
    live = {
        "status": run.status,
        "reason": run.reason,
        "unknown": run.elsewhere,
        "foreign": run.foreign,
        "message": end.message if end else "",
        "activity": describe.activity(run),
        "sentence": run.sentence,
        "ahead": state.ahead if isinstance(state, Queued) else None,
        "why": _why_line(engine, run, result),
        "usage": run.usage,
        "attempts": 1 if isinstance(state, Queued) else state.attempt,
        "startedAt": run.started_at,
        "endedAt": end and end.ended_at,
        "durationMs": end and end.duration_ms,
        "lastEventAt": run.last_event_at,
        "warnings": run.warnings,
    }
    return {**ended, **meta, **live, "resolvedModel": ended["resolvedModel"] or meta["resolvedModel"],
            "childSessionId": ended["childSessionId"] or meta["childSessionId"],
            "artifacts": engine.artifacts(run.run_id)}  # fmt: skip
