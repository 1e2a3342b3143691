"""Split a markdown file into its frontmatter and its body."""

from __future__ import annotations

import re

from msgspec import Struct

from ..config.yaml_tree import Fields, parse_mapping
from ..errors import ContentError

_FENCE = re.compile(r"^---[ \t]*$", re.MULTILINE)


class Markdown(Struct, frozen=True):
    fields: Fields | None
    """None when the file has no frontmatter."""
    body: str
    """As written, without the blank lines around it."""


def split_markdown(text: str) -> Markdown:
    """Read the fields between the first two `---` lines, and the text below them.

    Raises ContentError when the second `---` is missing or the fields are not valid; lines count from the file's
    first one.
    """
    span = frontmatter_span(text)
    if span is None:
        return Markdown(None, without_blank_ends(text))
    begin, end = span
    fields = parse_mapping(text[begin:end], first_line=2)
    return Markdown(fields, without_blank_ends(text[text.index("---", end) + 3 :]))


def frontmatter_span(text: str) -> tuple[int, int] | None:
    """Return where the lines between the first two `---` lines begin and end; None for a text that begins otherwise.

    Raises ContentError when the second `---` is missing.
    """
    opening = _FENCE.match(text)
    if opening is None:
        return None
    closing = _FENCE.search(text, opening.end())
    if closing is None:
        hint = 'close the frontmatter with a line "---" above the prompt'
        raise ContentError("the frontmatter never ends", line=1, hint=hint)
    return min(opening.end() + 1, closing.start()), closing.start()


def without_blank_ends(text: str) -> str:
    """Drop blank lines at both ends; the indent of the first line and the spaces after the last word stay."""
    start = text.rfind("\n", 0, len(text) - len(text.lstrip())) + 1
    end = text.find("\n", max(start, len(text.rstrip())))
    return text[start:] if end < 0 else text[start:end]
