"""Finalization: the child hands over its result by a tool, and is asked again when it does not. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .model import Finalized, FinalizeStatus

FINALIZE_TOOL = "subagent_finalize"
"""Registered in children only, by the extension `finalize.ts`."""

INSTRUCTION = (
    f"When your task is done, call the tool {FINALIZE_TOOL} as your final action, alone in its message: with status "
    "SUCCESS and your whole answer as result, or with status ERROR and the reason as error. Text outside that call is "
    "not returned."
)
"""The one line about it in the child's system prompt."""


class InvalidPayload(Exception):
    """Nothing that counts as a result was handed over; the message says why."""


def read_payload(payload: Mapping[str, Any] | None) -> Finalized:
    """Return what was handed over. Raises InvalidPayload."""
    if payload is None:
        raise InvalidPayload(f"{FINALIZE_TOOL} was not called")
    result, error = _text(payload, "result"), _text(payload, "error")
    match payload.get("status"):
        case "SUCCESS" if result is None:
            raise InvalidPayload("SUCCESS needs a non-empty result")
        case "SUCCESS" if error is not None:
            raise InvalidPayload("SUCCESS carries no error")
        case "SUCCESS":
            return Finalized(FinalizeStatus.SUCCESS, result)
        case "ERROR" if error is None:
            raise InvalidPayload("ERROR needs a non-empty error")
        case "ERROR":
            return Finalized(FinalizeStatus.ERROR, result, error)
        case _:
            raise InvalidPayload("the status is neither SUCCESS nor ERROR")


def _text(payload: Mapping[str, Any], name: str) -> str | None:
    value = payload.get(name)
    return value if isinstance(value, str) and value.strip() else None


def feedback(fault: str) -> str:
    """Return what the same child session is asked next."""
    return (
        f"Your last turn did not hand over a result: {fault}. Do not repeat the work. Call {FINALIZE_TOOL} now, "
        "alone in its message: SUCCESS with your whole answer as result, or ERROR with the reason as error."
    )
