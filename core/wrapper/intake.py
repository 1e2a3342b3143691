"""What a child writes, on its way through the stream that understands it into the records."""

from __future__ import annotations

from collections.abc import Iterable

from ..agents.base import ChildStream
from .lines import Line, LineSplitter, Piece
from .records import Records

STDERR_KEPT = 2048
"""Bytes of stderr that are remembered for the message of a failure."""


class Intake:
    """Takes both outputs in chunks of any size; the same for a living child and for a recorded one."""

    def __init__(self, stream: ChildStream, records: Records) -> None:
        self._stream = stream
        self._records = records
        self._splitter = LineSplitter(stream.update_prefixes)
        self._stderr_tail = b""

    @property
    def last_words(self) -> str:
        """The end of stderr."""
        return self._stderr_tail.decode("utf-8", "replace")

    def stdout(self, chunk: bytes) -> bool:
        """Take a chunk; return whether it completed a line that is more than an update."""
        return self._take(self._splitter.split(chunk))

    def rest(self) -> None:
        """Take what stands after the last newline, at the end of the output."""
        self._take(self._splitter.rest())

    def stderr(self, chunk: bytes) -> None:
        self._records.stderr.append(chunk)
        self._stderr_tail = (self._stderr_tail + chunk)[-STDERR_KEPT:]

    def _take(self, pieces: Iterable[Piece]) -> bool:
        before = self._stream.sentence
        kept: list[bytes] = []
        for piece in pieces:
            if isinstance(piece, Line):
                kept.append(piece.content)
                for event in self._stream.feed(piece.content):
                    self._records.event(event)
            else:
                self._stream.feed_update(piece.head)
        if kept:
            self._records.stdout.append(b"\n".join(kept) + b"\n")
        if (sentence := self._stream.sentence) != before:
            self._records.sentence(sentence)
        return bool(kept)
