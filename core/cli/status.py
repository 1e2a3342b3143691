"""`subdeck status` and `wait`: list the runs, or wait until some have ended."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated, Any

import click

from ..engine import Engine
from ..errors import SubdeckError, UsageError
from ..project.registry import count
from ..run import describe
from ..run.changes import Changes
from ..run.columns import IN_STATUS
from ..run.documents import (
    ChangesDocument,
    CheckDocument,
    RequestDocument,
    UsageDocument,
    changes_document,
    check_document,
    request_document,
    usage_document,
)
from ..run.model import MOST_SECONDS, RunMeta, RunReason, RunResult, RunStatus
from ..run.placement import Place
from ..run.snapshot import Counts, Queued, Running, RunSnapshot
from ..text.plain import one_line
from ._command import Document, command, merged
from ._options import Number, runs_argument, strict_option
from .output import TIMED_OUT, Output, Piece, note, worst
from .run_list import list_text, listed, rows, totals

if TYPE_CHECKING:
    from ..budget.allowance import DaySpending
    from ..project.follower import Update


LOOKED_AT = 20
"""Named runs whose worktrees are examined; for more, the recorded changes are shown."""

HELP = f"""\
List runs, newest first: the active runs and the last 20 finished runs, or all runs, or only the named runs.

Columns: {", ".join(column.words or column.name for column in IN_STATUS)}. For each named run, more lines explain why \
it is not done yet, or its result and its changes."""


class PendingCheck(Document, frozen=True):
    """A check without a result."""

    name: str
    since: str | None
    """Time of its start."""


class RunNow(Document, frozen=True):
    """The state of a run."""

    status: RunStatus
    reason: RunReason | None
    unknown: bool
    """Whether the state is unknown, because the run's host is unreachable."""
    foreign: bool
    """Whether the run is untrusted."""
    host: str
    """Empty for a run on this machine."""
    place: Place | None
    """State on the host."""
    stop_waits: bool
    """Whether a stop request waits for the host."""
    late: RunStatus | None
    """Status that a lost run reported later."""
    message: str
    """Error message of a finished run."""
    activity: str
    """The current activity."""
    sentence: str
    """The first sentence of the answer."""
    ahead: int | None
    """Runs before it in the queue; null unless it is queued."""
    held: bool | None
    """Whether the queue is paused; null unless it is queued."""
    why: str
    """Why it is not done, or its result."""
    usage: UsageDocument
    attempts: int
    """Number of the current attempt, from 1."""
    started_at: str | None
    ended_at: str | None
    duration_ms: int | None
    last_event_at: str | None
    waiting: bool
    """Whether it needs input."""
    requests: tuple[RequestDocument, ...]
    """Pending requests."""
    interrupted: bool
    """Whether it waits for a message after an interruption."""
    taken_over: bool
    """Whether it is open in the agent's own UI."""
    can_talk: bool
    """Whether it takes messages now."""
    queued_messages: int
    """Messages that are not delivered yet."""
    silent_ms: int | None
    """Milliseconds without output; null unless the run is idle."""
    warnings: tuple[str, ...]
    changes: ChangesDocument | None
    check: CheckDocument | PendingCheck | None
    resolved_model: str
    child_session_id: str | None
    """Id of the agent session."""
    artifacts: dict[str, str]
    """Files of the run by name."""


RunDocument = Annotated[dict[str, Any], RunResult | None, RunMeta, "-systemPrompt", RunNow]
"""A run: its result (null until it has ended), its launch record, and its state."""


class Status(Document, frozen=True):
    """The listed runs."""

    counts: Counts
    spending: DaySpending
    """Today's costs."""
    runs: tuple[RunDocument, ...]


class Waited(Document, frozen=True):
    """The awaited runs."""

    timed_out: bool
    runs: tuple[RunDocument, ...]


@command(
    "status",
    "subdeck status",
    "subdeck status 4ae0bd # why it is not done yet, or its result",
    "subdeck status --all --json",
    help=HELP,
)
@click.argument("refs", metavar="[RUN...]", nargs=-1)
@click.option("--all", "show_all", is_flag=True, help="List every run of the project.")
def status(refs: tuple[str, ...], show_all: bool) -> Output[Status]:
    if refs and show_all:
        raise UsageError("--all cannot be used with ids", where="status", hint="use only one of them")
    engine = Engine.open()
    run_ids = engine.find(refs) if refs else None
    runs = engine.snapshots(run_ids) if refs else listed(engine, show_all=show_all)

    def document() -> Status:
        documents = (_run_document(engine, run, _changes(engine, run, runs) if refs else run.changes) for run in runs)
        return Status(count(runs), engine.spending(), tuple(documents))

    text = _named_text(engine, runs) if refs and runs else list_text(engine, runs, show_all=show_all)
    return Output(document, text)


def _named_text(engine: Engine, runs: Sequence[RunSnapshot]) -> Iterator[Piece]:
    lines = [line for run in runs for line in _lines_about(engine, run, _changes(engine, run, runs))]
    yield [*rows(runs), "", *lines]
    yield f"\n{totals(runs)}"


