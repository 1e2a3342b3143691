"""The text of the message that is being written: kept as the agent escaped it, decoded only where somebody asks for
it.
"""

from __future__ import annotations

import msgspec

from ._json_lines import unescaped

WHOLE_LIMIT = 1024 * 1024
"""Bytes that are kept of it, as they came."""
TAIL_LIMIT = 2048
"""UTF-8 bytes of its end."""
_BETWEEN_BLOCKS = b"\\n\\n"
"""Escaped, as the deltas are; whole messages are joined in the same way."""


class Sentence:
    """Takes the lines that repeat what a later one says whole: should that never come, this is all there is."""

    def __init__(self) -> None:
        self._escaped = bytearray()
        self._tail = ""
        self._cut = 0
        """Bytes for which there was no room."""
        self.number = 0
        """Counts the messages, so that a reader can tell one from the next."""

    def add(self, escaped: bytes | None) -> None:
        """Take new text; nothing where a block of text begins, None where there is no news."""
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
        """Take new text that is not escaped."""
        if text:
            self.add(msgspec.json.encode(text)[1:-1])

    def clear(self) -> None:
        """Forget it: the message has ended, or another one begins."""
        if self._tail:
            self._escaped.clear()
            self._tail, self._cut = "", 0
            self.number += 1

    @property
    def tail(self) -> str:
        """The end of it, for who watches it being written."""
        return self._tail.encode("utf-8", "replace")[-TAIL_LIMIT:].decode("utf-8", "ignore")

    @property
    def length(self) -> int:
        """Bytes that `text` reads from."""
        return len(self._escaped)

    def text(self, start: int = 0) -> str:
        """Return what is kept from an earlier `length` on."""
        return unescaped(bytes(memoryview(self._escaped)[start:]))

    def whole(self) -> str:
        """Return all that is kept, and how much is not."""
        return f"{self.text()}\n[… {self._cut} more bytes omitted]" if self._cut else self.text()
