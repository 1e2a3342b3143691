"""Words of a command that a person pastes into a shell, be it sh, bash, dash, zsh or fish."""

from __future__ import annotations

import re
from collections.abc import Iterable

_PLAIN = re.compile(r"[A-Za-z0-9_./,:@+-][A-Za-z0-9_./,:@+=%-]*")
"""What no shell changes; a `=` or `%` at the beginning is a program to zsh, and a job to fish."""


def shell_word(text: str) -> str:
    """Return a text as one word.

    A backslash in single quotes is itself to sh and an escape to fish, so neither it nor a quote stands in them:
    outside, all of these shells read both behind a backslash as they are.
    """
    if _PLAIN.fullmatch(text):
        return text
    parts = re.findall(r"[\\']|[^\\']+", text)
    return "".join(f"\\{part}" if part in "\\'" else f"'{part}'" for part in parts) or "''"


def shell_words(words: Iterable[str]) -> str:
    """Return a command."""
    return " ".join(map(shell_word, words))
