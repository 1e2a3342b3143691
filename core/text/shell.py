"""Quote the words of a command that a user pastes into sh, bash, dash, zsh or fish."""

from __future__ import annotations

import re
from collections.abc import Iterable

_PLAIN = re.compile(r"[A-Za-z0-9_./,:@+-][A-Za-z0-9_./,:@+=%-]*")
"""Text that no shell changes; a `=` or `%` at the beginning is a program to zsh, and a job to fish."""


def shell_word(text: str) -> str:
    """Return a text as one word.

    In single quotes a backslash is literal to sh and an escape to fish, so neither it nor a quote is put there:
    outside, all of these shells read both literally after a backslash.
    """
    if _PLAIN.fullmatch(text):
        return text
    parts = re.findall(r"[\\']|[^\\']+", text)
    return "".join(f"\\{part}" if part in "\\'" else f"'{part}'" for part in parts) or "''"


def shell_words(words: Iterable[str]) -> str:
    """Return the words as one command."""
    return " ".join(map(shell_word, words))
