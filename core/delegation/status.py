"""The tool `background_agent_status`: how the background runs of the session stand."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ..project.registry import count
from ..run.model import RunSnapshot
from . import rows
from .answer import answer_for_parent
from .answers import ToolAnswer
from .arguments import read_status
from .errors import argument_error, refusal
from .own_runs import background_runs
from .parent import Parent

if TYPE_CHECKING:
    from ..engine import Engine

ROWS = 50
"""Runs that one answer lists, the newest."""

ANSWER_LENGTH = 2000
"""Characters of each answer in a list of several runs."""


def background_agent_status(engine: Engine, params: object, *, parent: Parent) -> ToolAnswer:
    """Answer counts and runs; nothing is told or claimed by it. Raises Refused."""
    wanted, with_ended = read_status(params)
    runs = background_runs(engine, parent)
    active = [run for run in runs if not run.is_terminal]
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
    result = engine.result(run.run_id) if run.is_terminal else None
    answer = f"\n\n{answer_for_parent(result)}" if result else ""
    return ToolAnswer(rows.line(run) + answer, fields, fields)


def _row(engine: Engine, run: RunSnapshot, limit: int | None) -> dict[str, Any]:
    about = {
        **rows.run_row(run),
        "activity": run.activity,
        "runDir": engine.project.run_dir(run.run_id),
        "artifacts": engine.artifacts(run.run_id),
    }
    return about | rows.end_fields(run, engine.result(run.run_id), limit=limit) if run.is_terminal else about
