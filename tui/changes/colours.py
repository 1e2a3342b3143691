"""How the text of a changed line is coloured: by the language of its file, and by the words that differ."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from pygments.lexer import Lexer

TOGETHER = 40
"""Lines that are coloured at once: a lexer knows only what stands among them."""
LONGEST_LINE = 400
"""Characters of a line that are coloured, or compared word by word."""
LEAST_ALIKE = 0.3
"""Of two lines that are compared word by word, from 0 to 1."""
_WORD = re.compile(r"\w+|\s+|.")


class Span(NamedTuple):
    begin: int
    end: int
    component: str
    """The component class that colours it."""


Spans = tuple[Span, ...]
_COMPONENTS = (
    ("Comment", "diff--comment"),
    ("Literal.String", "diff--string"),
    ("Literal", "diff--number"),
    ("Keyword", "diff--keyword"),
    ("Name.Function", "diff--name"),
    ("Name.Class", "diff--name"),
    ("Name.Decorator", "diff--name"),
    ("Name.Tag", "diff--keyword"),
)
"""Kinds of tokens, by the beginning of their names."""


@lru_cache(maxsize=64)
def lexer_of(path: str) -> Lexer | None:
    """Return what reads the language of a file, by its name; None for one that nobody knows, and for plain text."""
    from pygments.lexers import find_lexer_class_for_filename
    from pygments.util import ClassNotFound

    try:
        found = find_lexer_class_for_filename(path)
    except ClassNotFound:
        return None
    return None if found is None or found.name == "Text only" else found(stripnl=False, ensurenl=False)


def colour_lines(path: str, lines: Sequence[str]) -> list[Spans]:
    """Return the coloured spans of each of some lines that follow each other in a file."""
    lexer = lexer_of(path)
    if lexer is None:
        return [()] * len(lines)
    spans: list[list[Span]] = [[] for _ in lines]
    row, column = 0, 0
    for token, text in lexer.get_tokens("\n".join(line[:LONGEST_LINE] for line in lines)):
        component = _component(str(token))
        for number, part in enumerate(text.split("\n")):
            if number:
                row, column = row + 1, 0
            if row >= len(spans):
                return [tuple(each) for each in spans]
            if part and component:
                spans[row].append(Span(column, column + len(part), component))
            column += len(part)
    return [tuple(each) for each in spans]


@lru_cache(maxsize=256)
def _component(token: str) -> str:
    name = token.removeprefix("Token.")
    return next((component for begin, component in _COMPONENTS if name.startswith(begin)), "")


def differing(before: str, after: str) -> tuple[tuple[tuple[int, int], ...], tuple[tuple[int, int], ...]]:
    """Return the parts of two lines that differ, as pairs of positions; none where hardly anything is the same."""
    if max(len(before), len(after)) > LONGEST_LINE:
        return (), ()
    old, new = _WORD.findall(before), _WORD.findall(after)
    matcher = SequenceMatcher(None, old, new, autojunk=False)
    if matcher.ratio() < LEAST_ALIKE:
        return (), ()
    codes = [code for code in matcher.get_opcodes() if code[0] != "equal"]
    return (
        tuple(_places(old, ((begin, end) for _, begin, end, _, _ in codes))),
        tuple(_places(new, ((begin, end) for _, _, _, begin, end in codes))),
    )


def _places(words: Sequence[str], ranges: Iterator[tuple[int, int]]) -> Iterator[tuple[int, int]]:
    """Turn ranges of words into ranges of characters."""
    starts = [0]
    for word in words:
        starts.append(starts[-1] + len(word))
    for begin, end in ranges:
        if begin < end:
            yield starts[begin], starts[end]
