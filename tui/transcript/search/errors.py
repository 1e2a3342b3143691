"""The pattern that finds what went wrong in a run's events."""

from __future__ import annotations

from ....core.run.events import ErrorReported, RunEnded, ToolResult
from ....core.run.model import RunStatus
from ...feed.lines import event_of
from .scanner import Matcher

_MARKERS = (b'"isError":true', b'"type":"error"', b'"type":"run_ended"')
"""One of them is in every line that may report an error."""


class Errors:
    """Errors, failed tools and an end other than completed; each line is matched by itself."""

    def matcher(self) -> Matcher:
        return self

    def matches(self, start: int, block: bytes) -> list[int]:
        if not any(marker in block for marker in _MARKERS):
            return []
        matches: list[int] = []
        for line in block.split(b"\n")[:-1]:
            if any(marker in line for marker in _MARKERS) and is_error(line):
                matches.append(start)
            start += len(line) + 1
        return matches


def is_error(line: bytes) -> bool:
    """Return whether a line of events.jsonl reports that something went wrong."""
    match event_of(line):
        case ErrorReported() | ToolResult(is_error=True):
            return True
        case RunEnded(status=status):
            return status != RunStatus.COMPLETED
        case _:
            return False
