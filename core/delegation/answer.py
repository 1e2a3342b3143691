"""The answer of a run as a parent agent gets it: a header for clients without structured results, then the text."""

from __future__ import annotations

from typing import Any

from ..run.model import RunResult, RunStatus


def answer_for_parent(result: RunResult) -> str:
    """Answer the text for the parent's model: status, child session id, a rule, then the answer or the error."""
    status = "SUCCESS" if result.status is RunStatus.COMPLETED else "ERROR"
    header = [f"**Status:** {status}"]
    if result.child_session_id:
        header.append(f"**Session ID:** `{result.child_session_id}`")
    return "  \n".join(header) + f"\n\n---\n\n{_body(result)}"


def answer_details(result: RunResult) -> dict[str, Any]:
    """Answer the fields beside the text: `sessionId`, and `finalized` where the child handed over its result."""
    details: dict[str, Any] = {"sessionId": result.child_session_id}
    if result.finalized is not None:
        details["finalized"] = result.finalized
    return details


def _body(result: RunResult) -> str:
    if result.status is RunStatus.COMPLETED:
        return result.final_text or ""
    said = f"{result.status}: {result.reason}"
    error = f"{said}: {result.error_message}" if result.error_message else said
    return f"{error}\n\nPartial findings:\n\n{result.final_text}" if result.final_text else error
