"""Sequences for the terminal itself, for what cannot be drawn; pure."""

from __future__ import annotations

import os
from collections.abc import Mapping

from ...core.text.plain import one_line

LIMIT = 200
"""Characters of one text in a sequence."""


def notification(protocol: str, title: str, body: str) -> str:
    """Return what asks the terminal for a desktop notification, by `osc9` or `osc777`; empty for another word."""
    match protocol:
        case "osc9":
            return f"\x1b]9;{one_line(f'{title}: {body}', LIMIT)}\x07"
        case "osc777":
            # A semicolon ends a field of this sequence.
            fields = (one_line(text, LIMIT).replace(";", ",") for text in (title, body))
            return f"\x1b]777;notify;{';'.join(fields)}\x07"
        case _:
            return ""


def through_tmux(sequence: str, environment: Mapping[str, str] = os.environ) -> str:
    """Wrap a sequence so that tmux, where there is one, hands it on to the terminal around it (`allow-passthrough`)."""
    if not sequence or not environment.get("TMUX"):
        return sequence
    return f"\x1bPtmux;{sequence.replace(chr(27), chr(27) * 2)}\x1b\\"
