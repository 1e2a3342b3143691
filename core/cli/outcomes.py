"""How runs ended, as the exit code of a command and as a document for programs."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Any

import msgspec

from ..engine import Engine
from ..run.describe import activity
from ..run.model import RunResult, RunStatus
from ..run.snapshot import Ended, Queued, RunSnapshot

EXIT_CODES: dict[RunStatus, int] = {RunStatus.COMPLETED: 0, RunStatus.FAILED: 1, RunStatus.ABORTED: 3}

DELETED_CODE = 1
"""The exit code for a run that was started and then deleted, so that its end is not known."""

_WORST_FIRST = (RunStatus.FAILED, RunStatus.ABORTED)


def worst(runs: Iterable[RunSnapshot]) -> int:
    """Return the exit code for several runs: a failed one outweighs an aborted one; an unfinished one counts as 0."""
    ends = {run.status for run in runs}
    return next((EXIT_CODES[status] for status in _WORST_FIRST if status in ends), 0)


def why_line(engine: Engine, run: RunSnapshot, result: RunResult | None) -> str:
    """Say why a run is not done, or how it ended."""
    from ..project.diagnosis import DiagnosisReader, Evidence, explain  # a list of runs does not need it

    evidence = Evidence(result=result) if run.has_ended else DiagnosisReader(engine.project, run.run_id).read(run)
    return explain(run, evidence, datetime.now(UTC))


def run_document(engine: Engine, run: RunSnapshot) -> dict[str, Any]:
    """Return everything about a run but its system prompt: meta, result (null until it has ended), live activity,
    paths of its files.
    """
    meta = msgspec.to_builtins(run.meta)
    del meta["systemPrompt"]  # snapshots do not carry it; its file is among the artifacts
    result = engine.result(run.run_id) if run.has_ended else None
    ended = msgspec.to_builtins(result) if result else dict.fromkeys(RunResult.__struct_encode_fields__)
    state = run.state
    live = {
        "status": run.status,
        "reason": run.reason,
        "unknown": run.elsewhere,
        "message": state.message if isinstance(state, Ended) else "",
        "activity": activity(run),
        "sentence": run.sentence,
        "ahead": state.ahead if isinstance(state, Queued) else None,
        "why": why_line(engine, run, result),
        "usage": run.usage,
        "attempts": 1 if isinstance(state, Queued) else state.attempt,
        "startedAt": run.started_at,
        "endedAt": state.ended_at if isinstance(state, Ended) else None,
        "durationMs": state.duration_ms if isinstance(state, Ended) else None,
        "lastEventAt": run.last_event_at,
        "warnings": run.warnings,
    }
    return {**ended, **meta, **live, "resolvedModel": ended["resolvedModel"] or meta["resolvedModel"],
            "childSessionId": ended["childSessionId"] or meta["childSessionId"],
            "artifacts": engine.artifacts(run.run_id)}  # fmt: skip