@command(
    "wait",
    "subdeck wait 4ae0bd",
    "subdeck wait 4ae0bd 81c2f7 --timeout 600 # for ten minutes at most",
)
@runs_argument
@click.option(
    "--timeout", metavar="S", type=Number(MOST_SECONDS), help="Stop waiting after S seconds; the runs continue."
)
@strict_option
def wait(refs: tuple[str, ...], timeout: float | None, strict: bool) -> Output[Waited]:
    """Wait until all these runs finish.

    The exit code is 1 if a run failed, otherwise 3 if a run was aborted, otherwise 0; it is 124 if --timeout runs out
    first. ctrl-C ends only the waiting: the runs continue. Permission requests and questions are printed on stderr,
    with the command that answers them.
    """
    engine = Engine.open()
    run_ids = engine.find(refs)
    from ._requests import Asking

    asking = Asking()

    is_reported = False

    def tell(update: Update) -> None:
        nonlocal is_reported
        if not is_reported and any(map(describe.is_held, update.runs)):
            is_reported = True
            note(f"{describe.QUEUE_HELD}.")
        for waits, reply in asking.new(update.runs):
            note(f"{waits}\n  {reply}")

    try:
        runs = engine.wait(run_ids, timeout=timeout, on_update=tell)
    except KeyboardInterrupt:
        note("stopped waiting; the runs continue")
        raise
    if len(runs) < len(run_ids):
        gone = ", ".join(run_id[-6:] for run_id in run_ids if run_id not in {run.run_id for run in runs})
        raise SubdeckError(f"deleted while waiting: {gone}", where="wait")
    open_runs = [run for run in runs if not run.has_ended]

    def document() -> Waited:
        return Waited(bool(open_runs), tuple(_run_document(engine, run, run.changes) for run in runs))

    def text() -> Iterator[Piece]:
        yield rows(runs)

    unfinished = "1 run has" if len(runs) == 1 else f"{len(open_runs)} of {len(runs)} runs have"
    return Output(
        document,
        text(),
        TIMED_OUT if open_runs else worst(runs, strict=strict),
        note=f"subdeck: {unfinished} not finished after {timeout:g} s" if open_runs else "",
        is_done=True,
    )


def _why_line(engine: Engine, run: RunSnapshot, result: RunResult | None) -> str:
    """Return why a run is not done, or its result."""
    from ..project.diagnosis import DiagnosisReader, Evidence, explain  # a list of runs does not need it

    has_trusted_result = run.has_ended and not run.foreign
    evidence = Evidence(result=result) if has_trusted_result else DiagnosisReader(engine.project, run.run_id).read(run)
    return explain(run, evidence, datetime.now(UTC))


def _changes(engine: Engine, run: RunSnapshot, runs: Sequence[RunSnapshot]) -> Changes | None:
    """Return a run's changes: the current ones if its worktree was edited since, unless many runs are named."""
    return run.changes if run.has_ended and run.changes and len(runs) > LOOKED_AT else engine.work.changes(run)


def _lines_about(engine: Engine, run: RunSnapshot, changes: Changes | None) -> Iterator[str]:
    """Yield why a run is not done or its result, and its changes."""
    yield f"{run.meta.short_id} {_why_line(engine, run, engine.result(run.run_id))}"
    if changes:
        on_branch = f", on branch {one_line(run.branch, 80)}" if run.branch and changes.files else ""
        verb = "has in its worktree" if changes.edited else "changed"
        yield f"{run.meta.short_id} {verb} {one_line(changes.words, 400)}{on_branch}"


def _check(run: RunSnapshot, result: RunResult | None) -> CheckDocument | PendingCheck | None:
    """Return the result of a run's check; until it has one, its name and start."""
    if result and result.check:
        return check_document(result.check)
    return PendingCheck(run.meta.check, run.checking and run.checking.since) if run.meta.check else None


def _run_document(engine: Engine, run: RunSnapshot, changes: Changes | None) -> dict[str, Any]:
    """Return everything about a run but its system prompt; the fields of a result are null until it has ended."""
    result = engine.result(run.run_id) if run.has_ended else None
    state, end, meta = run.state, run.end, run.meta
    silence = run.silence(time.monotonic())
    now = RunNow(
        status=run.status,
        reason=run.reason,
        unknown=run.elsewhere,
        foreign=run.foreign,
        host=run.host,
        place=run.place,
        stop_waits=run.stop_waits,
        late=end and end.late,
        message=end.message if end else "",
        activity=describe.activity(run),
        sentence=run.sentence,
        ahead=state.ahead if isinstance(state, Queued) else None,
        held=state.held if isinstance(state, Queued) else None,
        why=_why_line(engine, run, result),
        usage=usage_document(run.usage),
        attempts=1 if isinstance(state, Queued) else state.attempt,
        started_at=run.started_at,
        ended_at=end and end.ended_at,
        duration_ms=end and end.duration_ms,
        last_event_at=run.last_event_at,
        waiting=run.is_waiting,
        requests=tuple(request_document(request, run.run_id, meta.cwd) for request in run.requests),
        interrupted=run.is_interrupted,
        taken_over=run.is_taken_over,
        can_talk=run.can_talk,
        queued_messages=state.undelivered if isinstance(state, Running) else 0,
        silent_ms=None if silence is None else round(silence * 1000),
        warnings=run.warnings,
        changes=changes_document(changes),
        check=_check(run, result),
        resolved_model=(result and result.resolved_model) or meta.resolved_model,
        child_session_id=(result and result.child_session_id) or run.child_session_id,
        artifacts=engine.artifacts(run.run_id),
    )
    ended = merged(result) if result else dict.fromkeys(RunResult.__struct_encode_fields__)
    document = ended | merged(meta, now)
    del document["systemPrompt"]  # snapshots do not carry it; its file is among the artifacts
    return document
