"""The tool `background_agent`: start one child that nobody waits for."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ..errors import SubdeckError
from ..project.registry import count
from ..project.session import BG_RUN, launch_data
from ..run.describe import activity
from ..run.model import RunMeta, RunSnapshot
from . import answers as rows
from .answers import ToolAnswer, answer_for_parent
from .arguments import read_background, read_status
from .errors import argument_error, refusal
from .launch import launch
from .parent import Parent

if TYPE_CHECKING:
    from ..engine import Engine


def background_runs(engine: Engine, parent: Parent) -> tuple[RunSnapshot, ...]:
    """Return them as they stand now, newest first."""
    return tuple(run for run in engine.snapshots() if is_own(run.meta, parent.session, parent.runs))


def is_own(meta: RunMeta, session: str, named: tuple[str, ...]) -> bool:
    """Tell whether a background run belongs to a session: launched by it, or named by its own entries."""
    return meta.background and (meta.launched_by.session == session or meta.run_id in named)


def background_agent(engine: Engine, params: object, *, parent: Parent) -> ToolAnswer:
    """Start the run as a plain process and answer at once. Raises Refused, SubdeckError."""
    asked = read_background(params, isolated=engine.read_settings().expose_isolated)
    launched = launch(engine, (asked,), parent, background=True, parallel=False)
    if not launched:
        raise SubdeckError("the run was deleted as soon as it had been started", where=engine.project.runs)
    (run,) = launched
    counts = count(background_runs(engine, parent))
    fields: dict[str, Any] = {
        **rows.run_row(run),
        "runDir": engine.project.run_dir(run.run_id),
        "artifacts": engine.artifacts(run.run_id),
        "counts": rows.counts_row(counts),
    }
    entry = {"entry": {"customType": BG_RUN, "data": launch_data(run.meta)}}
    said = f"Started {rows.line(run)}\nrunId: {run.run_id}\n{rows.counts_text(counts)}"
    if run.has_ended:
        result = engine.result(run.run_id)
        fields |= rows.end_fields(run, result)
    failed = run.has_ended and run.status != "completed"
    return ToolAnswer(said, fields | entry, fields, is_error=failed)


ROWS = 50
"""Runs that one answer lists, the newest."""

ANSWER_LENGTH = 2000
"""Characters of each answer in a list of several runs."""


def background_agent_status(engine: Engine, params: object, *, parent: Parent) -> ToolAnswer:
    """Return counts and runs; nothing is told or claimed by it. Raises Refused."""
    wanted, with_ended = read_status(params)
    runs = background_runs(engine, parent)
    active = [run for run in runs if not run.has_ended]
    if wanted is None:
        return _listing(engine, runs, runs if with_ended else active)
    chosen = [run for run in runs if wanted in (run.run_id, run.meta.short_id)]
    if chosen:
        return _one(engine, runs, chosen[0])
    hint = "these are the active ones; includeCompleted lists those that have ended too"
    names = [run.run_id for run in active]
    error = argument_error(
        "no background run of this session has that id", field="runId", value=wanted, valid=names, hint=hint
    )
    listing = _listing(engine, runs, active)
    refused = refusal([error], **listing.structured)
    return ToolAnswer(f"{refused.text}\n{listing.text}", refused.details, refused.structured, is_error=True)


def _listing(engine: Engine, runs: Sequence[RunSnapshot], chosen: Sequence[RunSnapshot]) -> ToolAnswer:
    counts = count(runs)
    listed = chosen[:ROWS]
    fields: dict[str, Any] = {
        "counts": rows.counts_row(counts),
        "runs": [_row(engine, run, ANSWER_LENGTH) for run in listed],
        "omitted": len(chosen) - len(listed),
    }
    ended = f"{counts.completed} completed, {counts.failed} failed, {counts.aborted} aborted"
    lines = [f"{rows.counts_text(counts)} ({ended})", *(f"- {rows.line(run)}" for run in listed)]
    if len(chosen) > len(listed):
        lines.append(f"… and {len(chosen) - len(listed)} older ones")
    return ToolAnswer("\n".join(lines), fields, fields)


def _one(engine: Engine, runs: Sequence[RunSnapshot], run: RunSnapshot) -> ToolAnswer:
    fields = {"counts": rows.counts_row(count(runs)), "runs": [_row(engine, run, None)], "omitted": 0}
    result = engine.result(run.run_id) if run.has_ended else None
    answer = f"\n\n{answer_for_parent(result)}" if result else ""
    return ToolAnswer(rows.line(run) + answer, fields, fields)


def _row(engine: Engine, run: RunSnapshot, limit: int | None) -> dict[str, Any]:
    about = {
        **rows.run_row(run),
        "activity": activity(run),
        "runDir": engine.project.run_dir(run.run_id),
        "artifacts": engine.artifacts(run.run_id),
    }
    return about | rows.end_fields(run, engine.result(run.run_id), limit=limit) if run.has_ended else about
