"""An agent's output: split into lines, fed to the stream that understands it, and written to the records."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from ..agents.child import Stream
from ..agents.updates import UPDATE_HEAD, UPDATE_MOST, Updates
from ..run.events import Event
from .records import Records

LINE_LIMIT = 32 * 1024 * 1024
"""Bytes; a longer line is cut there. The longest line seen from pi has 1.2 MB."""


class LineSplitter:
    """Splits on LF bytes only: U+2028 and its kin are text.

    Of lines that `updates` knows (250 MB of them for one long answer of pi 0.73.1) only the part that is parsed is held
    and yielded, several at once if they can be read so. The rest is skipped at the speed of a search for the next
    newline.
    """

    def __init__(self, updates: Updates) -> None:
        self._updates = updates
        self._prefixes = updates.prefixes
        self._parts: list[bytes] = []
        """The held part of the unfinished line."""
        self.held = 0
        """Size of that part in bytes."""
        self._limit = LINE_LIMIT
        """Its limit in bytes."""

    def split(self, chunk: bytes) -> Iterator[bytes]:
        """Yield the lines that this chunk completes, without their newlines."""
        position = 0
        while (end := chunk.find(b"\n", position)) >= 0:
            if self._parts:
                self._hold(chunk, position, end)
                yield self._finish()
            elif chunk.startswith(self._prefixes, position, end):
                after = self._updates.run_end(chunk, position)
                if after > end:
                    yield chunk[position : after - 1]
                    position = after
                    continue
                yield chunk[position : self._updates.end(chunk, position, end)]
            else:
                yield chunk[position:end]
            position = end + 1
        if position < len(chunk):
            self._hold(chunk, position, len(chunk))

    def rest(self) -> Iterator[bytes]:
        """Yield the text after the last newline, at the end of the output."""
        if self._parts:
            yield self._finish()

    def _hold(self, chunk: bytes, start: int, end: int) -> None:
        room = self._limit - self.held
        if room <= 0:
            return
        part = chunk[start : min(end, start + room)]
        self._parts.append(part)
        self.held += len(part)
        if self._limit == LINE_LIMIT and self.held >= UPDATE_HEAD:
            self._limit_update()

    def _limit_update(self) -> None:
        """Hold no more of an update line than is parsed, now that its start shows how much that is."""
        if len(self._parts[0]) < UPDATE_HEAD:
            self._parts = [b"".join(self._parts)]
        if self._parts[0].startswith(self._prefixes):
            beginning = b"".join(self._parts)
            looked_at = self._updates.end(beginning, 0, self.held)
            self._parts = [beginning[:looked_at]]
            self._limit = UPDATE_MOST if looked_at == self.held else looked_at
            self.held = looked_at

    def _finish(self) -> bytes:
        content = b"".join(self._parts)
        self._parts.clear()
        self.held = 0
        self._limit = LINE_LIMIT
        if content.startswith(self._prefixes):
            return content[: self._updates.end(content, 0, len(content))]
        return content


STDERR_KEPT = 2048
"""Bytes of stderr kept for the message of a failure."""


class Intake:
    """Accepts both outputs in chunks of any size, of a live or a recorded agent."""

    def __init__(self, stream: Stream, records: Records, take: Callable[[Event], None] | None = None) -> None:
        """`take` gets the agent's events instead of the records."""
        self._stream = stream
        self._records = records
        self._take_event = take or records.event
        self._splitter = LineSplitter(stream.updates)
        self._stderr_tail = b""

    @property
    def last_words(self) -> str:
        """The end of stderr."""
        return self._stderr_tail.decode("utf-8", "replace")

    def stdout(self, chunk: bytes) -> bool:
        """Process a chunk; return whether it completed a line that is more than an update."""
        return self._take(self._splitter.split(chunk))

    def rest(self) -> None:
        """Process the text after the last newline, at the end of the output, and any unfinished message."""
        self._take(line for line in self._splitter.rest() if not self._stream.updates.is_open(line))
        for event in self._stream.end():
            self._take_event(event)

    def stderr(self, chunk: bytes) -> None:
        self._records.stderr.append(chunk)
        self._stderr_tail = (self._stderr_tail + chunk)[-STDERR_KEPT:]

    def _take(self, lines: Iterable[bytes]) -> bool:
        before, prefixes = self._stream.writing.tail, self._stream.updates.prefixes
        kept: list[bytes] = []
        for line in lines:
            if not line.startswith(prefixes):
                kept.append(line)
            for event in self._stream.feed(line):
                self._take_event(event)
        if kept:
            self._records.stdout.append(b"\n".join(kept) + b"\n")
        if self._stream.writing.tail != before:
            self._records.sentence(self._stream.writing)
        return bool(kept)
