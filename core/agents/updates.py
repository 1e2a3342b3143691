"""Update lines, which a later line repeats in full: how to recognize them and extract the new text."""

from __future__ import annotations

import re

from msgspec import Struct

UPDATE_HEAD = 4096
"""Bytes of an update that are read; more only if its delta is longer."""

UPDATE_MOST = 1024 * 1024
"""Maximum bytes of an update that are read for a long delta."""

_WITHIN = 1024
"""Bytes from the start of a line within which the delta begins."""

_BEHIND = 256
"""Bytes read behind the text, if they show which message it belongs to."""

_BACKSLASH = ord("\\")

_HALF_ESCAPE = 5
"""Longest incomplete escape in bytes: a backslash, `u` and three digits."""

BEGUN = rb'(?P<text>[^"\\]*(?:\\.[^"\\]*){0,1000})'
"""The inside of a JSON string up to its closing quote, the end of the input, or the maximum number of escapes: matching
takes memory for each escape.
"""

QUOTED = rb'(?=([^"\\]*(?:\\.[^"\\]*)*))\1"'
"""The inside of a JSON string, as group 1, and its closing quote. The lookahead prevents backtracking, so that an
unterminated string takes no longer than a terminated one. Possessive quantifiers would do the same, but Python 3.11.0
to 3.11.4 lose characters there. Both need DOTALL.
"""


class Updates(Struct, frozen=True):
    """An agent's lines that only show a message growing. They are not kept, and never decoded whole."""

    prefixes: tuple[bytes, ...] = ()
    """How they begin; only lines with the first prefix may have text."""
    marker: bytes = b""
    """The start of the delta in a line with text. Quotes inside JSON strings are escaped, so no text of a model or tool
    can match it.
    """
    delta: re.Pattern[bytes] | None = None
    """Matches from the marker, and ends with `BEGUN`: the new text, still escaped. If another group matches instead, a
    text block begins. It must not depend on anything behind the text, because the line may be cut anywhere.
    """
    behind: re.Pattern[bytes] | None = None
    """Matches behind the text, from its closing quote, if the text belongs to the message; None if it always does."""
    several: re.Pattern[bytes] | None = None
    """Matches consecutive whole update lines, each with its newline. This and `deltas` speed up agents that write many
    short updates; without it, lines are handled one by one.
    """
    deltas: re.Pattern[bytes] | None = None
    """Finds the texts in such lines; its only group is the text."""

    def end(self, content: bytes, start: int, end: int) -> int:
        """Return the end of the part of a line that is read: its head, or the end of a longer delta."""
        if end - start <= UPDATE_HEAD:
            return end
        span = self._match(content, start, min(end, start + UPDATE_MOST))
        after = span[1] + 1 + (_BEHIND if self.behind else 0) if span else 0
        return min(end, max(start + UPDATE_HEAD, after))

    def run_end(self, content: bytes, start: int) -> int:
        """Return the end of the run of whole update lines from `start`; `start` if they are handled one by one."""
        match = self.several.match(content, start) if self.several else None
        return match.end() if match else start

    def text(self, lines: bytes) -> bytes | None:
        """Return the new text of a line's head, or of several lines, still escaped and up to the cut. Empty if a text
        block begins, None if the lines have no text.
        """
        if self.deltas and b"\n" in lines:
            return b"".join(self.deltas.findall(lines)) or None
        span = self._match(lines, 0, len(lines)) if lines.startswith(self.prefixes[:1]) else None
        if span is None:
            return None
        start, end = span
        if start < 0:
            return b""
        text = lines[start:end]
        if end == len(lines):
            text = _without_half_escape(text).decode("utf-8", "ignore").encode()
        elif self.behind and not self.behind.match(lines, end):
            return None
        return text or None

    def is_open(self, line: bytes) -> bool:
        """Whether a line ends inside its new text."""
        span = self._match(line, 0, len(line)) if line.startswith(self.prefixes[:1]) else None
        return span is not None and span[1] == len(line)

    def _match(self, content: bytes, start: int, end: int) -> tuple[int, int] | None:
        """Return the start and end of a line's new text: -1 as start for a new block; the end is its closing quote or
        the line's end.
        """
        if self.delta is None or (position := content.find(self.marker, start, start + _WITHIN)) < 0:
            return None
        if (match := self.delta.match(content, position, end)) is None:
            return None
        stop = match.end()
        if stop < end and content[stop] == _BACKSLASH:
            offset = content[stop:end].replace(rb"\\", b"..").replace(rb"\"", b"..").find(b'"')
            stop = stop + offset if offset >= 0 else end
        return match.start("text"), stop


def _without_half_escape(text: bytes) -> bytes:
    """Drop an incomplete escape at the end of a text; an escaped backslash is not one."""
    backslash = text.rfind(b"\\", -_HALF_ESCAPE)
    if backslash < 0 or not re.fullmatch(rb"(?:u[0-9a-fA-F]{0,3})?", text[backslash + 1 :]):
        return text
    before = text[:backslash]
    return text if (len(before) - len(before.rstrip(b"\\"))) % 2 else before
