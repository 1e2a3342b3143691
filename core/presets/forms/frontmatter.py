"""The frontmatter of agent files, which their own programs read even where it is not quite YAML."""

from __future__ import annotations

import json
import re

from ...config.yaml_tree import parse_mapping
from ...errors import ContentError
from ..text import Markdown, frontmatter_span, without_blank_ends

_PLAIN = re.compile(r"([A-Za-z_][\w-]*):[ \t]+([^\s\"'\[{|>#].*)$")
"""An outermost key with a text beside it that is neither quoted nor a list."""


def read_frontmatter(text: str) -> Markdown:
    """Read the fields between the first two `---` lines, and the text below them, as `split_markdown` does.

    Where that is not YAML each text that stands plainly beside its key is taken as it is: descriptions with `: ` in
    them, which Claude Code writes by itself, and a bare `*`. Raises ContentError for what is none even so.
    """
    span = frontmatter_span(text)
    if span is None:
        return Markdown(None, without_blank_ends(text))
    begin, end = span
    written = text[begin:end]
    try:
        fields = parse_mapping(written, first_line=2)
    except ContentError:
        quoted = "\n".join(map(_quoted, written.split("\n")))
        if quoted == written:
            raise
        fields = parse_mapping(quoted, first_line=2)
    return Markdown(fields, without_blank_ends(text[text.index("---", end) + 3 :]))


def _quoted(line: str) -> str:
    plain = _PLAIN.match(line)
    if plain is None:
        return line
    return f"{plain[1]}: {json.dumps(plain[2].rstrip(), ensure_ascii=False)}"
