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

_BEHIND = 256
"""Bytes behind the text that are looked at where they tell whose text it is."""

_BACKSLASH = ord("\\")

_HALF_ESCAPE = 5
"""The most bytes that an escape has that is cut: a backslash, `u` and three digits."""

BEGUN = rb'(?P<text>[^"\\]*(?:\\.[^"\\]*){0,1000})'
"""The inside of a JSON string up to its closing quote or to the end of what is there, or as far as so many escapes go:
matching takes memory for each of them."""

QUOTED = rb'(?=([^"\\]*(?:\\.[^"\\]*)*))\1"'
"""The inside of a JSON string, as group 1, and its closing quote. What was looked ahead at is never given back byte by
byte, so that a string without an end takes no longer than one with it. Possessive quantifiers would say the same, but
Python 3.11.0 to 3.11.4 lose characters there. Both need DOTALL."""


class Updates(Struct, frozen=True):
    """The lines of one agent that only show how a message grows. They are not kept, and never decoded whole."""

    prefixes: tuple[bytes, ...] = ()
    """How they begin; only those that begin with the first may bring text."""
    marker: bytes = b""
    """What the delta of one that brings text begins with. Quotes inside JSON strings are escaped, so no text that a
    model or a tool wrote can look like it."""
    delta: re.Pattern[bytes] | None = None
    """Matches from the marker on, and ends with `BEGUN`: the new text, still escaped. Where another group matched
    instead, a block of text begins. It must not ask for what stands behind the text: the line may be cut anywhere."""
    behind: re.Pattern[bytes] | None = None
    """Matches behind the text, from its closing quote on, where the text belongs to the message; None if it always
    does."""
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
        after = found[1] + 1 + (_BEHIND if self.behind else 0) if found else 0
        return min(end, max(start + UPDATE_HEAD, after))

    def run_end(self, content: bytes, start: int) -> int:
        """Return where the whole lines of them end that begin at `start`; `start` where they are taken one by one."""
        found = self.several.match(content, start) if self.several else None
        return found.end() if found else start

    def text(self, lines: bytes) -> bytes | None:
        """Return the new text in the head of a line, as it is escaped there and as much of it as is there, or in
        several lines; nothing when a block of text begins, None when they are about something else.
        """
        if self.deltas and b"\n" in lines:
            return b"".join(self.deltas.findall(lines)) or None
        found = self._match(lines, 0, len(lines)) if lines.startswith(self.prefixes[:1]) else None
        if found is None:
            return None
        start, end = found
        if start < 0:
            return b""
        text = lines[start:end]
        if end == len(lines):
            text = _without_half_escape(text).decode("utf-8", "ignore").encode()
        elif self.behind and not self.behind.match(lines, end):
            return None
        return text or None

    def is_open(self, line: bytes) -> bool:
        """Tell whether a line ends within the text that it brings."""
        found = self._match(line, 0, len(line)) if line.startswith(self.prefixes[:1]) else None
        return found is not None and found[1] == len(line)

    def _match(self, content: bytes, start: int, end: int) -> tuple[int, int] | None:
        """Return where the new text of a line begins, -1 for a new block, and where it ends: at its closing quote, or
        with the line.
        """
        if self.delta is None or (position := content.find(self.marker, start, start + _WITHIN)) < 0:
            return None
        if (found := self.delta.match(content, position, end)) is None:
            return None
        stop = found.end()
        if stop < end and content[stop] == _BACKSLASH:
            rest = content[stop:end].replace(rb"\\", b"..").replace(rb"\"", b"..").find(b'"')
            stop = stop + rest if rest >= 0 else end
        return found.start("text"), stop


def _without_half_escape(text: bytes) -> bytes:
    """Leave out the beginning of an escape at the end of a text; an escaped backslash begins none."""
    backslash = text.rfind(b"\\", -_HALF_ESCAPE)
    if backslash < 0 or not re.fullmatch(rb"(?:u[0-9a-fA-F]{0,3})?", text[backslash + 1 :]):
        return text
    before = text[:backslash]
    return text if (len(before) - len(before.rstrip(b"\\"))) % 2 else before
