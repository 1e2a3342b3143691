"""Lines of which a later one says all again: how they are told from others, and how the new text is taken from them."""

from __future__ import annotations

import re

from msgspec import Struct

UPDATE_HEAD = 4096
"""Bytes of such a line: more of it is looked at only where its delta is longer."""

UPDATE_MOST = 1024 * 1024
"""Bytes of such a line that are looked at for a long delta."""

_WITHIN = 1024
"""Bytes from the beginning of a line within which the delta begins."""

# Compiled at its first use, when the child has been started already.
_CUT_ESCAPE = rb"(?<!\\)((?:\\\\)*)\\(?:u[0-9a-fA-F]{0,3})?$"


class Updates(Struct, frozen=True):
    """The lines of one agent that only show how a message grows. They are not kept, and never decoded whole."""

    prefixes: tuple[bytes, ...] = ()
    """How they begin; only those that begin with the first may bring text."""
    marker: bytes = b""
    """What the delta of one that brings text begins with. Quotes inside JSON strings are escaped, so no text that a
    model or a tool wrote can look like it."""
    delta: re.Pattern[bytes] | None = None
    """Matches from the marker on. Its group `text` is the new text, still escaped; where another one, `start`, matched
    instead, a block of text begins. It must not ask for what stands behind the text: the line may be cut anywhere."""
    several: re.Pattern[bytes] | None = None
    """Matches whole lines of them that follow one another, each with its newline. An agent that writes many short ones
    is read at the speed of this and the next pattern; without it they are taken one by one."""
    deltas: re.Pattern[bytes] | None = None
    """Finds the texts in such lines; its only group is the text."""

    def end(self, content: bytes, start: int, end: int) -> int:
        """Return where that ends which is looked at of a line: its head, or its delta where that goes further."""
        if end - start <= UPDATE_HEAD:
            return end
        found = self._match(content, start, min(end, start + UPDATE_MOST))
        return min(end, max(start + UPDATE_HEAD, found.end() + 1 if found else 0))

    def run_end(self, content: bytes, start: int) -> int:
        """Return where the whole lines of them end that begin at `start`; `start` where they are taken one by one."""
        found = self.several.match(content, start) if self.several else None
        return found.end() if found else start

    def text(self, lines: bytes) -> bytes | None:
        """Return the new text in the head of a line, as it is escaped there and as much of it as is there, or in
        several lines; nothing when a block of text begins, None when they are about something else.
        """
        if self.deltas:
            if texts := self.deltas.findall(lines):
                return b"".join(texts)
            if lines.endswith(b"}"):
                return None  # it is not cut, so that another pattern would find no more
        found = self._match(lines, 0, len(lines)) if lines.startswith(self.prefixes[:1]) else None
        if found is None:
            return None
        text: bytes | None = found["text"]
        if text is None:
            return b""
        if found.end() < len(lines):
            return text
        return re.sub(_CUT_ESCAPE, rb"\1", text.decode("utf-8", "ignore").encode())

    def is_open(self, line: bytes) -> bool:
        """Tell whether a line ends within the text that it brings."""
        found = self._match(line, 0, len(line)) if line.startswith(self.prefixes[:1]) else None
        return found is not None and found.end() == len(line)

    def _match(self, content: bytes, start: int, end: int) -> re.Match[bytes] | None:
        if self.delta is None:
            return None
        position = content.find(self.marker, start, start + _WITHIN)
        return self.delta.match(content, position, end) if position >= 0 else None
