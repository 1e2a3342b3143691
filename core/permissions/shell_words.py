"""Words of commands, and texts that any shell runs as exactly one command: only these can be allowed."""

from __future__ import annotations

import re

ANYTHING = "\x04"
"""From here on any text in any number of words."""
SPLIT = "\x08"
"""After ANYTHING from a variable or command: the word may be split into several."""
HOLE = "\x05"
"""Any text within this word."""
NUMBER = "\x06"
"""Digits, such as those of `$?`."""
ARRAY = "\x07"
"""The elements of an array, which are read separately."""


def without_quotes(text: str) -> str:
    """Return a text with quotes removed from its words, for finding names in it."""
    return re.sub(r"\\\n|['\"\\]", "", text)


def word_set(words: str) -> frozenset[str]:
    """Return the words of a text as a set."""
    return frozenset(words.split())


_OPENING = word_set("if while until for case function { ! time [[")
UNEXPECTED = word_set(
    "then elif else fi do done esac in } ]] select coproc repeat foreach end nocorrect noglob always namespace"
)
RESERVED = _OPENING | UNEXPECTED
"""Words that cannot begin a simple command, or that only some shells know."""

ACTIVE_STAR, ACTIVE_MARK, ACTIVE_HOME = "\x01", "\x02", "\x03"
"""Unquoted `*`, `?` and `~`: the shell replaces them, always with arguments."""
_ACTIVE = {"*": ACTIVE_STAR, "?": ACTIVE_MARK, "~": ACTIVE_HOME}

_PIECE = re.compile(
    r"""(?P<plain>[A-Za-z0-9_@%+=:,./-]+)|(?P<active>[*?~])|'(?P<single>[^']*)'|"(?P<double>(?:[^"\\$`]|\\.)*)\""""
    r"""|\\(?P<escaped>.)|(?P<blank>[ \t]+)"""
)
_ESCAPED = re.compile(r'\\([$`"\\])')


def simple_command(text: str) -> tuple[str, ...] | None:
    """Return the words of a text that any shell runs as exactly one command; None for other texts.

    Unquoted `*`, `?` and `~` are the marks above. No word comes from a variable or sets one.
    """
    words = plain_words(text)
    if not words or not words[0] or "=" in words[0] or words[0] in (*RESERVED, "-") or not words[0].isprintable():
        return None
    return words


def plain_words(text: str) -> tuple[str, ...] | None:
    """Split a text at whitespace; None if it has operators, substitutions or line breaks."""
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
        kind, part = str(piece.lastgroup), piece[str(piece.lastgroup)]
        if word is None and part.startswith("=") and kind == "plain" and words:
            return None  # zsh replaces it with a program's path
        if kind == "blank":
            words += [] if word is None else [word]
            word = None
        elif kind == "active":
            word = (word or "") + _ACTIVE[part]
        else:
            word = (word or "") + (_ESCAPED.sub(r"\1", part) if kind == "double" else part)
    return (*words, word) if word is not None else tuple(words)
