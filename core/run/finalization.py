"""Finalization: the child hands over its result by a tool, and is asked again when it does not. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

FINALIZE_TOOL = "subagent_finalize"
"""Registered in children only, by the extension `finalize.ts`."""

INSTRUCTION = (
    f"When your task is done, call the tool {FINALIZE_TOOL} as your final action, alone in its message: with status "
    "SUCCESS and your whole answer as result, or with status ERROR and the reason as error. Text outside that call is "
    "not returned."
)
"""The one line about it in the child's system prompt."""


class Finalized(NamedTuple):
    """What a child handed over; as in `result.json`."""

    status: str
    """`SUCCESS` or `ERROR`."""
    result: str | None = None
    """The answer; with ERROR partial findings, or None."""
    error: str | None = None

    def fields(self) -> dict[str, str]:
        named = {"status": self.status, "result": self.result, "error": self.error}
        return {name: value for name, value in named.items() if value is not None}


def read_payload(payload: Mapping[str, Any] | None) -> Finalized | str:
    """Return what was handed over, or in words what is wrong with it."""
    if payload is None:
        return f"{FINALIZE_TOOL} was not called"
    status, result, error = (payload.get(name) for name in ("status", "result", "error"))
    result = result if isinstance(result, str) and result.strip() else None
    error = error if isinstance(error, str) and error.strip() else None
    if status == "SUCCESS":
        if result is None:
            return "SUCCESS needs a non-empty result"
        return "SUCCESS carries no error" if error else Finalized("SUCCESS", result)
    if status == "ERROR":
        return Finalized("ERROR", result, error) if error else "ERROR needs a non-empty error"
    return "the status is neither SUCCESS nor ERROR"


def feedback(fault: str) -> str:
    """Return what the same child session is asked next."""
    return (
        f"Your last turn did not hand over a result: {fault}. Do not repeat the work. Call {FINALIZE_TOOL} now, "
        "alone in its message: SUCCESS with your whole answer as result, or ERROR with the reason as error."
    )
