"""Words of commands, and texts that any shell runs as one command and nothing else: these can be allowed."""

from __future__ import annotations

import re

ANYTHING = "\x04"
"""From here on anything may stand, in as many words as it likes."""
SPLIT = "\x08"
"""Follows ANYTHING that comes of a variable or a command: where a word was begun, others may follow."""
HOLE = "\x05"
"""Anything may stand here, within this word."""
NUMBER = "\x06"
"""Digits stand here, as those of `$?`."""
ARRAY = "\x07"
"""The elements of an array stand here; they are read on their own."""


def without_quotes(text: str) -> str:
    """Return a text with its words as they are after the removal of quotes, for looking for names in it."""
    return re.sub(r"\\\n|['\"\\]", "", text)


def word_set(words: str) -> frozenset[str]:
    """Return the words of a text as a set."""
    return frozenset(words.split())


_OPENING = word_set("if while until for case function { ! time [[")
UNEXPECTED = word_set(
    "then elif else fi do done esac in } ]] select coproc repeat foreach end nocorrect noglob always namespace"
)
RESERVED = _OPENING | UNEXPECTED
"""Words that begin no simple command, or that only some shells know."""

ACTIVE_STAR, ACTIVE_MARK, ACTIVE_HOME = "\x01", "\x02", "\x03"
"""Stand for `*`, `?` and `~` that are not quoted: the shell puts other text in their place, and only arguments."""
_ACTIVE = {"*": ACTIVE_STAR, "?": ACTIVE_MARK, "~": ACTIVE_HOME}

_PIECE = re.compile(
    r"""(?P<plain>[A-Za-z0-9_@%+=:,./-]+)|(?P<active>[*?~])|'(?P<single>[^']*)'|"(?P<double>(?:[^"\\$`]|\\.)*)\""""
    r"""|\\(?P<escaped>.)|(?P<blank>[ \t]+)"""
)
_ESCAPED = re.compile(r'\\([$`"\\])')


def simple_command(text: str) -> tuple[str, ...] | None:
    """Return the words of a text that any shell runs as one command and nothing else; None for every other.

    `*`, `?` and `~` that are not quoted are the marks above. None of the words comes of a variable, and none sets one.
    """
    words = plain_words(text)
    if not words or not words[0] or "=" in words[0] or words[0] in (*RESERVED, "-") or not words[0].isprintable():
        return None
    return words


def plain_words(text: str) -> tuple[str, ...] | None:
    """Split a text without operators, substitutions and line breaks at its blanks; None where it has any of these."""
    text = text.strip(" \t")
    if not text.replace("\t", " ").isprintable():
        return None
    words: list[str] = []
    word: str | None = None
    at = 0
    while at < len(text):
        piece = _PIECE.match(text, at)
        if piece is None:
            return None
        at = piece.end()
        kind, said = str(piece.lastgroup), piece[str(piece.lastgroup)]
        if word is None and said.startswith("=") and kind == "plain" and words:
            return None  # zsh puts the path of a program in its place
        if kind == "blank":
            words += [] if word is None else [word]
            word = None
        elif kind == "active":
            word = (word or "") + _ACTIVE[said]
        else:
            word = (word or "") + (_ESCAPED.sub(r"\1", said) if kind == "double" else said)
    return (*words, word) if word is not None else tuple(words)
