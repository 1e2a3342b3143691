"""The text of the message being written: kept escaped as received, and decoded only on demand."""

from __future__ import annotations

import msgspec

from ._json_lines import unescaped

WHOLE_LIMIT = 1024 * 1024
"""Maximum escaped bytes kept."""
TAIL_LIMIT = 2048
"""UTF-8 bytes of the tail."""
_BETWEEN_BLOCKS = b"\\n\\n"
"""Escaped, like the deltas; whole messages are joined the same way."""


class Sentence:
    """Collects text that a later line repeats in full, in case that line is missing."""

    def __init__(self) -> None:
        self._escaped = bytearray()
        self._tail = ""
        self._cut = 0
        """Bytes dropped because of the limit."""
        self.number = 0
        """Message counter, so that a reader can distinguish messages."""

    def add(self, escaped: bytes | None) -> None:
        """Add new text. Empty: a new text block begins. None: no change."""
        if escaped is None:
            return
        if not escaped:
            escaped = _BETWEEN_BLOCKS if self._tail else b""
        self._tail = (self._tail + unescaped(escaped))[-TAIL_LIMIT:]
        if self._cut or len(self._escaped) + len(escaped) > WHOLE_LIMIT:
            self._cut += len(escaped)
        else:
            self._escaped += escaped

    def add_text(self, text: str) -> None:
        """Add new text that is not escaped."""
        if text:
            self.add(msgspec.json.encode(text)[1:-1])

    def clear(self) -> None:
        """Clear the text: the message has ended, or another one begins."""
        if self._tail:
            self._escaped.clear()
            self._tail, self._cut = "", 0
            self.number += 1

    @property
    def tail(self) -> str:
        """The end of the text, for a live view."""
        return self._tail.encode("utf-8", "replace")[-TAIL_LIMIT:].decode("utf-8", "ignore")

    @property
    def length(self) -> int:
        """Escaped bytes kept; a possible `start` of `text`."""
        return len(self._escaped)

    def text(self, start: int = 0) -> str:
        """Return the kept text from an earlier `length` on."""
        return unescaped(bytes(memoryview(self._escaped)[start:]))

    def whole(self) -> str:
        """Return all kept text, with a note of the bytes omitted."""
        return f"{self.text()}\n[… {self._cut} more bytes omitted]" if self._cut else self.text()
