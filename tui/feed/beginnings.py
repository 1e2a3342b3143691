"""What an event says whose line is too long to be read whole; pure."""

from __future__ import annotations

import re

from ...core.run.events import Event, decode_event

_LAST_ESCAPE = re.compile(rb"\\(?:u[0-9a-fA-F]{0,4}|.?)$", re.DOTALL)
_ENDS = (b'[\xe2\x80\xa6]"}', b'[\xe2\x80\xa6]"}}', b'"]}}')
"""What closes a line that was cut within the text of an event, or within an argument of a call."""

_TRIES = 4
"""Escapes that are taken away from the cut end, until what is left is whole."""


def event_of_beginning(line: bytes) -> Event | None:
    """Decode an event of which only the beginning is there; None where no text can be made of it."""
    text = line.decode("utf-8", "ignore").encode()
    for _ in range(_TRIES):
        for end in _ENDS:
            if event := decode_event(text + end):
                return event
        escape = _LAST_ESCAPE.search(text, max(0, len(text) - 8))
        text = text[: escape.start()] if escape else text[:-1]
    return None
