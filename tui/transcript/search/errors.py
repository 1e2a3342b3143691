"""Find what went wrong in a run's events: errors, tools that failed, an end that is no answer."""

from __future__ import annotations

from ....core.run.events import ErrorReported, RunEnded, ToolResult
from ....core.run.model import RunStatus
from ...feed.lines import event_of
from .scanner import Matcher

_SIGNS = (b'"isError":true', b'"type":"error"', b'"type":"run_ended"')


class Errors:
    """The same in every view of the events; each line stands for itself."""

    def matcher(self) -> Matcher:
        return self

    def hits(self, start: int, block: bytes) -> list[int]:
        """Return where the lines begin that say an error."""
        if not any(sign in block for sign in _SIGNS):
            return []
        hits: list[int] = []
        for line in block.split(b"\n")[:-1]:
            if any(sign in line for sign in _SIGNS) and is_error(line):
                hits.append(start)
            start += len(line) + 1
        return hits


def is_error(line: bytes) -> bool:
    """Return whether a line of events.jsonl says that something went wrong."""
    match event_of(line):
        case ErrorReported():
            return True
        case ToolResult(is_error=failed):
            return failed
        case RunEnded(status=status):
            return status != RunStatus.COMPLETED
        case _:
            return False
