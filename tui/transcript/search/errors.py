"""The pattern that finds what went wrong in a run's events."""

from __future__ import annotations

from ....core.run.events import ErrorReported, RunEnded, ToolResult, may_report_error
from ....core.run.model import RunStatus
from ...feed.lines import event_of
from .scanner import Matcher


class Errors:
    """Errors, failed tools and an end other than completed; each line is matched by itself."""

    def matcher(self) -> Matcher:
        return self

    def matches(self, start: int, block: bytes) -> list[int]:
        if not may_report_error(block):
            return []
        matches: list[int] = []
        for line in block.split(b"\n")[:-1]:
            if may_report_error(line) and is_error(line):
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
