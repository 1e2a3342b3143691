"""The tool `background_agent`: start one child that nobody waits for."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..errors import SubdeckError
from ..project.registry import count
from ..project.session import BG_RUN, launch_data
from . import rows
from .answers import ToolAnswer
from .arguments import read_background
from .launch import launch
from .own_runs import background_runs
from .parent import Parent
from .reading import refresh

if TYPE_CHECKING:
    from ..engine import Engine


def background_agent(engine: Engine, params: object, *, parent: Parent) -> ToolAnswer:
    """Start the run as a plain process and answer at once. Raises Refused, SubdeckError."""
    asked = read_background(params, isolated=refresh(engine).expose_isolated)
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
    if run.is_terminal:
        result = engine.result(run.run_id)
        fields |= rows.end_fields(run, result)
    failed = run.is_terminal and run.status != "completed"
    return ToolAnswer(said, fields | entry, fields, is_error=failed)
