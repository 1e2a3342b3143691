"""A run as the tools answer it, field by field."""

from __future__ import annotations

from typing import Any

import msgspec

from ..run.model import Counts, RunResult, RunSnapshot, RunStatus
from ..text.plain import one_line
from .answer import answer_details


def run_row(run: RunSnapshot) -> dict[str, Any]:
    """Answer what is known of a run from its beginning on."""
    meta = run.meta
    return {
        "runId": meta.run_id,
        "preset": meta.preset,
        "description": meta.description,
        "task": meta.task,
        "cwd": meta.cwd,
        "requestedModel": meta.requested_model,
        "resolvedModel": meta.resolved_model,
        "createdAt": meta.created_at,
        "startedAt": run.started_at,
        "endedAt": run.ended_at,
        "status": run.status.value,
        "reason": run.reason.value if run.reason else None,
        "sessionId": meta.child_session_id,
    }


def end_fields(run: RunSnapshot, result: RunResult | None, *, limit: int | None = None) -> dict[str, Any]:
    """Answer how a run ended; with `limit` no more than so many characters of its answer."""
    if result is None:
        return {"answer": None, "error": run.message or None, "durationMs": run.duration_ms}
    return {
        "resolvedModel": result.resolved_model or run.meta.resolved_model,
        "answer": _shortened(result.final_text, limit),
        "error": None if result.status is RunStatus.COMPLETED else result.error_message or result.reason.value,
        "exitCode": result.exit_code,
        "stopReason": result.stop_reason,
        "durationMs": result.duration_ms,
        "usage": msgspec.to_builtins(result.usage),
        **answer_details(result),
    }


def counts_row(counts: Counts) -> dict[str, int]:
    return msgspec.to_builtins(counts)


def counts_text(counts: Counts) -> str:
    """`bg: 2 running / 5 total`."""
    return f"bg: {counts.running} running / {counts.total} total"


def line(run: RunSnapshot) -> str:
    """Answer one line about a run: id, preset, how it stands, what about."""
    said = run.message if run.is_terminal else run.activity
    reason = f" ({run.reason})" if run.reason else ""
    about = run.meta.description or run.meta.task
    parts = (f"{run.run_id} {run.meta.title} {run.status}{reason}", one_line(about, 80), one_line(said, 160))
    return " — ".join(part for part in parts if part)


def _shortened(text: str | None, limit: int | None) -> str | None:
    if text is None or limit is None or len(text) <= limit:
        return text
    return f"{text[:limit]}\n[…truncated: ask for this runId alone…]"
