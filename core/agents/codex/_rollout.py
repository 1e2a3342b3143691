"""Codex's conversation files, for data that `codex exec` does not report."""

from __future__ import annotations

import os
import re

from ...system import files
from ...text.decoder import UNDECODABLE, decode
from .._json_lines import mapping
from ._items import Tokens
from ._program import home

_ID = r"[0-9a-fA-F-]{8,64}"
_SUM = rb'"total_token_usage": ?(\{[^{}]{1,2000}\})'
_TAIL = 1024 * 1024
"""Bytes at the end that contain the last total."""


def conversation_of(thread: str | None) -> str | None:
    """Return a thread's file, stored by year, month and day; None if there is none."""
    if thread is None or not re.fullmatch(_ID, thread):
        return None
    directories = [os.path.join(home(), "sessions")]
    for _ in range(3):
        directories = [os.path.join(above, name) for above in directories for name in sorted(files.names(above))]
    for directory in reversed(directories):
        for name in files.names(directory):
            if name.endswith(f"-{thread}.jsonl"):
                return os.path.join(directory, name)
    return None


def tokens_before(thread: str | None) -> Tokens:
    """Return a thread's usage so far; zero if unknown."""
    file = conversation_of(thread)
    if file is None:
        return Tokens()
    try:
        with open(files.open_regular(file)[0], "rb") as conversation:
            conversation.seek(max(0, os.fstat(conversation.fileno()).st_size - _TAIL))
            sums = re.findall(_SUM, conversation.read())
        return Tokens.of(mapping(decode(sums[-1]))) if sums else Tokens()
    except (OSError, *UNDECODABLE):
        return Tokens()
