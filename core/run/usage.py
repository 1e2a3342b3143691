"""What each message of the agent cost: one row for each, and the sums of all."""

from __future__ import annotations

import os
from collections import deque

from msgspec import Struct

from ..paths import EVENTS
from ..system.line_file import LineTail
from .events import ToolCall, UsageReported, decode_event, line_prefix
from .fold import add_usage
from .model import Usage

KEPT = 5000
"""Rows that are kept, the newest ones; all others are in the sums."""
PIECE = 16 * 1024 * 1024
"""Bytes read at a time, so that whoever waits can be told how far it is."""
_USAGE, _CALL = line_prefix(UsageReported), line_prefix(ToolCall)


class Turn(Struct, frozen=True, gc=False):
    """One message of the assistant; tokens, and cost in dollars."""

    number: int
    ts: str
    input: int
    output: int
    cache_read: int
    cache_write: int
    cost: float
    model: str
    stop_reason: str


class UsageReader:
    """Reads the events of one run as they grow, each byte once, a piece at a time."""

    def __init__(self, run_dir: str) -> None:
        self._path = os.path.join(run_dir, EVENTS)
        self._tail = LineTail(self._path)
        self.turns: deque[Turn] = deque(maxlen=KEPT)
        self.messages = 0
        """All that were read, those that are not kept too."""
        self.total = Usage()

    def read(self) -> bool:
        """Take in the next piece; return whether there is more."""
        before, tool_uses = self._tail.offset, 0
        for line in self._tail.lines(PIECE):
            if line.startswith(_USAGE):
                event = decode_event(line)
                if isinstance(event, UsageReported):
                    self._add(event)
            elif line.startswith(_CALL):
                tool_uses += 1
        if tool_uses:
            self.total = _with_tools(self.total, tool_uses)
        return self._tail.offset - before >= PIECE

    @property
    def progress(self) -> float:
        """How much of the file was read, 0 to 1."""
        try:
            size = os.stat(self._path).st_size
        except OSError:
            return 1.0
        return min(1.0, self._tail.offset / size) if size else 1.0

    def _add(self, event: UsageReported) -> None:
        self.messages += 1
        self.total = add_usage(self.total, event)
        self.turns.append(
            Turn(
                self.messages,
                event.ts,
                event.input,
                event.output,
                event.cache_read,
                event.cache_write,
                event.cost,
                event.model,
                event.stop_reason,
            )
        )


def _with_tools(total: Usage, more: int) -> Usage:
    from msgspec.structs import replace

    return replace(total, tool_uses=total.tool_uses + more)
