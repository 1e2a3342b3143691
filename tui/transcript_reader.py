"""Read the transcript of the one shown run, in pieces; everything here happens in a worker thread."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from msgspec import Struct

from ..core.progress import ProgressFormatter
from .transcript_lines import Entry, entry_of

if TYPE_CHECKING:
    from ..core.tail import EventTail

PIECE = 512 * 1024
"""Bytes of events.jsonl read at a time: some thousand events, a few hundredths of a second."""


class Piece(Struct, frozen=True):
    entries: list[Entry]
    events: int
    last_seq: int
    more: bool


class TranscriptReader:
    """Hands out what a run's events say, each once."""

    def __init__(self, run_id: str, open_tail: Callable[[str], EventTail]) -> None:
        self.run_id = run_id
        self._open_tail = open_tail
        self._tail: EventTail | None = None
        self._formatter = ProgressFormatter()
        self._last_seq = 0

    def read(self) -> Piece:
        """Answer what was written since the last call, up to about `PIECE` bytes of it."""
        tail = self._tail = self._tail or self._open_tail(self.run_id)
        before = tail.offset
        events = tail.read(PIECE)
        if events:
            self._last_seq = max(self._last_seq, events[-1].seq)
        entries = [entry for event in events if (entry := entry_of(event, self._formatter))]
        return Piece(entries, len(events), self._last_seq, tail.offset - before >= PIECE)
