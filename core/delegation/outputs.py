"""What the tools answer, as JSON Schema. A refused call has `error` in place of the rest, so nothing is required."""

from __future__ import annotations

from typing import Any

_TEXT: dict[str, Any] = {"type": "string"}
_TEXT_OR_NULL: dict[str, Any] = {"type": ["string", "null"]}
_NUMBER: dict[str, Any] = {"type": "integer"}
_NUMBER_OR_NULL: dict[str, Any] = {"type": ["integer", "null"]}
_STATUS: dict[str, Any] = {"type": "string", "enum": ["queued", "running", "completed", "failed", "aborted"]}
_PATHS: dict[str, Any] = {"type": "object", "additionalProperties": _TEXT}

_ERROR: dict[str, Any] = {
    "type": "object",
    "properties": {
        "what": _TEXT,
        "field": _TEXT,
        "value": _TEXT,
        "valid": {"type": "array", "items": _TEXT},
        "where": _TEXT,
        "hint": _TEXT,
        "index": _NUMBER,
    },
    "required": ["what", "value", "valid", "where", "hint"],
}

_COUNTS: dict[str, Any] = {
    "type": "object",
    "properties": dict.fromkeys(("running", "completed", "failed", "aborted", "total", "queued"), _NUMBER),
    "required": ["running", "completed", "failed", "aborted", "total"],
}

_RUN: dict[str, Any] = {
    "runId": _TEXT,
    "preset": _TEXT,
    "description": _TEXT,
    "task": _TEXT,
    "cwd": _TEXT,
    "requestedModel": _TEXT,
    "resolvedModel": _TEXT,
    "createdAt": _TEXT,
    "startedAt": _TEXT_OR_NULL,
    "endedAt": _TEXT_OR_NULL,
    "status": _STATUS,
    "reason": _TEXT_OR_NULL,
    "sessionId": _TEXT_OR_NULL,
    "runDir": _TEXT,
    "artifacts": _PATHS,
}

_ENDED: dict[str, Any] = {
    "answer": _TEXT_OR_NULL,
    "error": _TEXT_OR_NULL,
    "exitCode": _NUMBER_OR_NULL,
    "stopReason": _TEXT_OR_NULL,
    "durationMs": _NUMBER_OR_NULL,
    "usage": {"type": "object"},
    "finalized": {"type": "object", "additionalProperties": _TEXT},
}


def _answer(properties: dict[str, Any]) -> dict[str, Any]:
    errors = {"error": _ERROR, "errors": {"type": "array", "items": _ERROR}}
    return {"type": "object", "properties": {**properties, **errors}}


def _rows(properties: dict[str, Any]) -> dict[str, Any]:
    row = {"type": "object", "properties": properties, "required": ["runId", "preset", "status"]}
    return {"type": "array", "items": row}


SUBAGENT = _answer(
    {
        "mode": {"type": "string", "enum": ["single", "parallel"]},
        "completed": _NUMBER,
        "runs": _rows({"index": _NUMBER, **_RUN, **_ENDED}),
    }
)
BACKGROUND = _answer({**_RUN, "counts": _COUNTS})
STATUS = _answer({"counts": _COUNTS, "runs": _rows({**_RUN, "activity": _TEXT, **_ENDED}), "omitted": _NUMBER})
